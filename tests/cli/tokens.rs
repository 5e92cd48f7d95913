//! API tokens.

use launchway_testkit::server::TestServer;
use serde_json::json;

use crate::person::Person;

#[test]
fn a_token_is_printed_alone_used_and_revoked() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let create = ["tokens", "create", "ci", "--permission", "deploy:read", "--expires", "90d"];
    let created = ada.runs(&create);
    let token = created.succeeded().trim().to_owned();
    assert!(
        token.starts_with("lwa_") && !token.contains('\n') && !created.stderr.contains(&token),
        "{created}"
    );
    let script = Person::new().with("LAUNCHWAY_URL", server.url()).with("LAUNCHWAY_TOKEN", &token);
    script.runs(&["apps"]).succeeded();
    script.runs(&["members", "list"]).failed(3);
    // A token cannot manage tokens.
    script.runs(&["tokens", "list"]).failed(3);

    let listed = ada.runs(&["tokens", "list", "--output", "json"]).json();
    assert_eq!((&listed[0]["name"], &listed[0]["permissions"]), (&json!("ci"), &json!(["deploy:read"])));
    let shown = ada.runs(&["tokens", "list"]);
    assert!(shown.succeeded().contains("deploy:read") && !shown.stdout.contains(&token), "{shown}");

    ada.runs(&["tokens", "revoke", "ci"]).failed(2);
    ada.runs(&["tokens", "revoke", "ci", "--yes"]).succeeded();
    script.runs(&["apps"]).failed(3);
    let gone = ada.runs(&["tokens", "revoke", "ci", "--yes"]);
    assert!(gone.failed(4).contains("tokens list"), "{gone}");
}

#[test]
fn a_token_is_revoked_by_its_id_too() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    ada.runs(&["tokens", "create", "ci"]).succeeded();
    ada.runs(&["tokens", "create", "ci"]).failed(5);
    let listed = ada.runs(&["tokens", "list", "--output", "json"]).json();
    ada.runs(&["tokens", "revoke", listed[0]["id"].as_str().unwrap(), "--yes"]).succeeded();
    assert_eq!(ada.runs(&["tokens", "list", "--output", "json"]).json(), json!([]));
}

#[test]
fn an_end_that_is_none_is_refused() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let output = ada.runs(&["tokens", "create", "ci", "--expires", "soon"]);
    assert!(output.failed(2).contains("90d"), "{output}");
    ada.runs(&["tokens", "create", "ci", "--permission", "deploy:dance"]).failed(2);
    let whole =
        ada.runs(&["tokens", "create", "ci", "--expires", "2100-01-31T00:00:00Z", "--output", "json"]).json();
    assert_eq!(whole["expires_at"], "2100-01-31T00:00:00.000000Z");
}
