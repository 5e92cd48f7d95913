//! Linters of OpenAPI documents.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

/// The linters, by npm package.
const REDOCLY: &str = "@redocly/cli@2.73.0";
const SPECTRAL: &str = "@stoplight/spectral-cli@6.16.3";

/// Returns the problems that Redocly finds in the document.
pub(crate) fn redocly(document: &Value, folder: &Path) -> usize {
    let report = run(document, folder, "redocly.yaml", include_str!("redocly.yaml"), |command| {
        command.args([REDOCLY, "lint", "--config", "redocly.yaml", "--format=json", "openapi.json"])
    });
    let count = |name: &str| report["totals"][name].as_u64().unwrap();
    usize::try_from(count("errors") + count("warnings")).unwrap()
}

/// Returns the problems that Spectral finds in the document.
pub(crate) fn spectral(document: &Value, folder: &Path) -> usize {
    let report = run(document, folder, "spectral.yaml", include_str!("spectral.yaml"), |command| {
        command.args([SPECTRAL, "lint", "-r", "spectral.yaml", "-f", "json", "--quiet", "openapi.json"])
    });
    report.as_array().unwrap().len()
}

fn run(
    document: &Value,
    folder: &Path,
    config: &str,
    rules: &str,
    arguments: impl FnOnce(&mut Command) -> &mut Command,
) -> Value {
    fs::write(folder.join("openapi.json"), document.to_string()).unwrap();
    fs::write(folder.join(config), rules).unwrap();
    let mut command = Command::new("npx");
    command.arg("--yes").current_dir(folder).stdin(Stdio::null());
    let output = arguments(&mut command).output().expect("`npx` of npm can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(start) = text.find(['{', '[']) else {
        panic!("{config}: {text}{}", String::from_utf8_lossy(&output.stderr))
    };
    let report: Value = serde_json::from_str(text[start..].trim()).unwrap();
    if !output.status.success() {
        eprintln!("{text}");
    }
    report
}
