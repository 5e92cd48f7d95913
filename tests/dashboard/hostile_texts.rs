//! Stored texts that would run in a careless page.

use launchway_testkit::{
    browser::Browser,
    repository::Repository,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
    wait::until,
};
use serde_json::{Value, json};

use crate::journey::log_in;

/// Would set a variable of the page in a text, in an attribute, in a URL and in a script.
const HOSTILE: &str = "\"'><img src=x onerror=hit=1><script>hit=1</script>{{7*7}}</title></textarea>";

#[test]
fn no_stored_text_runs_in_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (path, repositories) = (std::env::var("PATH").unwrap(), folder.path().display().to_string());
    let settings = [("PATH", path.as_str()), ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &repositories)];
    let server = TestServer::configured(&settings);
    let admin = server.admin();
    let name = "<img src=x onerror=hit=1>";
    admin.patch("/api/v1/user/name", &json!({"username": name})).success();
    admin.put("/api/v1/organizations", &json!({"name": name, "description": HOSTILE})).success();
    admin.post("/api/v1/auth/tokens", &json!({"name": "\"'><img src=x onerror=hit=1>"})).success();
    let repository = Repository::empty(folder.path().join("site"));
    repository.write(&format!("{}.html", "a&lt;script&gt;"), HOSTILE).commit();
    let spec = json!({
        "name": "Shop", "repository": format!("file://{}", repository.path().display()), "branch": "main",
        "port": 8080, "environment": "production", "build_pack": "static", "labels": ["\"'><img src=x onerror=hit=1>"],
        "base_path": "/<img src=x onerror=hit=1>", "environment_variables": {"A": HOSTILE},
    });
    let created = admin.post("/api/v1/deploy/application", &spec).success();
    let (id, deployment) =
        (created["id"].as_str().unwrap(), created["deployments"][0]["id"].as_str().unwrap());
    until("the end of the deployment", || {
        let path = format!("/api/v1/deploy/application/deployments/{deployment}");
        (admin.get(&path).success()["status"]["status"] == "failed").then_some(())
    });
    // A client may call itself anything.
    let login = json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD});
    server.client().with_header("user-agent", HOSTILE).post("/api/v1/auth/login", &login).success();

    let definition = json!({
        "metadata": {"id": "note", "name": name, "description": HOSTILE, "author": HOSTILE, "icon": "<", "type": "run",
            "category": "Utility", "version": "1.0.0", "isVerified": false},
        "variables": {"text": {"type": "string", "description": HOSTILE, "default": HOSTILE, "is_required": true}},
        "execution": {"run": [{"name": name, "type": "command", "properties": {"cmd": "echo {{ text }}"}}]},
    });
    let fork = json!({"yaml_content": definition.to_string()});
    let fork = admin.post("/api/v1/extensions/hello-note/fork", &fork).success()["extension_id"].clone();
    let fork = fork.as_str().unwrap();
    let run = admin
        .post(&format!("/api/v1/extensions/{fork}/run"), &json!({"variables": {"text": HOSTILE}}))
        .success();

    let browser = Browser::start();
    log_in(&browser, &server);
    let mut paths: Vec<String> = [
        "/applications",
        "/organization",
        "/profile",
        "/audit",
        "/extensions?search=%3Cimg",
        "/notifications",
        "/installation",
        "/applications?search=%22%3E%3Cscript%3Ehit=1%3C/script%3E",
    ]
    .map(str::to_owned)
    .into();
    for tab in ["", "/deployments", "/log", "/variables", "/domains", "/settings"] {
        paths.push(format!("/applications/{id}{tab}"));
    }
    paths.push(format!("/extensions/{fork}"));
    paths.push(format!("/extensions/{fork}/definition"));
    paths.push(format!("/executions/{}", run["id"].as_str().unwrap()));
    paths.push(format!("/deployments/{deployment}"));
    for path in paths {
        browser.open(&format!("{}/dashboard{path}", server.url()));
        if path.starts_with("/deployments/") || path.starts_with("/executions/") {
            browser.wait_for("'ended' in document.querySelector('#log').dataset");
        }
        assert_eq!(browser.value("typeof hit"), "undefined", "{path}");
        assert_eq!(browser.value("document.querySelectorAll('[onerror], main script').length"), 0, "{path}");
        assert_eq!(browser.console_errors(), Vec::<Value>::new(), "{path}");
    }
}
