//! Every page as each role, in both themes and at two widths, in a real browser.

use launchway_testkit::{
    browser::Browser,
    client::Client,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::{
    journey::{LOADS_FROM_ELSEWHERE, log_in, log_in_as},
    requests::Visitor,
};

/// The pages that need neither an application nor a run.
const OF_ORGANIZATION: [&str; 10] = [
    "/applications",
    "/extensions",
    "/extensions?category=Database",
    "/extensions/postgres",
    "/extensions/postgres/definition",
    "/notifications",
    "/organization",
    "/organization/deploy-key",
    "/profile",
    "/profile/two-factor",
];

/// Creates some applications, and returns the paths of every page, with the permission that it needs.
pub(crate) fn paths(server: &TestServer) -> Vec<String> {
    let admin = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let mut paths: Vec<String> = OF_ORGANIZATION.map(str::to_owned).into();
    for (name, environment) in [("Shop", "production"), ("Documentation", "production"), ("Shop", "staging")]
    {
        let spec = json!({
            "name": name, "repository": "https://git.invalid/ada/shop.git", "branch": "main", "port": 8080,
            "environment": environment, "build_pack": "dockerfile",
            "environment_variables": {"DATABASE_URL": "postgres://secret@db/shop"},
        });
        let created = admin.post("/api/v1/deploy/application", &spec).success();
        if paths.len() > OF_ORGANIZATION.len() {
            continue;
        }
        let id = created["id"].as_str().unwrap();
        let deployment = created["deployments"][0]["id"].as_str().unwrap();
        for tab in ["", "/deployments", "/log", "/variables", "/domains", "/settings"] {
            paths.push(format!("/applications/{id}{tab}"));
        }
        paths.push(format!("/deployments/{deployment}"));
        paths.push(format!("/deployments/{deployment}/rollback"));
    }
    let fork = admin.post("/api/v1/extensions/hello-note/fork", &json!({})).success();
    let fork = fork["extension_id"].as_str().unwrap();
    paths.extend([format!("/extensions/{fork}"), format!("/extensions/{fork}/definition")]);
    let run =
        admin.post("/api/v1/extensions/hello-note/run", &json!({"variables": {"who": "ada"}})).success();
    paths.push(format!("/executions/{}", run["id"].as_str().unwrap()));
    paths
}

/// The pages that only some roles see.
pub(crate) const FOR_MEMBERS: [&str; 2] = ["/applications/new", "/audit"];
/// The pages that only administrators of the installation see.
pub(crate) const FOR_ADMINS: [&str; 1] = ["/installation"];

const ROLES: [&str; 3] = ["admin", "member", "viewer"];
const PASSWORD: &str = "a password for all";

/// Adds a member with a password, and returns their address.
fn member(server: &TestServer, admin: &Client, role: &str) -> String {
    let email = format!("{role}@example.com");
    let added = admin.post("/api/v1/organizations/users", &json!({"email": email, "role": role})).success();
    let setup = json!({"token": added["setup_token"], "password": PASSWORD});
    server.client().post("/api/v1/auth/password/setup", &setup).success();
    email
}

#[test]
fn no_role_sees_a_page_with_an_error_in_its_console() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let mut paths = paths(&server);
    paths.extend(FOR_MEMBERS.iter().chain(&FOR_ADMINS).map(|path| (*path).to_owned()));
    for role in ROLES {
        let email = member(&server, &admin, role);
        let browser = Browser::start();
        log_in_as(&browser, &server, &email, PASSWORD);
        for path in &paths {
            browser.open(&format!("{}/dashboard{path}", server.url()));
            let mut errors = browser.console_errors();
            // The browser itself reports the status of a page that the role may not see.
            errors.retain(|error| !error["message"].as_str().unwrap().contains("a status of 403"));
            assert_eq!(errors, Vec::<Value>::new(), "{role} {path}");
            assert_eq!(browser.value(LOADS_FROM_ELSEWHERE), false, "{role} {path}");
        }
    }
}

#[test]
fn every_page_is_shown_to_each_role() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let paths = paths(&server);
    for role in ROLES {
        let visitor = Visitor::log_in(&server, &member(&server, &admin, role), PASSWORD);
        for path in &paths {
            let page = visitor.get(path);
            assert_eq!(page.status, 200, "{role} {path}: {}", page.text);
            let shows_secret = page.text.contains("postgres://secret@db/shop");
            assert_eq!(shows_secret, path.ends_with("/variables") && role != "viewer", "{role} {path}");
        }
        for path in FOR_MEMBERS {
            assert_eq!(visitor.get(path).status, if role == "viewer" { 403 } else { 200 }, "{role} {path}");
        }
        // Of the installation, not of an organization.
        assert_eq!(visitor.get("/installation").status, 403, "{role}");
        let rename = visitor.send("/organization", &[("name", "Engines"), ("description", "")]);
        assert_eq!(rename.status, if role == "admin" { 303 } else { 403 }, "{role}");
    }
    assert_eq!(Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD).get("/installation").status, 200);
}

#[test]
fn a_rollback_that_is_refused_is_not_offered() {
    let server = TestServer::on_sqlite();
    server.admin();
    let paths = paths(&server);
    let rollback = paths.iter().find(|path| path.ends_with("/rollback")).unwrap();
    let visitor = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let page = visitor.get(rollback);
    assert!(page.text.contains("This is not possible"), "{}", page.text);
    assert!(!page.text.contains(">Roll back</button>"), "{}", page.text);
    let sent = visitor.send(rollback, &[]);
    assert!(sent.status >= 400, "{}: {}", sent.status, sent.text);
}

#[test]
fn every_page_fits_in_both_themes_and_on_a_phone() {
    let server = TestServer::on_sqlite();
    server.admin();
    let mut paths = paths(&server);
    paths.extend(["/applications/new", "/audit", "/installation", "/nowhere"].map(str::to_owned));
    let browser = Browser::start();
    log_in(&browser, &server);
    let settings = json!({"theme": "system"});
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD).patch("/api/v1/user/settings/theme", &settings).success();
    for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)] {
        browser.prefer(scheme);
        browser.resize(width, 844, width < 500);
        for (number, path) in paths.iter().enumerate() {
            browser.open(&format!("{}/dashboard{path}", server.url()));
            let widest = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(widest <= u64::from(width), "{path} is {widest} wide of {width}");
            let dark = browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 24)";
            assert_eq!(dark, scheme == "dark", "{path}");
            assert_eq!(browser.value("document.querySelectorAll('h1').length"), 1, "{path}");
            let nameless = "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
                .filter(e => !e.labels.length && !e.ariaLabel).length";
            assert_eq!(browser.value(nameless), 0, "{path} has a field without a label");
            browser.picture(&format!("page-{number:02}-{scheme}-{width}.png"));
        }
        let errors: Vec<Value> = browser.console_errors();
        let expected = |error: &&Value| !error["message"].as_str().unwrap().contains("404");
        assert_eq!(errors.iter().filter(expected).count(), 0, "{errors:?}");
    }
}

#[test]
fn settings_of_the_visitor_take_effect() {
    let server = TestServer::on_sqlite();
    server.admin();
    let visitor = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let settings = [("theme", "dark"), ("font_family", "mono"), ("font_size", "20"), ("language", "de")];
    assert_eq!(visitor.send("/profile/settings", &settings).status, 303);
    let page = visitor.get("/applications").text;
    let attributes = "data-theme=\"dark\" data-font=\"mono\" data-size=\"20\" data-language=\"de\"";
    assert!(page.contains(attributes), "{page}");
    let refused = visitor.send(
        "/profile/settings",
        &[("theme", "dark"), ("font_family", "mono"), ("font_size", "33"), ("language", "de")],
    );
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("font_size must be between 8 and 32, got 33"), "{}", refused.text);
}
