//! Every page by the rules of WCAG 2.2 AA, in both themes and at two widths.

use launchway_testkit::{
    accessibility::Axe,
    browser::Browser,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::{
    journey::log_in,
    pages::{FOR_ADMINS, FOR_MEMBERS, paths},
};

/// The themes and widths, in pixels.
const VIEWS: [(&str, u32); 4] = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)];

/// Opens the pages in both themes at both widths, and returns every violation.
fn violations(browser: &Browser, axe: &Axe, server: &TestServer, paths: &[String]) -> Vec<Value> {
    let mut all = Vec::new();
    for (scheme, width) in VIEWS {
        browser.prefer(scheme);
        browser.resize(width, 844, width < 500);
        for path in paths {
            browser.open(&format!("{}/dashboard{path}", server.url()));
            browser.run("for (const each of document.querySelectorAll('details')) each.open = true;");
            let found = axe.violations(browser);
            all.extend(found.into_iter().map(|each| json!([format!("{path} {scheme} {width}"), each])));
        }
    }
    all
}

#[track_caller]
fn assert_none(violations: &[Value]) {
    let lines: Vec<_> = violations.iter().map(Value::to_string).collect();
    assert!(lines.is_empty(), "{} violations:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn no_page_violates_wcag_2_2_aa() {
    let server = TestServer::on_sqlite();
    server.admin();
    let mut paths = paths(&server);
    paths.extend(FOR_MEMBERS.iter().chain(&FOR_ADMINS).map(|path| (*path).to_owned()));
    paths.push("/nowhere".to_owned());
    let browser = Browser::start();
    log_in(&browser, &server);
    let settings = json!({"theme": "system"});
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD).patch("/api/v1/user/settings/theme", &settings).success();
    let axe = Axe::load();
    assert_none(&violations(&browser, &axe, &server, &paths));

    // The control: a text that is hard to read, and a field without a name.
    browser.run(
        "document.querySelector('h1').style.color = '#888'; document.querySelector('h1').style.background = '#999';
         document.querySelector('main').append(document.createElement('textarea'));",
    );
    let spoiled = axe.violations(&browser);
    let rules: Vec<_> = spoiled.iter().map(|each| each["rule"].as_str().unwrap()).collect();
    assert!(rules.contains(&"color-contrast") && rules.contains(&"label"), "{spoiled:?}");
}

#[test]
fn no_page_before_the_login_violates_wcag_2_2_aa() {
    let server = TestServer::on_sqlite();
    let browser = Browser::start();
    let axe = Axe::load();
    assert_none(&violations(&browser, &axe, &server, &["/register".to_owned()]));
    server.admin();
    let paths = ["/login", "/login?done=logged-out", "/join"].map(str::to_owned);
    assert_none(&violations(&browser, &axe, &server, &paths));
    browser.fill("[name=token]", "unknown");
    browser.fill("[name=password]", ADMIN_PASSWORD);
    browser.click("form button");
    browser.wait_for("document.querySelector('.error')");
    assert_none(&axe.violations(&browser));
}
