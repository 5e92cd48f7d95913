//! The envelope of responses without a handler, and the headers of every response.

use launchway_testkit::server::TestServer;
use serde_json::json;

#[test]
fn an_unknown_path_is_answered_in_the_envelope() {
    let server = TestServer::on_sqlite();
    let long = format!("/{}", "x".repeat(5000));
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/api/v1/nothing",
        "/api/v2/user",
        "/api/v1/user/",
        "/api/v1//user",
        "/API/V1/USER",
        "/api/v1/user/settings/themes",
        "/favicon.ico",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/%ff%fe",
        "/docs/../secret.key",
        &long,
    ] {
        for method in ["GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"] {
            let answer = server.client().send(method, path, None);
            let message = answer.failure(404, "route_not_found");
            assert!(message.len() < 1000, "{message}");
        }
    }
}

#[test]
fn a_known_path_with_another_method_lists_its_methods() {
    let server = TestServer::on_sqlite();
    for (method, path, allow) in [
        ("POST", "/api/v1/auth/is-admin-registered", "GET, HEAD"),
        ("GET", "/api/v1/auth/login", "POST"),
        ("HEAD", "/api/v1/auth/login", "POST"),
        ("PUT", "/api/v1/auth/tokens", "GET, HEAD, POST"),
        ("GET", "/api/v1/auth/tokens/01980000-0000-7000-8000-0000000000ff", "DELETE"),
        ("POST", "/api/v1/user/settings/theme", "PATCH"),
        ("PUT", "/api/v1/user/settings/auto-update", "PATCH"),
        ("OPTIONS", "/api/v1/user", "GET, HEAD"),
        ("TRACE", "/api/v1/user", "GET, HEAD"),
        ("BREW", "/api/v1/user", "GET, HEAD"),
        ("GET", "/api/v1/notification/webhook", "POST, PUT"),
        ("PUT", "/api/v1/api/v1/notification/webhook", "POST"),
        ("PATCH", "/api/v1/notification/webhook/slack", "DELETE, GET, HEAD"),
        ("PATCH", "/api/v1/notification/smtp", "DELETE, GET, HEAD, POST, PUT"),
        ("DELETE", "/health", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
        ("POST", "/docs", "GET, HEAD"),
    ] {
        let mut connection = server.connect();
        connection.send(format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        if method == "HEAD" {
            let answer = connection.answer_without_body();
            assert_eq!((answer.status, answer.headers["allow"].as_str()), (405, allow));
            continue;
        }
        let answer = connection.answer();
        answer.failure(405, "method_not_allowed");
        assert_eq!(answer.headers["allow"], allow, "{method} {path}");
    }
}

#[test]
fn whoever_may_get_may_ask_for_the_head_alone() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for path in [
        "/health",
        "/ready",
        "/docs",
        "/api/v1/openapi.json",
        "/api/v1/auth/is-admin-registered",
        "/api/v1/user",
    ] {
        let (get, head) = (admin.get(path), admin.send("HEAD", path, None));
        assert_eq!((head.status, head.text.as_str()), (200, ""), "{path}");
        assert_eq!(head.headers["content-type"], get.headers["content-type"], "{path}");
        assert_eq!(head.headers.get("content-length"), get.headers.get("content-length"), "{path}");
    }
    // The connection is not confused by a body that must not come.
    let mut connection = server.connect();
    connection.send("HEAD /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(connection.answer_without_body().status, 200);
    connection.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
    connection.answer().success();
    assert_eq!(server.client().send("HEAD", "/api/v1/user", None).status, 401);
    assert_eq!(server.client().send("HEAD", "/nothing", None).status, 404);
}

#[test]
fn json_comes_back_whatever_is_accepted() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for accept in
        ["application/json", "*/*", "text/html", "image/png;q=0.9", "nonsense", "", "application/xml"]
    {
        let caller = admin.with_header("accept", accept);
        caller.get("/api/v1/user").success();
        caller.get("/nothing").failure(404, "route_not_found");
        caller.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    }
}

#[test]
fn a_body_is_read_whatever_its_type_is_said_to_be() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let types = [
        "application/json",
        "application/json; charset=utf-8",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "*/*",
        "nonsense",
        "",
    ];
    for content_type in types {
        let caller = admin.with_header("content-type", content_type);
        caller.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    }
    let token = authorization(&server);
    let mut connection = server.connect();
    connection.send(format!(
        "PATCH /api/v1/user/settings/theme HTTP/1.1\r\nhost: localhost\r\n{token}content-length: 17\r\n\r\n{{\"theme\": \"none\"}}"
    ));
    assert_eq!(connection.answer().success()["theme"], "none");
}

#[test]
fn answers_are_not_kept_and_their_type_is_not_guessed() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for answer in [admin.get("/api/v1/user"), admin.get("/nothing"), server.client().get("/api/v1/user")] {
        assert_eq!(answer.headers["cache-control"], "no-store", "{answer:?}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{answer:?}");
        assert!(!answer.headers.contains_key("server") && !answer.headers.contains_key("x-powered-by"));
        assert!(!answer.headers.contains_key("set-cookie"));
    }
}

#[test]
fn a_query_that_nobody_asked_for_does_no_harm() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let user = admin.get("/api/v1/user").success();
    for query in
        ["?", "?a", "?a=1&a=2", "?id=%00", "?%ff", "?id=01980000-0000-7000-8000-0000000000ff", "?&&=&"]
    {
        assert_eq!(admin.get(&format!("/api/v1/user{query}")).success(), user, "{query}");
    }
}

#[test]
fn unknown_parameters_are_named_in_a_header() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let named = |path: &str| admin.get(path).headers.get("x-unknown-parameters").cloned();
    let list = "/api/v1/deploy/applications";
    assert_eq!(named(&format!("{list}?page=1&pageSize=5&page_size=5&search=a&status=running")), None);
    assert_eq!(named(list), None);
    assert_eq!(named(&format!("{list}?sort=name&page=1&serach=a&sort=id")).as_deref(), Some("serach, sort"));
    // Also where nothing is read, in failures, and whatever the name is.
    assert_eq!(named("/api/v1/user?id=1").as_deref(), Some("id"));
    assert_eq!(named("/api/v1/deploy/application?x=1").as_deref(), Some("x"));
    assert_eq!(named("/health?%C3%A4%0D%0A=1").as_deref(), Some("\\u{e4}\\r\\n"));
    let many: String = (0..30).map(|number| format!("{number:02}&")).collect();
    assert_eq!(named(&format!("/health?{many}")).unwrap().split(", ").count(), 20);
}

/// Returns the `Authorization` header of a new session.
fn authorization(server: &TestServer) -> String {
    use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
    let login = json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD});
    let session = server.client().post("/api/v1/auth/login", &login).success();
    format!("authorization: Bearer {}\r\n", session["access_token"].as_str().unwrap())
}
