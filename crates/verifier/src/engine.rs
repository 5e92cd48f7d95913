//! Reads the engine's resources with the label of an installation.

use std::{
    collections::HashMap,
    process::{Command, Stdio},
};

/// Returns the containers of an installation, and for each whether it is running.
///
/// # Errors
///
/// The error message of docker.
pub fn containers(instance: &str) -> Result<HashMap<String, bool>, String> {
    let output = Command::new("docker")
        .args(["ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.State}}", "--filter"])
        .arg(format!("label=launchway.instance={instance}"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let listed = String::from_utf8_lossy(&output.stdout);
    let containers = listed.lines().filter_map(|line| line.split_once(' '));
    Ok(containers.map(|(id, state)| (id.to_owned(), state == "running")).collect())
}
