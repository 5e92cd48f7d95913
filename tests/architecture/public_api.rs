//! The public interface of `launchway-embedding`: a change of it is seen in a review, and it can be packaged.

use std::{fmt::Write as _, path::Path, process::Command};

use crate::workspace;

const LISTING: &str = "crates/embedding/public-api.txt";

#[test]
fn the_listing_of_the_public_interface_is_current() {
    let current = listing();
    let stored = workspace::root().join(LISTING);
    if std::env::var_os("LAUNCHWAY_UPDATE_DOCS").is_some() {
        std::fs::write(&stored, &current).unwrap_or_else(|error| panic!("{}: {error}", stored.display()));
    }
    let stored = std::fs::read_to_string(stored).unwrap_or_default();
    let gone: Vec<_> = stored.lines().filter(|line| !current.lines().any(|new| new == *line)).collect();
    let new: Vec<_> = current.lines().filter(|line| !stored.lines().any(|old| old == *line)).collect();
    assert!(
        stored == current,
        "\nthe public interface of launchway-embedding has changed\ngone: {gone:#?}\nnew: {new:#?}\ncure: if that is \
         intended, note it in CHANGELOG.md, and run this test with LAUNCHWAY_UPDATE_DOCS=1\n"
    );
}

/// Returns the public items of the crate, by file. The lint `unreachable_pub` makes sure that `pub` means public.
fn listing() -> String {
    let mut listing = String::new();
    for path in workspace::files("crates/embedding/src", "rs") {
        if path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs") {
            continue;
        }
        let items = items(&workspace::read(&path));
        if !items.is_empty() {
            let name = path.strip_prefix("crates/embedding/src").unwrap_or(&path);
            writeln!(listing, "# {}\n{}\n", name.display(), items.join("\n")).unwrap_or_default();
        }
    }
    listing
}

/// Returns the public declarations of a file, one line each, with the variants of enums and the methods of traits.
fn items(text: &str) -> Vec<String> {
    let (mut items, mut lines) = (Vec::new(), text.lines().take_while(|line| *line != "#[cfg(test)]"));
    let mut is_open = false;
    while let Some(line) = lines.next() {
        let code = line.trim();
        let is_member = is_open && line.starts_with("    ") && !line.starts_with("     ");
        let is_listed =
            code.starts_with("pub ") || is_member && code.starts_with(|c: char| c.is_alphabetic());
        if line == "}" {
            is_open = false;
        }
        if !is_listed {
            continue;
        }
        let mut declaration = code.to_owned();
        // A declaration that is broken into lines.
        while !declaration.ends_with(['{', ';', ',', '}']) || declaration.ends_with("(") {
            let Some(next) = lines.next() else { break };
            declaration = format!("{declaration} {}", next.trim());
        }
        while declaration.matches('(').count() > declaration.matches(')').count()
            || declaration.starts_with("pub use") && !declaration.ends_with(';')
        {
            let Some(next) = lines.next() else { break };
            declaration = format!("{declaration} {}", next.trim());
        }
        is_open |= line.starts_with("pub enum") || line.starts_with("pub trait");
        let declaration = declaration.trim_end_matches([' ', '{', ',', ';']);
        items.push(if line.starts_with(' ') { format!("    {declaration}") } else { declaration.to_owned() });
    }
    items
}

#[test]
fn public_declarations_are_listed() {
    let text = "/// Doc.\npub struct A {\n    /// Doc.\n    pub b: u8,\n    c: u8,\n}\n\npub enum D {\n    E,\n    F(u8),\n}\n\nimpl A {\n    \
                pub fn g(\n        &self,\n        h: u8,\n    ) -> u8 {\n        h\n    }\n\n    fn i() {}\n}\n";
    let expected = [
        "pub struct A",
        "    pub b: u8",
        "pub enum D",
        "    E",
        "    F(u8)",
        "    pub fn g( &self, h: u8, ) -> u8",
    ];
    assert_eq!(items(text), expected);
}

#[test]
fn the_library_can_be_packaged() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = "package --offline --no-verify --allow-dirty --quiet -p launchway-domain -p launchway-application \
                     -p launchway-system -p launchway-docker -p launchway-embedding";
    let folder = std::env::temp_dir().join(format!("launchway-package-{}", std::process::id()));
    let packaged = Command::new(cargo)
        .args(arguments.split_whitespace())
        .env("CARGO_TARGET_DIR", &folder)
        .current_dir(workspace::root())
        .output()
        .unwrap_or_else(|error| panic!("cargo cannot be run: {error}"));
    let is_there = Path::new(&folder).join("package/launchway-embedding-0.1.0.crate").exists();
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    assert!(packaged.status.success() && is_there, "{}", String::from_utf8_lossy(&packaged.stderr));
}
