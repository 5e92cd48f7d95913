//! `cargo xtask invariants`: writes `docs/invariants.md`, the index of the invariants that module and item comments
//! state.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::workspace::root;

const PAGE: &str = "docs/invariants.md";
const MARK: &str = "**Invariant:**";

/// Writes the page.
pub(crate) fn run() -> Result<()> {
    Ok(fs::write(root().join(PAGE), index()?)?)
}

/// Returns the text of the page.
fn index() -> Result<String> {
    let mut files = Vec::new();
    collect(&root().join("crates"), &mut files)?;
    files.sort();
    let mut page =
        "# Invariants\n\nThe rules that the code keeps, from the comments of the modules that they rule. \
                    `cargo xtask invariants` writes this page.\n"
            .to_owned();
    let mut current = String::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let path = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        for invariant in invariants(&text) {
            let name = path.split('/').nth(1).unwrap_or_default();
            if current != name {
                name.clone_into(&mut current);
                page.push_str(&format!("\n## {name}\n\n"));
            }
            let module = path.splitn(4, '/').last().unwrap_or(&path);
            page.push_str(&format!("- {invariant} ([`{module}`](../{path}))\n"));
        }
    }
    Ok(page)
}

/// Adds the source files below `folder`, without those of tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_own = path.file_name().is_some_and(|name| name == "invariants.rs");
        if path.is_dir() && !path.ends_with("tests") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_own {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the invariants that the comments of a file state, each as one line.
fn invariants(text: &str) -> Vec<String> {
    let (mut found, mut open): (Vec<String>, bool) = (Vec::new(), false);
    for line in text.lines() {
        let line = line.trim_start();
        let comment = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).map(str::trim);
        match comment {
            Some(words) if words.starts_with(MARK) => {
                found.push(words[MARK.len()..].trim().to_owned());
                open = true;
            }
            Some(words) if open && !words.is_empty() => {
                if let Some(last) = found.last_mut() {
                    last.push(' ');
                    last.push_str(words);
                }
            }
            _ => open = false,
        }
    }
    found.iter().map(|invariant| sentence(&without_links(invariant))).collect()
}

/// Returns a text without links to items: ``[`Name`](path)`` and ``[`Name`]`` become `` `Name` ``.
fn without_links(text: &str) -> String {
    let (mut result, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('[') {
        let Some((label, behind)) = after.split_once(']') else { break };
        result.push_str(before);
        result.push_str(label);
        rest = match behind.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    result + rest
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_current() {
        let page = fs::read_to_string(root().join(PAGE)).unwrap();
        assert!(page == index().unwrap(), "cure: `cargo xtask invariants`");
    }

    #[test]
    fn an_invariant_ends_with_its_paragraph() {
        let text = "//! A queue.\n//!\n//! **Invariant:** a [`Job`] has\n//! one lease.\n//!\n//! More.\nfn x() {}\n";
        assert_eq!(invariants(text), ["A `Job` has one lease."]);
    }

    #[test]
    fn links_leave_their_labels() {
        assert_eq!(without_links("see [`A::b`](crate::A::b) and [c] [d"), "see `A::b` and c [d");
    }
}
