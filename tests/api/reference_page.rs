//! The API reference in a real browser.

use launchway_testkit::{browser::Browser, server::TestServer};
use serde_json::{Value, json};

use crate::wait::until;

/// The size that the page may have when it is compressed.
const LARGEST: usize = 100 * 1024;

#[test]
fn the_page_is_small_and_allows_nothing_from_elsewhere() {
    let server = TestServer::on_sqlite();
    let answer = server.client().get("/docs");
    let policy = &answer.headers["content-security-policy"];
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && policy.contains("connect-src 'self'"), "{policy}");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, answer.text.as_bytes()).unwrap();
    let size = encoder.finish().unwrap().len();
    assert!(size <= LARGEST, "{size}");
}

#[test]
fn the_page_can_be_searched_and_sends_requests() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let token = admin.post("/api/v1/auth/tokens", &json!({"name": "page"})).success()["token"].clone();
    let browser = Browser::start();
    browser.open(&format!("{}/docs", server.url()));
    browser.picture("light.png");

    // Every operation has an anchor and a link to it.
    let anchors =
        "[...document.querySelectorAll('nav li a')].every(a => document.getElementById(a.hash.slice(1)))";
    assert_eq!(browser.value(anchors), true);
    let operations = browser.value("document.querySelectorAll('article form').length").as_u64().unwrap();
    assert!(operations > 80, "{operations}");

    let shown = "[...document.querySelectorAll('article')].filter(a => !a.hidden).map(a => a.id)";
    let search = |text: &str| {
        let set = format!("document.getElementById('search').value = {}", json!(text));
        browser.run(&format!("{set}; document.getElementById('search').dispatchEvent(new Event('input'));"));
        browser.value(shown)
    };
    assert_eq!(search("patch theme"), json!(["change_theme"]));
    assert_eq!(search("launchway rollback"), json!(["roll_back"]));
    let command = "document.querySelector('#roll_back pre + p + pre').textContent";
    assert_eq!(browser.value(command), "launchway rollback <DEPLOYMENT>");
    assert_eq!(search("nothing has this name"), json!([]));
    assert!(search("").as_array().unwrap().len() > 80);

    // The navigation follows the place that is read.
    browser.run("location.hash = '#list_deployments';");
    let current = "document.querySelector('nav a[aria-current]')?.hash";
    until("the navigation at the operation", || {
        (browser.value(current) == "#list_deployments").then_some(())
    });

    // A request with a token that only the page has.
    let send = format!(
        "document.getElementById('token').value = {token};
         document.querySelector('#user form').requestSubmit();"
    );
    browser.run(&send);
    let answer = until("the response", || {
        let text = browser.value("document.querySelector('#user form pre').textContent");
        text.as_str().filter(|text| text.starts_with("200")).map(str::to_owned)
    });
    assert!(answer.contains("\"email\": \"ada@example.com\""), "{answer}");
    let kept = "localStorage.length + sessionStorage.length + document.cookie.length";
    assert_eq!(browser.value(kept), 0);
    let hosts = "performance.getEntriesByType('resource').every(e => e.name.startsWith(location.origin))";
    assert_eq!(browser.value(hosts), true);

    // Both themes show the badges of methods, and a narrow screen shows everything.
    let style = |name: &str| {
        browser.value(&format!("getComputedStyle(document.querySelector('.method.get')).{name}"))
    };
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        assert_eq!(
            (style("color"), style("backgroundColor")),
            (json!("rgb(255, 255, 255)"), json!("rgb(5, 80, 174)"))
        );
    }
    browser.picture("dark.png");
    browser.resize(390, 844, true);
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true);");
    assert_eq!(browser.value("document.documentElement.scrollWidth"), 390);
    browser.picture("narrow.png");
    assert_eq!(browser.console_errors(), Vec::<Value>::new());
}
