//! All errors of a body are reported, by field name.

use launchway_testkit::{client::Client, server::TestServer};
use serde_json::{Value, json};

const THEME: &str = "/api/v1/user/settings/theme";
const FONT: &str = "/api/v1/user/settings/font";

#[test]
fn what_is_no_json_object_is_refused_as_such() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for body in [
        "{",
        "}",
        "{}{}",
        "{} x",
        "[]",
        "null",
        "true",
        "1",
        "\"theme\"",
        "theme=dark",
        "{'theme': 'dark'}",
        "{\"theme\": \"dark\",}",
        "{\"theme\" \"dark\"}",
        "{\"theme\": \"dark\"",
        "{\"theme\": NaN}",
        "{\"theme\": \"\\ud800\"}",
        "{\"theme\": \"a\nb\"}",
        "\u{feff}{\"theme\": \"dark\"}",
        "// no comment\n{}",
        "<theme>dark</theme>",
    ] {
        admin.send("PATCH", THEME, Some(body)).failure(400, "invalid_json");
    }
    assert_eq!(admin.get("/api/v1/user/settings").success()["theme"], "light");
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let server = TestServer::on_sqlite();
    let mut connection = server.connect();
    connection.send("POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 22\r\n\r\n");
    connection.send(b"{\"password\": \"\xff\xfe\xfd\xfc\"  }");
    connection.answer().failure(400, "invalid_json");
}

#[test]
fn an_empty_body_counts_as_an_empty_object() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for body in [None, Some(""), Some("  \r\n\t"), Some("{}"), Some(" { } ")] {
        assert_eq!(admin.send("PATCH", THEME, body).failure(400, "validation_failed"), "theme is required");
    }
}

#[test]
fn fields_that_do_not_exist_are_named_all_at_once() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let body = json!({"theme": "dark", "them": 1, "THEME": "x", "a\nb": null});
    let message = admin.patch(THEME, &body).failure(400, "unknown_field");
    let mut problems: Vec<_> = message.split("; ").collect();
    problems.sort_unstable();
    assert_eq!(
        problems,
        [
            "THEME is not a field of this request",
            "a\\nb is not a field of this request",
            "them is not a field of this request"
        ]
    );
    let long = "x".repeat(10_000);
    let mut body = json!({"theme": "dark"});
    body[&long] = json!(1);
    let message = admin.patch(THEME, &body).failure(400, "unknown_field");
    assert!(message.len() < 200, "{message}");
    assert_eq!(admin.get("/api/v1/user/settings").success()["theme"], "light");
}

#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let body = json!({"font_family": "a;b", "font_size": 70_000});
    assert_eq!(
        admin.patch(FONT, &body).failure(400, "validation_failed"),
        "font_family must be 1 to 50 letters, digits, spaces, `_` or `-`, got `a;b`; \
         font_size must be between 8 and 32, got 70000"
    );
    let body = json!({"font_family": 1, "font_size": "x", "size": 2});
    assert_eq!(
        admin.patch(FONT, &body).failure(400, "unknown_field"),
        "font_family must be a string, got a number; font_size must be a whole number, got a string; \
         size is not a field of this request"
    );
}

#[test]
fn values_of_a_wrong_type_are_refused_by_their_type() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for (value, kind) in [
        (json!(true), "a boolean"),
        (json!(1), "a number"),
        (json!(1.5), "a number"),
        (json!(["dark"]), "an array"),
        (json!({"theme": "dark"}), "an object"),
    ] {
        let message = admin.patch(THEME, &json!({"theme": value})).failure(400, "validation_failed");
        assert_eq!(message, format!("theme must be a string, got {kind}"));
    }
}

#[test]
fn nul_characters_are_refused_wherever_they_are() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let login = |email: &str, password: &str| {
        server.client().post("/api/v1/auth/login", &json!({"email": email, "password": password}))
    };
    let refused = [
        admin.patch("/api/v1/user/name", &json!({"name": "a\0b"})),
        admin.patch(THEME, &json!({"theme\0": "dark"})),
        admin.patch(THEME, &json!({"theme": {"a": ["\0"]}})),
        login("ada@example.com\0", "correct horse battery"),
        login("ada@example.com", "correct horse battery\0"),
    ];
    for answer in refused {
        answer.failure(400, "validation_failed");
    }
    admin.send("PATCH", THEME, Some("{\"theme\": \"a\0b\"}")).failure(400, "invalid_json");
}

#[test]
fn a_body_may_be_nested_32_levels_deep_and_no_deeper() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    // The object around it is one level.
    let nested =
        |levels: usize| format!("{{\"theme\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    let message = admin.send("PATCH", THEME, Some(&nested(32))).failure(400, "validation_failed");
    assert_eq!(message, "theme must be a string, got an array");
    for levels in [33, 127, 128, 129, 1000, 500_000] {
        admin.send("PATCH", THEME, Some(&nested(levels))).failure(400, "invalid_json");
    }
    let objects = "{\"theme\":".repeat(100_000);
    admin.send("PATCH", THEME, Some(&objects)).failure(400, "invalid_json");
    kept(&admin, "dark");
}

#[test]
fn numbers_that_no_type_holds_are_refused_politely() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for number in ["1e400", "-1e400", "99999999999999999999999999", "1e-400", "-0", "16.5", "33.0"] {
        let answer = admin.send("PATCH", FONT, Some(&format!("{{\"font_size\": {number}}}")));
        assert_eq!(answer.status, 400, "{answer:?}");
        let code = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(["invalid_json", "validation_failed"].contains(&code.as_str()), "{answer:?}");
    }
    // A fraction of zero is none.
    assert_eq!(admin.send("PATCH", FONT, Some("{\"font_size\": 18.0}")).success()["font_size"], 18);
}

#[test]
fn of_a_field_given_twice_there_is_one_value() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let settings = admin.send("PATCH", THEME, Some(r#"{"theme": "first", "theme": "second"}"#)).success();
    assert_eq!(admin.get("/api/v1/user/settings").success()["theme"], settings["theme"]);
}

#[test]
fn an_answer_names_at_most_20_unknown_fields() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let named = |count: usize| {
        let mut body = json!({"theme": "dark"});
        for number in 0..count {
            body[format!("unknown{number}")] = json!(1);
        }
        admin.patch(THEME, &body).failure(400, "unknown_field").matches("is not a field").count()
    };
    assert_eq!((named(20), named(21)), (20, 20));
}

#[test]
fn free_text_comes_back_as_it_was_sent() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for name in ["Zoë", "名前", "👩‍🚀", "e\u{301}", "<img src=x onerror=alert(1)>", "{{7*7}}"] {
        let body = json!({"name": name});
        let user = admin.patch("/api/v1/user/name", &body).success();
        assert_eq!(user["username"], name);
        assert_eq!(admin.get("/api/v1/user").success()["username"], name);
    }
    for hidden in ["\u{202e}reversed", "a\u{200b}da", "a\u{7}da"] {
        admin.patch("/api/v1/user/name", &json!({"name": hidden})).failure(400, "validation_failed");
    }
}

#[track_caller]
fn kept(admin: &Client, theme: &str) {
    let settings: Value = admin.patch(THEME, &json!({"theme": theme})).success();
    assert_eq!(settings["theme"], theme);
}

#[test]
fn an_application_can_be_sent_back_as_it_was_shown() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let spec = json!({
        "name": "site", "repository": "https://git.example.com/site.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static", "environment_variables": {"NAME": "value"},
    });
    let made = admin.post("/api/v1/deploy/application", &spec).success();
    let shown = &made["environment_variables"];
    assert_eq!(shown, r#"{"NAME":"value"}"#);
    let path = format!("/api/v1/deploy/application?id={}", made["id"].as_str().unwrap());
    let put = |query: &str, body: &Value| admin.put(&format!("{path}{query}"), body);

    let renamed = put("", &json!({"name": "shop", "port": 80.0, "environment_variables": shown})).success();
    assert_eq!((&renamed["name"], &renamed["environment_variables"]), (&json!("shop"), shown));
    for same in [json!({}), json!({"name": "shop", "environment_variables": shown})] {
        for query in ["", "&redeploy=false"] {
            let refused = put(query, &same).failure(400, "validation_failed");
            assert_eq!(refused, "there is nothing to change");
        }
        assert_eq!(put("&redeploy=true", &same).success()["name"], "shop");
    }
    let message = put("", &json!({"environment_variables": "[1]"})).failure(400, "validation_failed");
    assert!(message.starts_with("environment_variables must be an object of strings"), "{message}");
}
