//! Extensions and their runs.

use std::{fs, thread, time::Duration};

use launchway_testkit::{server::TestServer, wait::until};
use serde_json::json;

use crate::person::Person;

/// Settings with which a shell is found, and there is a slot for a run.
const SETTINGS: &[(&str, &str)] = &[("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LAUNCHWAY_MAX_BUILDS", "4")];

pub(crate) fn server_and_ada() -> (TestServer, Person) {
    let server = TestServer::configured(SETTINGS);
    server.admin();
    let ada = Person::ada(&server);
    (server, ada)
}

/// Forks an extension with the variable `who` and a secret, which runs a line of shell.
pub(crate) fn forked(ada: &Person, line: &str) -> String {
    let definition = json!({
        "metadata": {"id": "steps", "name": "Steps", "description": "For a test", "author": "ada",
            "icon": "S", "category": "Utility", "type": "run"},
        "variables": {
            "who": {"type": "string", "is_required": true, "validation_pattern": "[a-z]+"},
            "key": {"type": "string", "is_required": true, "sensitive": true},
            "count": {"type": "integer", "is_required": true, "default": 3},
        },
        "execution": {"run": [{"name": "Speak", "type": "command", "properties": {"cmd": line}}]},
    });
    let fork = ada.runs_with(&["extensions", "fork", "hello-note", "--file", "-"], &definition.to_string());
    fork.succeeded().trim().to_owned()
}

#[test]
fn the_catalog_is_listed_and_shown() {
    let (_server, ada) = server_and_ada();
    let listed = ada.runs(&["extensions", "--category", "Database"]);
    assert!(listed.succeeded().lines().any(|line| line.starts_with("postgres ")), "{listed}");
    assert!(!listed.stdout.contains("hello-note"), "{listed}");
    let found = ada.runs(&["extensions", "--search", "greeting", "--output", "json"]).json();
    assert_eq!(found["extensions"].as_array().unwrap().len(), 1);

    let shown = ada.runs(&["extensions", "show", "postgres"]);
    let password = shown.succeeded().lines().find(|line| line.starts_with("password ")).unwrap();
    assert!(password.contains("required"), "{shown}");
    let definition = ada.runs(&["extensions", "show", "hello-note", "--definition"]);
    assert!(definition.succeeded().starts_with("metadata:"), "{definition}");
    ada.runs(&["extensions", "show", "nope"]).failed(4);
    ada.runs(&["extensions", "show", "../users"]).failed(4);
    ada.runs(&["extensions", "--search", "x", "show", "postgres"]).failed(2);
}

#[test]
fn a_run_is_watched_to_its_end() {
    let (_server, ada) = server_and_ada();
    let done = ada.runs(&["run", "hello-note", "--set", "who=ada"]);
    assert_eq!(done.succeeded(), "");
    for line in ["Step 1 of 3: Make folder", "Step 3 of 3: Check file", "completed"] {
        assert!(done.stderr.contains(line), "{done}");
    }
    let execution = ada.runs(&["run", "hello-note", "--output", "json"]).json();
    assert_eq!(
        (&execution["status"], &execution["variable_values"]),
        (&json!("completed"), &json!(r#"{"who":"world"}"#))
    );
    let listed = ada.runs(&["extensions", "executions", "hello-note"]);
    assert_eq!(listed.succeeded().lines().filter(|line| line.contains("completed")).count(), 2, "{listed}");

    let refused = ada.runs(&["run", "hello-note", "--set", "who=ADA"]);
    assert!(refused.failed(2).contains("variables.who"), "{refused}");
    ada.runs(&["run", "hello-note", "--set", "who"]).failed(2);
    ada.runs(&["run", "nope"]).failed(4);
}

#[test]
fn what_is_required_and_not_said_is_named() {
    let (_server, ada) = server_and_ada();
    let fork = forked(&ada, "echo hello {{ who }}; echo the key is {{ key }}");
    let output = ada.runs(&["run", &fork]);
    assert!(output.failed(2).contains("`key`, `who`") || output.stderr.contains("`who`, `key`"), "{output}");
    assert!(!output.stderr.contains("`count`"), "{output}");

    let file = ada.home().join("values.env");
    fs::write(&file, "key='very secret'\nwho=nobody\n").unwrap();
    let done = ada.runs(&["run", &fork, "--file", "values.env", "--set", "who=grace"]);
    done.succeeded();
    assert!(done.stderr.contains("hello grace"), "{done}");
    assert!(done.stderr.contains("the key is [secret]") && !done.stderr.contains("very secret"), "{done}");
    ada.runs_with(&["run", &fork, "--file", "-"], "key=x\nwho=bob\n").succeeded();
}

#[test]
fn a_run_that_fails_says_why_and_fails() {
    let (_server, ada) = server_and_ada();
    let fork = forked(&ada, "echo before; exit 7");
    let failed = ada.runs(&["run", &fork, "--set", "who=a", "--set", "key=x"]);
    let text = failed.failed(1);
    assert!(text.contains("before") && text.contains("`Speak` failed") && text.contains('7'), "{failed}");
    let whole = ada.runs(&["run", &fork, "--set", "who=a", "--set", "key=x", "--output", "json"]);
    assert_eq!(whole.code, Some(1), "{whole}");
    let execution: serde_json::Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!((&execution["status"], &execution["exit_code"]), (&json!("failed"), &json!(7)));
}

#[test]
fn many_lines_come_once_each_and_in_order() {
    let (_server, ada) = server_and_ada();
    let fork = forked(&ada, "i=1; while [ $i -le 2500 ]; do echo line $i.; i=$((i+1)); done");
    let done = ada.runs(&["run", &fork, "--set", "who=a", "--set", "key=x"]);
    done.succeeded();
    let lines: Vec<&str> =
        done.stderr.lines().map(str::trim).filter(|line| line.starts_with("line ")).collect();
    let expected: Vec<String> = (1..=2500).map(|number| format!("line {number}.")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_run_that_nobody_watches_is_followed_later_and_cancelled() {
    let (_server, ada) = server_and_ada();
    let fork = forked(&ada, "echo begun; sleep 60");
    let begun = ada.runs(&["run", &fork, "--set", "who=a", "--set", "key=x", "--detach"]);
    let id = begun.succeeded().trim().to_owned();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| ada.runs(&["extensions", "follow", &id]));
        until("the first line of the run", || {
            let execution = ada.runs(&["extensions", "executions", &fork, "--output", "json"]).json();
            execution["executions"][0]["execution_log"].as_str().unwrap().contains("begun").then_some(())
        });
        ada.runs(&["extensions", "cancel", &id]).succeeded();
        let output = watcher.join().unwrap();
        assert!(output.failed(1).contains("was cancelled") && output.stderr.contains("begun"), "{output}");
    });
    ada.runs(&["extensions", "cancel", &id]).failed(5);
}

#[test]
fn a_server_that_is_away_for_a_moment_costs_no_line() {
    let (server, ada) = server_and_ada();
    let fork = forked(&ada, "for i in 1 2 3 4 5 6; do echo line $i.; sleep 0.5; done");
    thread::scope(|scope| {
        let watcher = scope.spawn(|| ada.runs(&["run", &fork, "--set", "who=a", "--set", "key=x"]));
        until("the run", || {
            let listed = ada.runs(&["extensions", "executions", &fork, "--output", "json"]).json();
            (!listed["executions"].as_array().unwrap().is_empty()).then_some(())
        });
        // As if the machine were overloaded.
        server.signal("STOP");
        thread::sleep(Duration::from_secs(1));
        server.signal("CONT");
        let output = watcher.join().unwrap();
        output.succeeded();
        let lines: Vec<&str> =
            output.stderr.lines().map(str::trim).filter(|line| line.starts_with("line ")).collect();
        assert_eq!(lines, ["line 1.", "line 2.", "line 3.", "line 4.", "line 5.", "line 6."]);
    });
}

#[test]
fn a_fork_is_uninstalled_and_deleted_only_on_purpose() {
    let (_server, ada) = server_and_ada();
    let fork = ada.runs(&["extensions", "fork", "hello-note"]).succeeded().trim().to_owned();
    assert!(fork.starts_with("hello-note-fork-"), "{fork}");
    for verb in ["uninstall", "delete"] {
        let asked = ada.runs(&["extensions", verb, &fork, "--volumes"]);
        assert!(asked.failed(2).contains("all data in them"), "{asked}");
        ada.runs(&["extensions", verb, &fork, "--yes"]).succeeded();
    }
    ada.runs(&["extensions", "show", &fork]).failed(4);
    ada.runs(&["extensions", "delete", "hello-note", "--yes"]).failed(5);
}
