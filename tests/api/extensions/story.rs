//! The whole lifecycle: fork the example, run it successfully and with a failure, and check the results.

use launchway_testkit::{hostile::PAYLOADS, server::TestServer};
use serde_json::{Value, json};

use super::{EXTENSIONS, command, definition, end_of, execution, folder, forked, started, steps_of, text};
use crate::shapes::{
    EXECUTION, EXECUTION_STEP, EXTENSION, EXTENSION_VARIABLE, expect_fields, expect_id, expect_moment,
};

super::with_programs!(
    the_example_is_forked_and_run_and_its_steps_complete,
    values_that_are_not_allowed_start_nothing,
    a_failing_step_has_the_earlier_ones_taken_back,
    a_step_that_may_fail_holds_up_nothing,
    a_reader_that_polls_by_number_misses_no_line,
    what_is_secret_is_never_shown,
    a_request_with_a_key_is_carried_out_once,
);

fn the_example_is_forked_and_run_and_its_steps_complete(server: TestServer) {
    let admin = server.admin();
    let example = admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note")).success();
    expect_fields(&example, EXTENSION);
    expect_fields(&example["variables"][0], EXTENSION_VARIABLE);
    assert_eq!(
        (&example["variables"][0]["extension"], &example["variables"][0]["extension_id"]),
        (&Value::Null, &example["id"])
    );
    assert_eq!(example["variables"][0]["default_value"], "world");

    let fork = admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({})).success();
    let id = started(&admin, &text(&fork["extension_id"]), &json!({"who": "ada"}));
    let done = end_of(&admin, &id);

    expect_fields(&done, EXECUTION);
    assert_eq!(
        (&done["status"], &done["exit_code"], &done["error_message"]),
        (&json!("completed"), &json!(0), &json!(""))
    );
    assert_eq!(done["variable_values"], r#"{"who":"ada"}"#);
    assert_eq!((&done["extension_id"], &done["extension"]["id"]), (&fork["id"], &fork["id"]));
    assert!(!text(&done["server_hostname"]).is_empty());
    expect_moment(&done["started_at"]);
    expect_moment(&done["completed_at"]);
    let states: Vec<String> = steps_of(&done).into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states, ["completed"; 3]);
    for (number, step) in done["steps"].as_array().unwrap().iter().enumerate() {
        expect_fields(step, EXECUTION_STEP);
        expect_id(&step["id"]);
        assert_eq!(
            (&step["step_order"], &step["execution"], &step["execution_id"]),
            (&json!(number + 1), &Value::Null, &done["id"])
        );
        expect_moment(&step["completed_at"]);
    }
    let phases: Vec<_> = done["steps"].as_array().unwrap().iter().map(|step| text(&step["phase"])).collect();
    assert_eq!(phases, ["run", "run", "validate"]);

    let greeting = server.data_dir().join("runs").join(&id).join("notes/hi.txt");
    assert_eq!(std::fs::read_to_string(greeting).unwrap(), "hello ada\n");
    let entries = admin.get("/api/v1/audit/logs?resource_type=execution").success();
    assert_eq!(entries["pagination"]["total_count"], 2);
}

fn values_that_are_not_allowed_start_nothing(server: TestServer) {
    let admin = server.admin();
    let run = |variables: Value| {
        admin.post(&format!("{EXTENSIONS}/hello-note/run"), &json!({ "variables": variables }))
    };
    for (variables, expected) in [
        (
            json!({"who": "Ada"}),
            "variables.who must be what the variable's `validation_pattern` describes, got `Ada`",
        ),
        (
            json!({"who": "ok\nrm"}),
            "variables.who must be what the variable's `validation_pattern` describes, got `ok\\nrm`",
        ),
        (json!({"who": ""}), "variables.who must be a value that is not empty"),
        (json!({"whom": "x"}), "variables.whom is not a variable of this extension, which has who"),
        (json!({"who": 7}), "variables must be an object of strings: the value of `who` is none"),
        (json!("who"), "variables must be an object of strings, got a string"),
    ] {
        let refused = run(variables);
        refused.failure(400, "validation_failed");
        assert_eq!(refused.message(), expected);
    }
    let list = admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note/executions")).success();
    assert_eq!(list["pagination"]["total_count"], 0);
    let done = end_of(&admin, &text(&run(json!({})).success()["id"]));
    assert_eq!(done["variable_values"], r#"{"who":"world"}"#);
}

fn a_failing_step_has_the_earlier_ones_taken_back(server: TestServer) {
    let (admin, (_kept, notes)) = (server.admin(), folder());
    let yaml = definition(
        &json!({"notes": {"type": "string", "is_required": true}}),
        &json!([
            command("One", "echo one >> {{ notes }}/story", "echo back one >> {{ notes }}/story"),
            command("Two", "echo two >> {{ notes }}/story; echo seen", "echo back two >> {{ notes }}/story"),
            command("Three", "echo sorry >&2; exit 7", "echo back three >> {{ notes }}/story"),
            command("Four", "echo four >> {{ notes }}/story", ""),
        ]),
        &json!([]),
    );
    let id = started(&admin, &forked(&admin, &yaml), &json!({"notes": notes}));
    let done = end_of(&admin, &id);

    assert_eq!((&done["status"], &done["exit_code"]), (&json!("failed"), &json!(7)));
    assert_eq!(done["error_message"], "step 3 `Three` failed: it ended with exit code 7");
    let expected =
        [("One", "completed", 0), ("Two", "completed", 0), ("Three", "failed", 7), ("Four", "cancelled", 0)];
    assert_eq!(
        steps_of(&done),
        expected.map(|(name, state, code)| (name.to_owned(), state.to_owned(), code))
    );
    let story = std::fs::read_to_string(format!("{notes}/story")).unwrap();
    assert_eq!(story, "one\ntwo\nback two\nback one\n");
    assert!(text(&done["steps"][1]["output"]).contains("seen\n"));
    assert!(text(&done["steps"][2]["output"]).contains("sorry\n"));
    assert!(!server.data_dir().join("runs").join(&id).exists());
}

fn a_step_that_may_fail_holds_up_nothing(server: TestServer) {
    let admin = server.admin();
    let mut first = command("May fail", "exit 3", "");
    first["ignore_errors"] = json!(true);
    let mut slow = command("Too slow", "sleep 60", "");
    (slow["ignore_errors"], slow["timeout"]) = (json!(true), json!(1));
    let yaml = definition(&json!({}), &json!([first, slow, command("Goes on", "true", "")]), &json!([]));
    let done = end_of(&admin, &started(&admin, &forked(&admin, &yaml), &json!({})));
    assert_eq!(done["status"], "completed");
    let expected = [("May fail", "failed", 3), ("Too slow", "failed", 0), ("Goes on", "completed", 0)];
    assert_eq!(
        steps_of(&done),
        expected.map(|(name, state, code)| (name.to_owned(), state.to_owned(), code))
    );
}

fn a_reader_that_polls_by_number_misses_no_line(server: TestServer) {
    let admin = server.admin();
    let count = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done";
    let yaml = definition(
        &json!({}),
        &json!([command("Count", count, ""), command("Again", count, "")]),
        &json!([]),
    );
    let id = started(&admin, &forked(&admin, &yaml), &json!({}));
    let (mut after, mut lines, mut is_over) = (0, Vec::new(), false);
    loop {
        let page = admin.get(&format!("{EXTENSIONS}/execution/{id}/logs?after_seq={after}")).success();
        let new = page["logs"].as_array().unwrap();
        assert!(new.len() <= 1000);
        for line in new {
            let seq = line["seq"].as_i64().unwrap();
            assert_eq!(seq, after + 1, "numbers have no gap");
            after = seq;
            lines.push((text(&line["level"]), text(&line["log"])));
        }
        assert_eq!(page["next_seq"], after);
        if new.is_empty() && is_over {
            break;
        }
        let now = execution(&admin, &id);
        assert!(now["log_seq"].as_i64().unwrap() >= after);
        is_over = ["completed", "failed"].contains(&now["status"].as_str().unwrap());
    }
    let printed: Vec<&str> =
        lines.iter().filter(|(level, _)| level == "runtime").map(|(_, line)| line.as_str()).collect();
    let expected: Vec<String> =
        (0..2).flat_map(|_| (0..3000).map(|number| format!("line {number}"))).collect();
    assert_eq!(printed, expected);
    let done = execution(&admin, &id);
    assert_eq!(done["log_seq"], after);
    let log = text(&done["execution_log"]);
    assert!(log.len() <= 64 * 1024, "{}", log.len());
    // There may be a line between them about the engine, of which nothing has to be removed.
    let end: Vec<&str> = log.lines().rev().take(3).collect();
    assert!(end[0] == "Completed" && end.contains(&"line 2999"), "{end:?}");
    let refused = admin.get(&format!("{EXTENSIONS}/execution/{id}/logs?after_seq=-1"));
    refused.failure(400, "validation_failed");
}

fn what_is_secret_is_never_shown(server: TestServer) {
    let admin = server.admin();
    let yaml = definition(
        &json!({"password": {"type": "string", "sensitive": true, "is_required": true}}),
        &json!([command("Show", "echo it is {{ password }}; printf %s {{ password }} | base64; exit 1", "")]),
        &json!([]),
    );
    let key = forked(&admin, &yaml);
    let id = started(&admin, &key, &json!({"password": "tr0ub4dor&3-canary"}));
    let done = end_of(&admin, &id);
    assert_eq!(done["variable_values"], r#"{"password":"[secret]"}"#);
    assert!(text(&done["steps"][0]["output"]).contains("it is [secret]\n[secret]"));
    let everything = [
        done.to_string(),
        admin.get(&format!("{EXTENSIONS}/execution/{id}/logs")).text,
        admin.get(&format!("{EXTENSIONS}/by-extension-id/{key}/executions")).text,
        admin.get("/api/v1/audit/logs?page_size=100").text,
        server.log(),
    ];
    for text in everything {
        assert!(!text.contains("canary") && !text.contains("dHIwdWI0ZG9yJjMtY2FuYXJ5"), "{text}");
    }
}

#[test]
fn values_never_become_a_part_of_a_command() {
    let server = TestServer::configured(&[super::WITH_PROGRAMS]);
    let (admin, (_kept, notes)) = (server.admin(), folder());
    let bare = command("Bare", "printf '%s|' {{ value }}", "");
    let quoted = command("Quoted", "printf '%s|' \"{{ value }}\"", "");
    let file = json!({"name": "File", "type": "file", "properties": {"action": "write", "dest": "a", "content": "{{ value }}"}});
    let yaml = definition(&json!({"value": {"type": "string"}}), &json!([bare, quoted, file]), &json!([]));
    let key = forked(&admin, &yaml);
    for payload in PAYLOADS {
        let value = payload.replace('§', &notes);
        let id = started(&admin, &key, &json!({"value": value}));
        let done = end_of(&admin, &id);
        assert_eq!(done["status"], "completed", "{payload}: {done}");
        let written = std::fs::read_to_string(server.data_dir().join("runs").join(&id).join("a")).unwrap();
        assert_eq!(written, value);
        let first = value.lines().next().unwrap_or_default();
        for step in &done["steps"].as_array().unwrap()[..2] {
            let output = text(&step["output"]);
            assert!(output.contains(first) || first.contains('\u{202e}'), "{payload}: {output}");
        }
        assert!(!std::path::Path::new(&notes).join("CANARY").exists(), "{payload}");
    }
}

fn a_request_with_a_key_is_carried_out_once(server: TestServer) {
    let admin = server.admin();
    let once = admin.with_header("idempotency-key", "one");
    let run = || once.post(&format!("{EXTENSIONS}/hello-note/run"), &json!({"variables": {"who": "ada"}}));
    let first = run().success();
    assert_eq!(run().success()["id"], first["id"]);
    once.post(&format!("{EXTENSIONS}/hello-note/run"), &json!({"variables": {"who": "eve"}}))
        .failure(409, "conflict");
    end_of(&admin, &text(&first["id"]));
    let list = admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note/executions")).success();
    assert_eq!(list["pagination"]["total_count"], 1);
    let fork = || {
        admin.with_header("idempotency-key", "two").post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({}))
    };
    assert_eq!(fork().success()["id"], fork().success()["id"]);
}
