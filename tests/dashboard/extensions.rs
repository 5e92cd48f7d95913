//! Extensions in a real browser: find one, fill in its form, watch its run, uninstall it.

use launchway_testkit::{browser::Browser, server::TestServer};
use serde_json::{Value, json};

use crate::journey::log_in;

#[test]
fn an_extension_is_found_run_and_uninstalled() {
    let programs = ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let server = TestServer::configured(&[programs, ("LAUNCHWAY_MAX_BUILDS", "4")]);
    let admin = server.admin();
    let browser = Browser::start();
    log_in(&browser, &server);

    // The catalog, by category and by text.
    browser.click(".side [href$=extensions]");
    browser.wait_for("document.querySelectorAll('.cards .name').length === 18");
    browser.open(&format!("{}/dashboard/extensions?category=Database", server.url()));
    let names = "[...document.querySelectorAll('.cards .name')].map(each => each.textContent)";
    assert!(browser.value(names).as_array().unwrap().contains(&json!("PostgreSQL")));
    browser.open(&format!("{}/dashboard/extensions?search=greeting", server.url()));
    assert_eq!(browser.value(names), json!(["Hello note"]));

    // The form has the defaults and the rules; a refused value stays in its field.
    browser.click(".cards .name");
    browser.wait_for("document.querySelector('[name=\"variable.who\"]')?.value === 'world'");
    browser.fill("[name='variable.who']", "WORLD");
    browser.click("main form .primary");
    browser.wait_for("document.querySelector('.error')");
    let error = browser.value("document.querySelector('.error').textContent");
    assert!(error.as_str().unwrap().contains("variables.who must be"), "{error}");
    assert_eq!(browser.value("document.querySelector('[name=\"variable.who\"]').value"), "WORLD");

    // A run, whose log is followed to its end.
    browser.fill("[name='variable.who']", "grace");
    browser.click("main form .primary");
    browser.wait_for("location.pathname.startsWith('/dashboard/executions/')");
    browser.wait_for("'ended' in document.querySelector('#log').dataset");
    browser.wait_for("document.querySelector('#progress .state').textContent === 'completed'");
    assert_eq!(browser.value("document.querySelectorAll('.steps .done').length"), 3);
    let run = browser.value("location.pathname.split('/').pop()");
    let logs = format!("/api/v1/extensions/execution/{}/logs", run.as_str().unwrap());
    let lines = admin.get(&logs).success()["logs"].clone();
    let lines: Vec<_> = lines.as_array().unwrap().iter().map(|line| line["log"].clone()).collect();
    let shown = "[...document.querySelectorAll('#log .line span')].map(each => each.textContent)";
    assert_eq!(browser.value(shown), json!(lines));

    // Uninstall it, after a question.
    browser.click(".crumbs a:last-child");
    browser.wait_for("document.querySelector('#runs .state.good')");
    browser.run("document.querySelector('.danger form').removeAttribute('data-confirm')");
    browser.click(".danger button");
    browser.wait_for("document.querySelector('.notice')");
    // The browser itself reports the status of the refused form.
    let mut errors = browser.console_errors();
    errors.retain(|error| !error["message"].as_str().unwrap().contains("a status of 400"));
    assert_eq!(errors, Vec::<Value>::new());
}

#[test]
fn an_extension_is_forked_changed_and_deleted() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let browser = Browser::start();
    log_in(&browser, &server);
    let page = |key: &str| format!("{}/dashboard/extensions/{key}", server.url());
    let error = "document.querySelector('main > .error').textContent";
    let key = || browser.value("location.pathname.split('/').pop()").as_str().unwrap().to_owned();

    // The field has the definition as it is stored; a refused one stays, with the words of the API.
    browser.open(&page("hello-note"));
    browser.click("[href$=definition]");
    browser.wait_for("document.querySelector('textarea')");
    let stored = admin.get("/api/v1/extensions/by-extension-id/hello-note").success()["yaml_content"].clone();
    assert_eq!(browser.value("document.querySelector('textarea').value"), stored);
    browser.fill("textarea", "metadata: {}");
    browser.click("main form .primary");
    browser.wait_for("document.querySelector('main > .error')");
    let refusal =
        admin.post("/api/v1/extensions/hello-note/fork", &json!({"yaml_content": "metadata: {}"})).message();
    assert_eq!(browser.value(error), refusal);
    assert_eq!(browser.value("document.querySelector('textarea').value"), "metadata: {}");

    // A changed definition is that of the fork, which cannot be forked itself.
    let changed = stored.as_str().unwrap().replace("name: Hello note", "name: Good morning");
    assert_ne!(changed, stored);
    browser.run(&format!("document.querySelector('textarea').value = {}", json!(changed)));
    browser.click("main form .primary");
    browser.wait_for("document.querySelector('h1').textContent === 'Good morning'");
    let fork = admin.get(&format!("/api/v1/extensions/by-extension-id/{}", key())).success();
    assert_eq!(
        (&fork["yaml_content"], &fork["parent_extension_id"]),
        (&json!(changed), &json!("hello-note"))
    );
    browser.click("[href$=definition]");
    browser.wait_for("document.querySelector('pre.wrapped')");
    assert_eq!(browser.value("document.querySelector('pre.wrapped').textContent"), changed);
    assert_eq!(browser.value("document.querySelector('textarea')"), Value::Null);

    // An unchanged definition is a copy with a name of its own.
    browser.open(&page("hello-note/definition"));
    browser.click("main form .primary");
    browser.wait_for("document.querySelector('.notice')");
    assert_eq!(browser.value("document.querySelector('h1').textContent"), "Hello note (Fork)");
    let copy = key();
    browser.run("document.querySelector('.danger form').removeAttribute('data-confirm')");
    browser.click(".danger button");
    browser.wait_for("document.querySelector('.notice') && document.querySelector('.cards')");
    assert_eq!(admin.get(&format!("/api/v1/extensions/by-extension-id/{copy}")).status, 404);
}
