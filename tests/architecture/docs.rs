//! The documentation matches the code.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    problems::{expect_none, only_in},
    workspace,
};

const CODES_BEGIN: &str = "// codes:begin";
const CODES_END: &str = "// codes:end";
const PREFIX: &str = "LAUNCHWAY_";

#[test]
fn error_codes_match_their_documentation() {
    let code: BTreeSet<_> = module("crates/api/src", "error")
        .iter()
        .flat_map(|path| marked_literals(&workspace::read(path)))
        .collect();
    assert!(
        !code.is_empty(),
        "\ncure: put the table of codes in crates/api/src/error.rs between `{CODES_BEGIN}` and `{CODES_END}`\n"
    );
    let docs = first_cells(&workspace::read("docs/errors.md"));
    let mut problems = only_in(&code, &docs, |name| format!("docs/errors.md has no row for `{name}`"));
    problems.extend(only_in(&docs, &code, |name| format!("no code of the api is called `{name}`")));
    expect_none(&problems, "a row of docs/errors.md begins with the code: | `code` | status | cure |");
}

#[test]
fn every_setting_is_documented_and_every_documented_one_exists() {
    let code: BTreeSet<_> = module("crates/server/src", "config")
        .iter()
        .flat_map(|path| settings(without_tests(&workspace::read(path))))
        .collect();
    assert!(
        !code.is_empty(),
        "\ncure: crates/server/src/config.rs names its settings in full: {PREFIX}BIND\n"
    );
    let docs = settings(&workspace::read("docs/configuration.md"));
    let mut problems = only_in(&code, &docs, |name| format!("docs/configuration.md does not mention {name}"));
    problems.extend(only_in(&docs, &code, |name| format!("the server does not read {name}")));
    expect_none(&problems, "keep docs/configuration.md and crates/server/src/config.rs in step");
}

#[test]
fn exit_codes_match_their_documentation() {
    let source = workspace::read("crates/client/src/failure.rs");
    let code: BTreeSet<_> = source.lines().filter_map(exit_code).chain(["0".to_owned()]).collect();
    assert!(code.len() > 1, "\ncure: crates/client/src/failure.rs gives each kind its number\n");
    let page = workspace::read("docs/cli.md");
    let docs: BTreeSet<_> = page.lines().filter_map(numbered_row).collect();
    let mut problems = only_in(&code, &docs, |code| format!("docs/cli.md has no row for {code}"));
    problems.extend(only_in(&docs, &code, |code| format!("no command ends with {code}")));
    expect_none(&problems, "a row of docs/cli.md begins with the code: | 1 | what it means |");
}

#[test]
fn client_variables_match_their_documentation() {
    let source = workspace::read("crates/client/src/lib.rs");
    let (_, list) = source.split_once("VARIABLES").unwrap_or_default();
    let code = settings(list.split("];").next().unwrap_or_default());
    assert!(!code.is_empty(), "\ncure: crates/client/src/lib.rs lists what the client reads in VARIABLES\n");
    let page = workspace::read("docs/cli.md");
    let docs: BTreeSet<_> = first_cells_with(&page, |cell| cell.starts_with(PREFIX));
    let mut problems = only_in(&code, &docs, |name| format!("docs/cli.md has no row for {name}"));
    problems.extend(only_in(&docs, &code, |name| format!("the client does not read {name}")));
    expect_none(&problems, "a row of docs/cli.md begins with the variable: | `LAUNCHWAY_URL` | … |");
}

/// Returns the number of a kind of failure: `Usage = 2,`.
fn exit_code(line: &str) -> Option<String> {
    let (name, number) = line.trim().strip_suffix(',')?.split_once(" = ")?;
    let is_kind = name.chars().all(|letter| letter.is_ascii_alphabetic());
    (is_kind && number.parse::<u8>().is_ok()).then(|| number.to_owned())
}

/// Returns the number at the start of a row of a table.
fn numbered_row(line: &str) -> Option<String> {
    let cell = line.trim().strip_prefix('|')?.split('|').next()?.trim();
    cell.parse::<u8>().is_ok().then(|| cell.to_owned())
}

#[test]
fn the_readme_says_how_to_run_and_how_to_test() {
    let readme = workspace::read("README.md");
    for command in ["cargo run", "cargo xtask test"] {
        assert!(readme.contains(command), "\ncure: say `{command}` in README.md\n");
    }
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut problems = Vec::new();
    let pages = workspace::files("docs", "md");
    for page in pages.iter().chain([&PathBuf::from("README.md")]) {
        let folder = workspace::root().join(page.parent().unwrap_or(Path::new("")));
        for link in relative_links(&workspace::read(page)) {
            if !folder.join(&link).exists() {
                problems.push(format!("{} links to {link}", page.display()));
            }
        }
    }
    expect_none(&problems, "correct the path; it is relative to the page");
}

/// Returns the sources of a module: `name.rs`, any `name*.rs` beside it, and everything below `name/`.
fn module(folder: &str, name: &str) -> Vec<PathBuf> {
    let (folder_path, mut files) = (Path::new(folder), workspace::files(folder, "rs"));
    files.retain(|path| {
        let below = path.strip_prefix(folder_path).unwrap_or(path);
        let first = below.iter().next().unwrap_or_default().to_string_lossy().into_owned();
        first == name || (first.starts_with(name) && below.iter().count() == 1)
    });
    files
}

fn without_tests(source: &str) -> &str {
    source.split_once("#[cfg(test)]").map_or(source, |(code, _)| code)
}

/// Returns the string literals between the markers that look like error codes.
fn marked_literals(source: &str) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for block in source.split(CODES_BEGIN).skip(1) {
        let block = block.split(CODES_END).next().unwrap_or_default();
        for line in block.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)) {
            codes.extend(line.split('"').skip(1).step_by(2).filter(|text| is_code(text)).map(str::to_owned));
        }
    }
    codes
}

/// Returns the first cells of all tables that are one code in backticks.
fn first_cells(page: &str) -> BTreeSet<String> {
    first_cells_with(page, is_code)
}

/// Returns the first cells of all tables that are one text in backticks which passes `is_meant`.
fn first_cells_with(page: &str, is_meant: impl Fn(&str) -> bool) -> BTreeSet<String> {
    page.lines()
        .filter_map(|line| line.trim().strip_prefix('|')?.split('|').next())
        .filter_map(|cell| cell.trim().strip_prefix('`')?.strip_suffix('`'))
        .filter(|cell| is_meant(cell))
        .map(str::to_owned)
        .collect()
}

fn is_code(text: &str) -> bool {
    text.split('_').all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// Returns every name with our prefix; `LAUNCHWAY_GIT_*` is a family and not a name, and tests have their
/// own.
fn settings(text: &str) -> BTreeSet<String> {
    text.match_indices(PREFIX)
        .map(|(start, _)| {
            let rest = &text[start..];
            let is_part =
                |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
            rest.find(|letter| !is_part(letter)).map_or(rest, |end| &rest[..end])
        })
        .filter(|name| !name.ends_with('_') && !name.starts_with("LAUNCHWAY_TEST_"))
        .map(str::to_owned)
        .collect()
}

/// Returns the targets of links, without fragments, that are neither URLs nor in code.
fn relative_links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut in_code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            // Every second piece stands between backticks.
            let prose: String = line.split('`').step_by(2).collect();
            let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let reference = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, to)| to);
            let targets = inline.chain(reference).filter_map(|target| target.split_whitespace().next());
            links.extend(
                targets
                    .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
                    .filter_map(|target| target.split('#').next())
                    .filter(|target| !target.is_empty())
                    .map(str::to_owned),
            );
        }
    }
    links
}

#[test]
fn links_are_found_in_prose_and_not_in_code() {
    let page = "See [a](a.md#part), `[b](b.md)`, [c](https://c.example) and [d](#d).\n```\n[e](e.md)\n```\n[f]: f.md\n";
    assert_eq!(relative_links(page), ["a.md", "f.md"]);
}

#[test]
fn settings_are_whole_names() {
    let text = "`LAUNCHWAY_BIND`, LAUNCHWAY_GIT_* and \"LAUNCHWAY_\" but not LAUNCHWAY_TEST_POSTGRES_URL";
    assert_eq!(settings(text), BTreeSet::from(["LAUNCHWAY_BIND".to_owned()]));
}

#[test]
fn exit_codes_are_the_numbers_of_kinds_and_of_rows() {
    assert_eq!(exit_code("    Usage = 2,"), Some("2".to_owned()));
    assert_eq!((exit_code("let x = 2,"), exit_code("Usage,")), (None, None));
    assert_eq!((numbered_row("| 2 | usage |"), numbered_row("| two | 2 |")), (Some("2".to_owned()), None));
}

#[test]
fn codes_are_the_literals_between_the_markers() {
    let source = format!(
        "\"before\"\n{CODES_BEGIN}\nKind::A => (404, \"not_found\"), // \"no_code\"\n{CODES_END}\n\"after\""
    );
    assert_eq!(marked_literals(&source), BTreeSet::from(["not_found".to_owned()]));
}
