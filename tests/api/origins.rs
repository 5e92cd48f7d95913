//! Cross-origin pages can neither change nor read anything.

use launchway_testkit::{
    client::Client,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

const THEME: &str = "/api/v1/user/settings/theme";

#[test]
fn a_page_of_another_origin_changes_nothing() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let address = server.address();
    let foreign = [
        "https://evil.example".to_owned(),
        "null".to_owned(),
        String::new(),
        "http://localhost".to_owned(),
        format!("http://{address}.evil.example"),
        format!("http://evil.example/{address}"),
        format!("http://evil.example?{address}"),
        format!("http://evil@{address}"),
        format!("ftp://{address}"),
        format!("http://{address}/"),
        format!("http://{address}, https://evil.example"),
        address.to_owned(),
    ];
    for origin in foreign {
        let page = admin.with_header("origin", &origin);
        page.patch(THEME, &json!({"theme": "evil"})).failure(403, "forbidden");
        page.post("/api/v1/auth/logout", &json!({})).failure(403, "forbidden");
        page.delete("/api/v1/auth/tokens/01980000-0000-7000-8000-0000000000ff").failure(403, "forbidden");
        let login = json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD});
        server
            .client()
            .with_header("origin", &origin)
            .post("/api/v1/auth/login", &login)
            .failure(403, "forbidden");
        page.get("/api/v1/user").success();
    }
    assert_eq!(admin.get("/api/v1/user/settings").success()["theme"], "light");
}

#[test]
fn the_first_administrator_cannot_be_made_by_a_page() {
    let server = TestServer::on_sqlite();
    let body = json!({"email": ADMIN_EMAIL, "username": "eve", "password": ADMIN_PASSWORD});
    let page = server.client().with_header("origin", "https://evil.example");
    page.post("/api/v1/auth/register", &body).failure(403, "forbidden");
    assert_eq!(server.client().get("/api/v1/auth/is-admin-registered").success()["admin_registered"], false);
}

#[test]
fn a_page_of_the_own_host_may_change_things() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let changed = |client: &Client| client.patch(THEME, &json!({"theme": "dark"})).success();
    changed(&admin.with_header("origin", server.url()));
    changed(&admin.with_header("origin", &server.url().to_uppercase().replace("HTTP", "http")));
    changed(
        &admin.with_header("origin", "https://deploy.example.com").with_header("host", "deploy.example.com"),
    );
    changed(&admin);
}

#[test]
fn a_page_of_the_public_url_may_change_things() {
    let server = TestServer::configured(&[("LAUNCHWAY_PUBLIC_URL", "https://deploy.example.com/")]);
    let admin = server.admin();
    let page = |origin: &str| admin.with_header("origin", origin).patch(THEME, &json!({"theme": "dark"}));
    page("https://deploy.example.com").success();
    page("http://deploy.example.com").failure(403, "forbidden");
    page("https://deploy.example.com:8443").failure(403, "forbidden");
    page("https://deploy.example.com.evil.example").failure(403, "forbidden");
}

#[test]
fn no_page_of_another_origin_may_read_an_answer() {
    let server = TestServer::configured(&[("LAUNCHWAY_PUBLIC_URL", "https://deploy.example.com")]);
    let admin = server.admin();
    for origin in ["https://evil.example", "https://deploy.example.com", "null"] {
        let page = admin
            .with_header("origin", origin)
            .with_header("access-control-request-method", "PATCH")
            .with_header("access-control-request-headers", "authorization");
        for answer in [
            page.get("/api/v1/user"),
            page.get("/api/v1/openapi.json"),
            page.get("/nothing"),
            page.patch(THEME, &json!({"theme": "dark"})),
            page.send("OPTIONS", THEME, None),
        ] {
            let of_cors = answer.headers.keys().find(|name| name.starts_with("access-control-"));
            assert_eq!(of_cors, None, "{answer:?}");
        }
    }
}
