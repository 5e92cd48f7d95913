//! The plots of an application, over a real container and the front proxy.

use launchway_testkit::{accessibility::Axe, browser::Browser, repository::web_server, wait::until};
use serde_json::{Value, json};

use crate::{
    harness::{DEPLOY, Harness},
    journey::log_in,
};

#[test]
fn an_overview_shows_what_an_application_uses() {
    let harness = Harness::new();
    let deployment = harness.deploy("Shop", &web_server(""));
    until("the end of the deployment", || {
        let found = harness.admin.get(&format!("{DEPLOY}/deployments/{deployment}")).success();
        (found["status"]["status"] == "deployed").then_some(())
    });
    let found = harness.admin.get(&format!("{DEPLOY}/deployments/{deployment}")).success();
    let id = found["application_id"].as_str().unwrap();
    let browser = Browser::start();
    log_in(&browser, &harness.server);
    harness.admin.patch("/api/v1/user/settings/theme", &json!({"theme": "system"})).success();
    browser.open(&format!("{}/dashboard/applications/{id}", harness.server.url()));
    let host = browser.value("document.querySelector('#overview .plain code').textContent");
    let visitor = harness.server.visitor(host.as_str().unwrap());
    let titles = "[...document.querySelectorAll('.plots figcaption span')].map(each => each.textContent)";
    until("all plots", || {
        assert_eq!(visitor.get("/").status, 200);
        (browser.value(titles) == json!(["CPU", "Memory", "Requests per minute"])).then_some(())
    });
    let labels = "[...document.querySelectorAll('.plot')].map(each => each.getAttribute('aria-label'))";
    let labels = browser.value(labels);
    let labels: Vec<&str> = labels.as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
    assert!(labels[0].starts_with("CPU of the last ") && labels[0].contains(" %"), "{labels:?}");
    assert!(labels[1].contains("iB, highest "), "{labels:?}");
    // More than the rate of health checks, of which there is none here.
    until("a line of requests", || {
        assert_eq!(visitor.get("/").status, 200);
        let shown = browser.value("document.querySelectorAll('.plots strong')[2]?.textContent");
        (shown.as_str()?.parse::<u64>().ok()? > 0).then_some(())
    });
    let drawn = "[...document.querySelectorAll('.plot polyline')].every(each => each.getBBox().width > 0)";
    assert_eq!(browser.value(drawn), true);
    let axe = Axe::load();
    for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)] {
        browser.prefer(scheme);
        browser.resize(width, 1400, width < 500);
        for (name, path) in
            [("overview", format!("/applications/{id}")), ("installation", "/installation".into())]
        {
            browser.open(&format!("{}/dashboard{path}", harness.server.url()));
            until("the page", || (browser.value("document.readyState") == "complete").then_some(()));
            assert_eq!(axe.violations(&browser), Vec::<Value>::new(), "{name} {scheme} {width}");
            let widest = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(widest <= u64::from(width), "{name} is {widest} wide of {width}");
            browser.picture(&format!("{name}-{scheme}-{width}.png"));
        }
    }
    assert_eq!(browser.console_errors(), Vec::<Value>::new());
}
