//! The rules for every source file.

use std::path::Path;

use crate::{problems::expect_none, workspace};

const MOST_LINES: usize = 500;

const DRAWERS: &[&str] = &["common.rs", "helpers.rs", "misc.rs", "types.rs", "utils.rs"];

/// Forbidden text in source files, and the replacement. In two halves, for this is a source file.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("#[ign", "ore"), "make the test pass everywhere, or delete it"),
    (concat!("#[all", "ow("), "use `#[expect(…, reason = \"…\")]`"),
    (concat!("#![all", "ow("), "use `#![expect(…, reason = \"…\")]`"),
    (concat!("to", "do!("), "finish it"),
    (concat!("unimple", "mented!("), "finish it"),
    (concat!("db", "g!("), "remove it"),
];

#[test]
fn no_source_file_is_longer_than_five_hundred_lines() {
    let problems: Vec<_> = workspace::files("", "rs")
        .iter()
        .map(|path| (path, workspace::read(path).lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| format!("{} has {lines} lines", path.display()))
        .collect();
    expect_none(&problems, "split the file by noun: `name.rs` beside `name/`");
}

#[test]
fn a_module_with_children_is_a_file_beside_their_folder() {
    let problems = named(&["mod.rs"]);
    expect_none(&problems, "rename `name/mod.rs` to `name.rs`, beside the folder `name/`");
}

#[test]
fn no_file_is_a_drawer_for_odds_and_ends() {
    let problems = named(DRAWERS);
    expect_none(&problems, "move each function to the noun it serves, or name a new noun");
}

#[test]
fn nothing_is_skipped_silenced_or_left_unfinished() {
    let mut problems = Vec::new();
    for path in workspace::files("", "rs") {
        for (number, line) in workspace::read(&path).lines().enumerate() {
            for (needle, cure) in FORBIDDEN.iter().filter(|(needle, _)| line.contains(needle)) {
                problems.push(format!("{}:{}: `{needle}`: {cure}", path.display(), number + 1));
            }
        }
    }
    expect_none(&problems, "as said beside each line");
}

fn named(names: &[&str]) -> Vec<String> {
    let is_named = |path: &Path| path.file_name().is_some_and(|own| names.iter().any(|name| own == *name));
    workspace::files("", "rs")
        .iter()
        .filter(|path| is_named(path))
        .map(|path| path.display().to_string())
        .collect()
}
