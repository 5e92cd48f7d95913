//! Extensions: the catalog, forks and runs, by the API.

mod cancellation;
mod definitions;
pub(crate) mod docker;
mod forks;
mod kills;
mod lists;
mod permissions;
mod story;

use launchway_testkit::client::Client;
use serde_json::{Value, json};

use crate::wait::until;

pub(crate) const EXTENSIONS: &str = "/api/v1/extensions";
/// A setting with which a shell is found.
const WITH_PROGRAMS: (&str, &str) = ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
/// Runs leave a slot for deployments, and a small machine has no more than two.
const WITH_PLACES: (&str, &str) = ("LAUNCHWAY_MAX_BUILDS", "4");

/// Generates a test of each function on each database, with a server that finds a shell.
macro_rules! with_programs {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            use launchway_testkit::server::TestServer;
            $(#[test] fn $name() { super::$name(TestServer::configured(&[
                crate::extensions::WITH_PROGRAMS, crate::extensions::WITH_PLACES,
            ])); })*
        }
        mod on_postgres {
            use launchway_testkit::server::TestServer;
            $(#[test] fn $name() {
                super::$name(TestServer::configured_on_postgres(&[
                    crate::extensions::WITH_PROGRAMS, crate::extensions::WITH_PLACES,
                ]));
            })*
        }
    };
}
pub(crate) use crate::on_both_databases;
use with_programs;

/// A definition with these steps, called `steps`, with `variables`.
pub(crate) fn definition(variables: &Value, run: &Value, validate: &Value) -> String {
    let mut execution = json!({ "run": run });
    if !validate.as_array().unwrap().is_empty() {
        execution["validate"] = validate.clone();
    }
    json!({
        "metadata": {
            "id": "steps", "name": "Steps", "description": "For a test", "author": "someone", "icon": "S",
            "category": "Utility", "type": "run", "version": "1.0.0", "isVerified": true,
        },
        "variables": variables,
        "execution": execution,
    })
    .to_string()
}

/// A step that runs a command in a shell.
fn command(name: &str, cmd: &str, revert_cmd: &str) -> Value {
    let mut properties = json!({ "cmd": cmd });
    if !revert_cmd.is_empty() {
        properties["revert_cmd"] = json!(revert_cmd);
    }
    json!({"name": name, "type": "command", "properties": properties})
}

/// Forks the example with another definition, and returns its key.
pub(crate) fn forked(client: &Client, yaml: &str) -> String {
    let fork = client.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({"yaml_content": yaml}));
    assert_eq!(fork.message(), "Extension forked successfully");
    text(&fork.success()["extension_id"])
}

/// Requests a run, and returns its id.
pub(crate) fn started(client: &Client, extension: &str, variables: &Value) -> String {
    let answer = client.post(&format!("{EXTENSIONS}/{extension}/run"), &json!({"variables": variables}));
    assert_eq!(answer.message(), "Extension execution started");
    let execution = answer.success();
    // A short run may be over when the response is read.
    assert!(["pending", "running", "completed", "failed"].contains(&execution["status"].as_str().unwrap()));
    text(&execution["id"])
}

/// Returns the current state of a run.
pub(crate) fn execution(client: &Client, id: &str) -> Value {
    client.get(&format!("{EXTENSIONS}/execution/{id}")).success()
}

/// Waits for a run to finish.
#[track_caller]
pub(crate) fn end_of(client: &Client, id: &str) -> Value {
    until("the end of a run", || {
        let execution = execution(client, id);
        let is_over = ["completed", "failed", "cancelled"].contains(&execution["status"].as_str().unwrap());
        is_over.then_some(execution)
    })
}

/// Waits until a step of a run has printed `line`.
#[track_caller]
fn printed(client: &Client, id: &str, line: &str) {
    until(line, || text(&execution(client, id)["execution_log"]).contains(line).then_some(()));
}

/// Returns name, state and exit code of each step.
fn steps_of(execution: &Value) -> Vec<(String, String, i64)> {
    let steps = execution["steps"].as_array().unwrap();
    let of =
        |step: &Value| (text(&step["step_name"]), text(&step["status"]), step["exit_code"].as_i64().unwrap());
    steps.iter().map(of).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// A folder of this machine, as a value.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    (folder, path)
}
