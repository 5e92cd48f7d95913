//! Invalid definitions, each with its error.

use launchway_testkit::server::TestServer;
use serde_json::json;

use super::{EXTENSIONS, command, definition};

fn refusal(server: &TestServer, yaml: &str) -> String {
    let admin =
        server.log_in(launchway_testkit::server::ADMIN_EMAIL, launchway_testkit::server::ADMIN_PASSWORD);
    let refused = admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({"yaml_content": yaml}));
    refused.failure(400, "validation_failed");
    refused.message()
}

#[test]
fn every_problem_is_reported_with_its_line_and_its_key() {
    let server = TestServer::on_sqlite();
    server.admin();
    let yaml = "metadata:\n  id: x\n  name: X\n  description: d\n  author: a\n  icon: i\n  category: Fun\n  type: run\n\
                execution:\n  run:\n    - name: A\n      type: magic\n      properties: {}\n";
    let message = refusal(&server, yaml);
    assert!(
        message.starts_with(
            "yaml_content is not a valid definition: line 7: `metadata.category` must be one of Security, "
        ),
        "{message}"
    );
    assert!(
        message.contains("; line 12: `execution.run[0].type` must be one of command, file, docker, "),
        "{message}"
    );
}

#[test]
fn bombs_are_refused() {
    let server = TestServer::on_sqlite();
    server.admin();
    let valid = definition(&json!({}), &json!([command("A", "true", "")]), &json!([]));
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let below = vec![format!("*a{}", level - 1); 9].join(",");
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    let keys: String = (0..20_000).map(|number| format!("k{number}: x\n")).collect();
    let pattern = |pattern: &str| {
        definition(
            &json!({"x": {"type": "string", "validation_pattern": pattern}}),
            &json!([command("A", "true", "")]),
            &json!([]),
        )
    };
    for (yaml, expected) in [
        (bomb.as_str(), "aliases"),
        (&"[".repeat(60_000), "too deep"),
        (&"{a: ".repeat(50_000), "too deep"),
        (&keys, "holds too much"),
        ("a: 1\na: 2", "`a` is there twice"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("a: !!python/object 1", "tags"),
        (&format!("{valid}{}", " ".repeat(256 * 1024)), "more than 256 KiB"),
        (&pattern("((a{0,100}){0,100}){0,100}"), "validation_pattern"),
        (&pattern("(?=a)"), "validation_pattern"),
        (&pattern(&"(".repeat(300)), "validation_pattern"),
    ] {
        let message = refusal(&server, yaml);
        assert!(message.contains(expected), "{message}");
        assert!(message.len() < 20_000);
    }
}
