//! The pictures of the README and of docs/dashboard.md: `LAUNCHWAY_TEST_SCREENSHOTS` is the folder to write them to.

use launchway_testkit::{browser::Browser, repository::web_server, wait::until};
use serde_json::{Value, json};

use crate::{
    harness::{DEPLOY, Harness},
    journey::{LOADS_FROM_ELSEWHERE, log_in},
};

#[test]
fn a_running_installation_is_shown_in_both_themes() {
    let harness = Harness::new();
    let talk = "RUN for part in cart catalog checkout search; do echo \"Compiled $part\"; done";
    let shop = harness.deploy("Shop", &web_server(talk));
    let others = [
        harness.publish("Documentation", &json!({"domain": "docs.example.com"})),
        harness.publish("Status page", &json!({"environment": "staging"})),
        harness.publish("Newsletter", &json!({"branch": "nowhere"})),
    ];
    let admin = &harness.admin;
    for id in others.iter().chain([&shop]) {
        let ended = until("the end of a deployment", || {
            let found = admin.get(&format!("{DEPLOY}/deployments/{id}")).success();
            ["deployed", "failed"].contains(&found["status"]["status"].as_str().unwrap()).then_some(found)
        });
        // A temporary folder says nothing to readers.
        let path = format!("{DEPLOY}?id={}", ended["application_id"].as_str().unwrap());
        let name = admin.get(&path).success()["name"].as_str().unwrap().to_lowercase().replace(' ', "-");
        let repository = json!({"repository": format!("https://git.example.com/{name}.git")});
        admin.put(&format!("{path}&redeploy=false"), &repository).success();
    }
    for (email, role) in [("grace@example.com", "member"), ("alan@example.com", "viewer")] {
        admin.post("/api/v1/organizations/users", &json!({"email": email, "role": role})).success();
    }
    let detail = admin.get(&format!("{DEPLOY}/deployments/{shop}")).success();
    let application = detail["application_id"].as_str().unwrap().to_owned();

    let browser = Browser::start();
    log_in(&browser, &harness.server);
    admin.patch("/api/v1/user/settings/theme", &json!({"theme": "system"})).success();
    browser.resize(1120, 860, false);
    browser.devtools("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
    let show = |scheme: &str, path: &str, ready: &str, name: &str| {
        browser.prefer(scheme);
        browser.open(&format!("{}/dashboard{path}", harness.server.url()));
        browser.wait_for(ready);
        browser.picture(name);
        assert_eq!(browser.console_errors(), Vec::<Value>::new(), "{path}");
        assert_eq!(browser.value(LOADS_FROM_ELSEWHERE), false, "{path}");
    };
    let (deployment, followed) = (
        format!("/deployments/{shop}"),
        "document.querySelector('#log').textContent.includes('Deployed in')",
    );
    let lists = "document.querySelectorAll('.state').length > 3";
    show("light", "/applications", lists, "1-applications.webp");
    show("light", "/applications/new", "document.querySelector('[data-call] pre').textContent", "2-new.webp");
    show("light", &deployment, followed, "dashboard-light.webp");
    show("dark", &deployment, followed, "dashboard-dark.webp");
    let overview = format!("/applications/{application}");
    let visitor = harness.server.visitor("shop.ada-s-team.localhost");
    browser.open(&format!("{}/dashboard{overview}", harness.server.url()));
    // A picture is worth the wait for a few samples, which are ten seconds apart; without one, the first is enough.
    let enough = std::env::var_os("LAUNCHWAY_TEST_SCREENSHOTS").map_or(1, |_| 4);
    until("plots with some samples", || {
        assert_eq!(visitor.get("/").status, 200);
        let samples = browser.value("document.querySelector('.plots polyline')?.points.length");
        (samples.as_u64()? >= enough).then_some(())
    });
    show("dark", &overview, "document.querySelector('#overview .line')", "4-application.webp");
    show("dark", "/extensions", "document.querySelector('.cards .name')", "5-extensions.webp");
    show(
        "dark",
        "/organization",
        "document.querySelectorAll('tbody tr').length === 3",
        "6-organization.webp",
    );
}
