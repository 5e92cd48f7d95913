//! Actions on the machine are restricted to its administrators.

use launchway_testkit::{people::join, server::TestServer};
use serde_json::{Value, json};

use super::{EXTENSIONS, command, definition, end_of, forked, started};

super::with_programs!(only_installation_administrators_act_on_the_machine);

fn only_installation_administrators_act_on_the_machine(server: TestServer) {
    let ada = server.admin();
    let grace = join(&server, &ada, "grace@example.com", "admin").log_in();
    grace.post(&format!("{EXTENSIONS}/hello-note/run"), &json!({})).failure(403, "forbidden");
    let host_steps: [Value; 3] = [
        command("A", "true", ""),
        json!({"name": "A", "type": "service", "properties": {"action": "restart", "name": "nginx"}}),
        json!({"name": "A", "type": "user", "properties": {"action": "create", "name": "bob"}}),
    ];
    for step in host_steps {
        let yaml = definition(&json!({}), &json!([step]), &json!([]));
        let refused = grace.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({"yaml_content": yaml}));
        refused.failure(403, "forbidden");
        assert_eq!(refused.message(), "this needs an administrator of the installation");
        ada.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({"yaml_content": yaml})).success();
    }
    // Copying is not defining; running is checked separately.
    let copy = grace.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({})).success();
    let copy = copy["extension_id"].as_str().unwrap();
    grace.post(&format!("{EXTENSIONS}/{copy}/run"), &json!({})).failure(403, "forbidden");

    let files = json!([
        {"name": "A", "type": "file", "properties": {"action": "write", "dest": "{{ workspace }}/a/b.txt", "content": "hi {{ who }}"}},
        {"name": "B", "type": "file", "properties": {"action": "copy", "src": "a", "dest": "c"}},
        {"name": "C", "type": "file", "properties": {"action": "move", "src": "c/b.txt", "dest": "d.txt"}},
        {"name": "D", "type": "file", "properties": {"action": "delete", "dest": "a"}},
    ]);
    let key = forked(
        &grace,
        &definition(&json!({"who": {"type": "string", "default": "ada"}}), &files, &json!([])),
    );
    let id = started(&grace, &key, &json!({}));
    let done = end_of(&grace, &id);
    assert_eq!(done["status"], "completed", "{done}");
    let workspace = server.data_dir().join("runs").join(&id);
    assert_eq!(std::fs::read_to_string(workspace.join("d.txt")).unwrap(), "hi ada");
    assert!(!workspace.join("a").exists());
}
