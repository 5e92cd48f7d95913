//! axe-core, which finds violations of the Web Content Accessibility Guidelines in a page.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::browser::Browser;

/// The package of npm, and its version.
const PACKAGE: &str = "axe-core";
const VERSION: &str = "4.14.0";

/// Returns the violations as `{rule, target, summary}`. The rule about the size of targets is off by default.
const RUN: &str = "
    const found = await axe.run(document, {
        runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']},
        rules: {'target-size': {enabled: true}}, resultTypes: ['violations'],
    });
    return found.violations.flatMap(each => each.nodes.map(node => (
        {rule: each.id, target: node.target.join(' '), summary: node.failureSummary}
    )));";

/// The script of axe-core.
pub struct Axe {
    script: String,
}

impl Axe {
    /// Reads the script. The first call on a machine gets it by `npm`.
    #[must_use]
    pub fn load() -> Self {
        let script = fs::read_to_string(package().join("axe.min.js")).unwrap();
        Self { script }
    }

    /// Returns the violations of WCAG 2.2, levels A and AA, in the page that the browser shows.
    pub fn violations(&self, browser: &Browser) -> Vec<Value> {
        if browser.value("typeof axe") == "undefined" {
            // A script of the driver has a scope of its own.
            browser.run(&format!("{}; window.axe = axe;", self.script));
        }
        let found = browser.result(&format!("return (async () => {{ {RUN} }})();"));
        found.as_array().unwrap_or_else(|| panic!("{found}")).clone()
    }
}

/// Returns the folder of the package, beside the folder of the binary under test.
fn package() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap();
    let installed = target.join("npm").join(format!("{PACKAGE}-{VERSION}"));
    let package = installed.join("node_modules").join(PACKAGE);
    if !package.exists() {
        install(target, &installed);
    }
    package
}

/// Installs the package into a new folder, and renames it, because another test may do the same.
fn install(target: &Path, installed: &Path) {
    let parent = target.join("npm");
    fs::create_dir_all(&parent).unwrap();
    let folder = tempfile::tempdir_in(&parent).unwrap();
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"])
        .arg(folder.path())
        .arg(format!("{PACKAGE}@{VERSION}"))
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("`npm` cannot be started: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if fs::rename(folder.path(), installed).is_err() {
        assert!(installed.exists(), "{} cannot be made", installed.display());
    }
}
