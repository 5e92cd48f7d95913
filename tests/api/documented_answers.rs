//! Responses conform to the OpenAPI document.

use launchway_testkit::{
    client::Client,
    external::{Authority, Reply, TestReceiver},
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::{openapi::printed_document, wait::until};

/// A request: its method, its path, the path as documented, and its body.
type Asked<'a> = (&'a str, &'a str, &'a str, Option<&'a Value>);

#[test]
fn answers_have_the_form_that_is_documented() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let token = admin.post("/api/v1/auth/tokens", &json!({"name": "first"})).success();
    let revoked = format!("/api/v1/auth/tokens/{}", token["id"].as_str().unwrap());
    let login = json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD});
    let nothing = json!({});
    expect_documented(
        &server,
        &admin,
        &[
            ("GET", "/health", "/health", None),
            ("GET", "/api/v1/health", "/api/v1/health", None),
            ("GET", "/ready", "/ready", None),
            ("GET", "/api/v1/auth/is-admin-registered", "/api/v1/auth/is-admin-registered", None),
            ("POST", "/api/v1/auth/login", "/api/v1/auth/login", Some(&login)),
            ("POST", "/api/v1/auth/tokens", "/api/v1/auth/tokens", Some(&json!({"name": "second"}))),
            ("GET", "/api/v1/auth/tokens", "/api/v1/auth/tokens", None),
            ("DELETE", &revoked, "/api/v1/auth/tokens/{id}", None),
            ("GET", "/api/v1/user", "/api/v1/user", None),
            ("PATCH", "/api/v1/user/name", "/api/v1/user/name", Some(&json!({"name": "Ada"}))),
            ("GET", "/api/v1/user/organizations", "/api/v1/user/organizations", None),
            ("GET", "/api/v1/user/settings", "/api/v1/user/settings", None),
            (
                "PATCH",
                "/api/v1/user/settings/theme",
                "/api/v1/user/settings/theme",
                Some(&json!({"theme": "a"})),
            ),
            ("POST", "/api/v1/auth/two-factor/setup", "/api/v1/auth/two-factor/setup", Some(&nothing)),
            ("POST", "/api/v1/auth/logout", "/api/v1/auth/logout", Some(&nothing)),
        ],
    );
}

#[test]
fn answers_about_applications_have_the_form_that_is_documented() {
    const DEPLOY: &str = "/api/v1/deploy/application";
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let mut spec = json!({
        "name": "shop", "repository": "registry.example/shop", "port": 8080, "environment": "production",
        "build_pack": "image", "domain": "shop.example.com", "labels": ["a"],
        "environment_variables": {"A": "b"},
    });
    let application = admin.post(DEPLOY, &spec).success();
    let (id, deployment) = (&application["id"], &application["deployments"][0]["id"]);
    let by_id = json!({ "id": id });
    let (id, deployment_id) = (id.as_str().unwrap(), deployment.as_str().unwrap());
    spec["name"] = json!("second");
    spec["domain"] = json!("");
    let of_query = format!("{DEPLOY}?id={id}");
    let one = format!("{DEPLOY}/deployments/{deployment_id}");
    let cancelled = json!({ "id": deployment });
    let identity = Authority::new().vouch_for(&["shop.example.com"]);
    let certificate = json!({
        "id": id, "domain": "shop.example.com",
        "certificate": identity.certificate, "private_key": identity.key,
    });
    let of_domain = json!({ "id": id, "domain": "shop.example.com" });
    let (certificates, hsts) = (format!("{DEPLOY}/certificates"), format!("{DEPLOY}/hsts"));
    let missing = format!("{DEPLOY}/source/blocks/missing");
    expect_documented(
        &server,
        &admin,
        &[
            ("POST", DEPLOY, DEPLOY, Some(&spec)),
            ("PUT", &certificates, &certificates, Some(&certificate)),
            ("PUT", &hsts, &hsts, Some(&of_domain)),
            ("GET", &of_query, DEPLOY, None),
            ("GET", "/api/v1/deploy/applications", "/api/v1/deploy/applications", None),
            ("GET", &format!("{DEPLOY}/deployments?id={id}"), &format!("{DEPLOY}/deployments"), None),
            ("GET", &one, &format!("{DEPLOY}/deployments/{{deployment_id}}"), None),
            ("GET", &format!("{one}/logs"), &format!("{DEPLOY}/deployments/{{deployment_id}}/logs"), None),
            ("GET", &format!("{DEPLOY}/logs/{id}"), &format!("{DEPLOY}/logs/{{application_id}}"), None),
            (
                "POST",
                &format!("{DEPLOY}/cancel-deployment"),
                &format!("{DEPLOY}/cancel-deployment"),
                Some(&cancelled),
            ),
            ("POST", &format!("{DEPLOY}/redeploy"), &format!("{DEPLOY}/redeploy"), Some(&by_id)),
            ("POST", &missing, &missing, Some(&json!({"blocks": ["a".repeat(64)]}))),
            ("DELETE", &hsts, &hsts, Some(&of_domain)),
            ("DELETE", &certificates, &certificates, Some(&of_domain)),
            ("PUT", &of_query, DEPLOY, Some(&json!({"port": 9090}))),
            ("DELETE", &of_query, DEPLOY, None),
            ("GET", "/api/v1/organizations/deploy-key", "/api/v1/organizations/deploy-key", None),
            ("POST", "/api/v1/organizations/deploy-key", "/api/v1/organizations/deploy-key", None),
        ],
    );
}

#[test]
fn events_of_a_stream_have_the_form_that_is_documented() {
    const DEPLOYMENTS: &str = "/api/v1/deploy/application/deployments";
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let spec = json!({
        "name": "shop", "repository": "registry.example/shop", "port": 8080, "environment": "production",
        "build_pack": "image",
    });
    let deployment =
        admin.post("/api/v1/deploy/application", &spec).success()["deployments"][0]["id"].clone();
    admin.post("/api/v1/deploy/application/cancel-deployment", &json!({ "id": deployment })).success();
    let stream = admin.get(&format!("{DEPLOYMENTS}/{}/logs/stream", deployment.as_str().unwrap()));

    let document = printed_document();
    let operation = &document["paths"][format!("{DEPLOYMENTS}/{{deployment_id}}/logs/stream")]["get"];
    let schema = &operation["responses"]["200"]["content"]["text/event-stream"]["schema"];
    let (mut problems, mut kinds) = (Vec::new(), Vec::new());
    for event in stream.text.split_terminator("\n\n") {
        let fields = event.lines().filter_map(|line| line.split_once(": "));
        let event: Value = fields.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        compare(&document, schema, &event, "event", &mut problems);
        kinds.push(event["event"].as_str().unwrap().to_owned());
        if event["event"] == "log" {
            let line: Value = serde_json::from_str(event["data"].as_str().unwrap()).unwrap();
            compare(
                &document,
                &json!({"$ref": "#/components/schemas/ApplicationLog"}),
                &line,
                "line",
                &mut problems,
            );
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(kinds.len() >= 2 && kinds.last().is_some_and(|kind| kind == "end"), "{kinds:?}");
}

#[test]
fn answers_about_webhooks_have_the_form_that_is_documented() {
    const SECRET: &str = "/api/v1/deploy/application/webhook-secret";
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let spec = json!({
        "name": "site", "repository": "https://git.example.com/site.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static",
    });
    let site = admin.post("/api/v1/deploy/application", &spec).success();
    let path = format!("{SECRET}?id={}", site["id"].as_str().unwrap());
    expect_documented(&server, &admin, &[("POST", &path, SECRET, None), ("GET", &path, SECRET, None)]);
    let secret = admin.get(&path).success()["secret"].as_str().unwrap().to_owned();
    let host =
        server.client().with_header("x-gitlab-event", "Push Hook").with_header("x-gitlab-token", &secret);
    let push = json!({
        "ref": "refs/heads/main", "after": "a".repeat(40), "project": {"git_http_url": "https://git.example.com/site"},
    });
    let webhooks = ["/api/v1/webhook", "/api/v1/api/v1/webhook"];
    expect_documented(&server, &host, &webhooks.map(|path| ("POST", path, path, Some(&push))));
}

#[test]
fn answers_about_previews_have_the_form_that_is_documented() {
    const PREVIEWS: &str = "/api/v1/deploy/application/previews";
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let spec = json!({
        "name": "site", "repository": "https://git.example.com/site.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static",
    });
    let site = admin.post("/api/v1/deploy/application", &spec).success();
    let id = site["id"].as_str().unwrap();
    let settings = format!("{PREVIEWS}/settings");
    let of_site = format!("{settings}?id={id}");
    let on = json!({"enabled": true, "shared_variables": ["A"], "environment_variables": {"B": "c"}});
    admin.put(&of_site, &on).success();
    let secret = admin.get(&format!("/api/v1/deploy/application/webhook-secret?id={id}")).success();
    let host = server
        .client()
        .with_header("x-gitlab-event", "Merge Request Hook")
        .with_header("x-gitlab-token", secret["secret"].as_str().unwrap());
    let request = |number: i64, source: i64| {
        json!({
            "object_kind": "merge_request", "project": {"git_http_url": "https://git.example.com/site"},
            "object_attributes": {
                "iid": number, "action": "open", "source_branch": "next", "target_branch": "main",
                "source_project_id": source, "target_project_id": 15, "last_commit": {"id": "a".repeat(40)},
            },
        })
    };
    for (number, source) in [(7, 15), (8, 16)] {
        host.post("/api/v1/webhook", &request(number, source)).success();
    }
    let approve = format!("{PREVIEWS}/approve");
    let approved = json!({"id": id, "number": 8, "commit": "a".repeat(40)});
    let asked: &[Asked<'_>] = &[
        ("GET", &of_site, &settings, None),
        ("PUT", &of_site, &settings, Some(&json!({"limit": 2}))),
        ("GET", &format!("{PREVIEWS}?id={id}"), PREVIEWS, None),
        ("POST", &approve, &approve, Some(&approved)),
    ];
    expect_documented(&server, &admin, asked);
}

#[test]
fn answers_about_extensions_have_the_form_that_is_documented() {
    const EXTENSIONS: &str = "/api/v1/extensions";
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let fork = admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({})).success();
    let fork = format!("{EXTENSIONS}/{}", fork["extension_id"].as_str().unwrap());
    let execution = admin.post(&format!("{EXTENSIONS}/hello-note/run"), &json!({})).success();
    let execution = format!("{EXTENSIONS}/execution/{}", execution["id"].as_str().unwrap());
    let by_id = format!("{EXTENSIONS}/by-extension-id/hello-note");
    let nothing = json!({});
    expect_documented(
        &server,
        &admin,
        &[
            ("GET", EXTENSIONS, EXTENSIONS, None),
            ("GET", &format!("{EXTENSIONS}/categories"), &format!("{EXTENSIONS}/categories"), None),
            ("GET", &by_id, &format!("{EXTENSIONS}/by-extension-id/{{extension_id}}"), None),
            (
                "GET",
                &format!("{by_id}/executions"),
                &format!("{EXTENSIONS}/by-extension-id/{{extension_id}}/executions"),
                None,
            ),
            ("GET", &execution, &format!("{EXTENSIONS}/execution/{{execution_id}}"), None),
            (
                "GET",
                &format!("{execution}/logs"),
                &format!("{EXTENSIONS}/execution/{{execution_id}}/logs"),
                None,
            ),
            ("POST", &format!("{fork}/run"), &format!("{EXTENSIONS}/{{extension_id}}/run"), Some(&nothing)),
            (
                "POST",
                &format!("{EXTENSIONS}/hello-note/fork"),
                &format!("{EXTENSIONS}/{{extension_id}}/fork"),
                Some(&nothing),
            ),
            (
                "POST",
                &format!("{fork}/uninstall"),
                &format!("{EXTENSIONS}/{{extension_id}}/uninstall"),
                Some(&nothing),
            ),
            ("DELETE", &fork, &format!("{EXTENSIONS}/{{extension_id}}"), None),
        ],
    );
}

#[test]
fn answers_about_notifications_have_the_form_that_is_documented() {
    const NOTIFICATION: &str = "/api/v1/notification";
    let receiver = TestReceiver::answering(|number, _| Reply::Status(if number == 0 { 500 } else { 204 }));
    let allowed = format!("127.0.0.1/32:{}", receiver.port);
    let server = TestServer::configured(&[
        ("LAUNCHWAY_OUTBOUND_ALLOW", &allowed),
        ("LAUNCHWAY_NOTIFICATION_RETRIES", "1h"),
    ]);
    let admin = server.admin();
    let [webhook, smtp] = ["webhook", "smtp"].map(|kind| format!("{NOTIFICATION}/{kind}"));
    let doubled = |path: &str| format!("/api/v1{path}");
    let by_type = format!("{webhook}/{{type}}");
    let spec = |kind: &str| json!({"type": kind, "webhook_url": receiver.url()});
    expect_documented(&server, &admin, &[("POST", &webhook, &webhook, Some(&spec("generic")))]);
    // A pending delivery, until the channel is switched off.
    let member = json!({"email": "grace@example.com", "role": "viewer"});
    admin.post("/api/v1/organizations/users", &member).success();
    let _one = receiver.wait_for(1);
    let off = json!({"type": "generic", "is_active": false});
    let mail = json!({"host": "smtp.example.com", "from_email": "launchway@example.com"});
    let try_it = json!({"channel": "generic"});
    let deliveries = format!("{NOTIFICATION}/deliveries");
    expect_documented(
        &server,
        &admin,
        &[
            ("POST", &doubled(&webhook), &doubled(&webhook), Some(&spec("slack"))),
            ("PUT", &webhook, &webhook, Some(&off)),
            ("GET", &deliveries, &deliveries, None),
            ("PUT", &webhook, &webhook, Some(&json!({"type": "generic", "is_active": true}))),
            ("GET", &format!("{webhook}/generic"), &by_type, None),
            ("POST", &format!("{webhook}/generic/secret"), &format!("{webhook}/generic/secret"), None),
            ("POST", &format!("{NOTIFICATION}/test"), &format!("{NOTIFICATION}/test"), Some(&try_it)),
            ("POST", &smtp, &smtp, Some(&mail)),
            ("GET", &smtp, &smtp, None),
            ("PUT", &smtp, &smtp, Some(&json!({"port": 25}))),
            ("DELETE", &smtp, &smtp, None),
            ("POST", &smtp, &smtp, Some(&mail)),
            ("DELETE", &doubled(&smtp), &doubled(&smtp), None),
        ],
    );
    let dead = until("a dead delivery", || {
        let found = admin.get(&format!("{deliveries}?state=dead")).success();
        found["deliveries"].get(0).map(|delivery| delivery["id"].as_str().unwrap().to_owned())
    });
    let replay = format!("{deliveries}/{dead}/replay");
    let pattern = format!("{deliveries}/{{delivery_id}}/replay");
    expect_documented(&server, &admin, &[("POST", &replay, &pattern, None)]);
    expect_documented(&server, &admin, &[("DELETE", &format!("{webhook}/generic"), &by_type, None)]);
}

fn expect_documented(server: &TestServer, admin: &Client, requests: &[Asked<'_>]) {
    let document = printed_document();
    for &(method, path, pattern, body) in requests {
        let answer = admin.send(method, path, body.map(Value::to_string).as_deref());
        answer.success();
        let responses = &document["paths"][pattern][method.to_lowercase()]["responses"];
        let schema = &responses["200"]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {pattern} documents no answer");
        let mut problems = Vec::new();
        compare(&document, schema, &answer.json(), pattern, &mut problems);
        assert!(problems.is_empty(), "{problems:#?}");
        // Rejected callers get the other documented form.
        let failure = &responses["503"]["content"]["application/json"]["schema"];
        compare(&document, failure, &server.client().get("/nothing").json(), pattern, &mut problems);
        assert!(problems.is_empty(), "{problems:#?}");
    }
}

/// Reports where `value` does not conform to `schema`.
fn compare(document: &Value, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        return compare(document, target, value, place, problems);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = |choice: &Value| {
            let mut problems = Vec::new();
            compare(document, choice, value, place, &mut problems);
            problems.is_empty()
        };
        if !choices.iter().any(fits) {
            problems.push(format!("{place} is none of its forms: {value}"));
        }
        return;
    }
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let parts: Vec<_> = parts.map(|part| resolved(document, part)).collect();
    let is_whole = parts.is_empty();
    for part in parts.into_iter().chain(is_whole.then_some(schema)) {
        compare_type(part, value, place, problems);
    }
    compare_fields(document, schema, value, place, problems);
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        compare(document, &schema["items"], item, &format!("{place}[{number}]"), problems);
    }
}

fn compare_type(schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    let own = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_allowed = match &schema["type"] {
        Value::String(allowed) => allowed == own,
        Value::Array(allowed) => allowed.iter().any(|allowed| allowed == own),
        _ => true,
    };
    if !is_allowed {
        problems.push(format!("{place} is {own} instead of {}", schema["type"]));
    }
}

fn compare_fields(document: &Value, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return };
    let parts = schema["allOf"].as_array().into_iter().flatten().map(|part| resolved(document, part));
    let parts: Vec<_> = parts.chain([schema]).collect();
    let documented = |name: &str| parts.iter().find_map(|part| part["properties"].get(name));
    for (name, item) in object {
        match documented(name) {
            Some(field) => compare(document, field, item, &format!("{place}.{name}"), problems),
            None => problems.push(format!("{place}.{name} is not documented")),
        }
    }
    for name in parts.iter().filter_map(|part| part["required"].as_array()).flatten() {
        if !object.contains_key(name.as_str().unwrap()) {
            problems.push(format!("{place}.{name} is missing"));
        }
    }
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().map(|reference| reference.trim_start_matches('#'));
    pointer.map_or(schema, |pointer| document.pointer(pointer).unwrap())
}
