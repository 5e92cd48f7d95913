//! The rules for names and comments, as far as a test can check them.

use std::path::Path;

use crate::{problems::expect_none, workspace};

/// First words of comments that describe an item instead of naming it.
const QUESTIONS: &[&str] = &["What", "Who", "Whom", "Whose", "How", "Whether", "Which", "Why"];

/// Nouns in `-ing` that the field uses.
const NOUNS: &[&str] = &["embedding", "packaging", "settings", "string"];

const LONGEST_TEST_NAME: usize = 60;

#[test]
fn doc_comments_state_what_an_item_is_or_does() {
    let mut problems = Vec::new();
    for path in workspace::files("", "rs") {
        let text = workspace::read(&path);
        for (number, line) in first_lines_of_doc_comments(&text) {
            let word = line.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            if QUESTIONS.contains(&word) {
                problems.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    expect_none(&problems, "begin with what the item is (\"A lease on a job.\") or does (\"Returns …\")");
}

#[test]
fn no_module_is_named_by_a_gerund() {
    let problems: Vec<_> = workspace::files("", "rs")
        .iter()
        .filter(|path| path.components().any(|part| is_gerund(Path::new(&part))))
        .map(|path| path.display().to_string())
        .collect();
    expect_none(&problems, "name the module by a noun of the field");
}

#[test]
fn test_names_have_at_most_sixty_characters() {
    let mut problems = Vec::new();
    for path in workspace::files("", "rs") {
        let text = workspace::read(&path);
        for name in test_names(&text).filter(|name| name.len() > LONGEST_TEST_NAME) {
            problems.push(format!("{}: `{name}` has {} characters", path.display(), name.len()));
        }
    }
    expect_none(&problems, "state the behaviour in fewer words");
}

/// Returns the first line of each doc comment, with its number.
fn first_lines_of_doc_comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let doc = |line: &str| {
        let line = line.trim_start();
        line.starts_with("///") || line.starts_with("//!")
    };
    let lines: Vec<_> = text.lines().collect();
    let begins = move |index: usize| index == 0 || !doc(lines[index - 1]);
    text.lines()
        .enumerate()
        .filter(move |(index, line)| doc(line) && begins(*index))
        .map(|(index, line)| (index + 1, line.trim_start()[3..].trim_start()))
}

fn is_gerund(part: &Path) -> bool {
    let Some(stem) = part.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let word = stem.rsplit('_').next().unwrap_or(stem);
    let singular = word.strip_suffix('s').unwrap_or(word);
    singular.len() > 4 && singular.ends_with("ing") && !NOUNS.contains(&word)
}

/// Returns the names of the functions below a test attribute.
fn test_names(text: &str) -> impl Iterator<Item = &str> {
    let is_attribute = |line: &str| {
        let line = line.trim();
        line == "#[test]" || line.starts_with("#[tokio::test") || line.starts_with("#[actix_web::test")
    };
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        if is_attribute(line) {
            is_test = true;
            return None;
        }
        let (_, rest) = line.split_once("fn ").filter(|_| is_test)?;
        is_test = false;
        rest.split(['(', '<']).next()
    })
}

#[test]
fn gerunds_are_recognized() {
    for name in ["making.rs", "log_printing.rs", "codings.rs"] {
        assert!(is_gerund(Path::new(name)), "{name}");
    }
    for name in ["settings.rs", "ping.rs", "string.rs", "release.rs", "packaging"] {
        assert!(!is_gerund(Path::new(name)), "{name}");
    }
}

#[test]
fn only_first_lines_of_doc_comments_count() {
    let text = "/// A lease.\n/// How long it holds.\nfn x() {}\n    //! What\n// Why\n";
    let lines: Vec<_> = first_lines_of_doc_comments(text).collect();
    assert_eq!(lines, [(1, "A lease."), (4, "What")]);
}

#[test]
fn names_below_test_attributes_are_found() {
    let text =
        "#[test]\nfn one() {}\nfn two() {}\n#[tokio::test(start_paused = true)]\nasync fn three() {}\n";
    assert_eq!(test_names(text).collect::<Vec<_>>(), ["one", "three"]);
}
