//! The proxy's error pages.

use serde_json::json;

use super::{harness, page, site, status};
use crate::{
    docker::deployments::{
        harness::{DEPLOY, spec},
        repository::running,
    },
    wait::until,
};

#[test]
fn every_reason_has_a_page_of_its_own_and_gives_nothing_away() {
    let harness = harness();
    let unknown = harness.server.visitor("nobody.example.com").with_header("accept", "text/html").get("/");
    assert_eq!(unknown.status, 404);
    assert!(unknown.headers["content-type"].starts_with("text/html"), "{unknown:?}");
    assert!(!unknown.text.contains("nobody.example.com"), "{unknown:?}");

    // None is live yet, from the start.
    let broken = harness.repository("broken");
    broken.write("Dockerfile", running("exit 1")).commit();
    let (_, deployment) = harness.create(&spec("broken", &broken));
    let absent = harness.server.visitor("broken.ada-s-team.localhost").get("/");
    assert_eq!(absent.status, 503, "{absent:?}");
    harness.failed(&deployment);
    assert_eq!(status(&harness, "broken.ada-s-team.localhost"), 503);

    // Stopped, and started again.
    let repository = harness.repository("web");
    repository.commit_page("hello");
    let (id, deployment) = harness.create_live(&spec("web", &repository));
    let host = "web.ada-s-team.localhost";
    assert_eq!(page(&harness, host), "hello");
    harness.admin.post(&format!("{DEPLOY}/stop"), &json!({"id": id})).success();
    until("the page of what is stopped", || (status(&harness, host) == 503).then_some(()));
    let stopped = harness.server.visitor(host).with_header("accept", "text/html").get("/");
    assert!(stopped.text.contains("stopped"), "{stopped:?}");
    harness.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": id})).success();
    until("the page itself", || (status(&harness, host) == 200).then_some(()));

    assert_eq!(page(&harness, host), "hello");
    let restarted = harness.deployment(deployment["id"].as_str().unwrap());
    let container = restarted["container_id"].as_str().unwrap();
    for answer in [&unknown, &absent, &stopped] {
        for secret in ["10.192.", "launchway-data", container] {
            assert!(!answer.text.contains(secret), "{secret}: {answer:?}");
        }
    }

    harness.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    until("the page of an unknown name", || (status(&harness, host) == 404).then_some(()));
    let repository = harness.repository("site");
    repository.write("index.html", "a site").commit();
    harness.create_live(&site("site", &repository));
    assert_eq!(page(&harness, "site.ada-s-team.localhost"), "a site");
}

#[test]
fn the_metrics_count_what_each_application_was_asked() {
    let harness = harness();
    let repository = harness.repository("site");
    repository.write("index.html", "a site").commit();
    let (id, _) = harness.create_live(&site("site", &repository));
    for _ in 0..3 {
        page(&harness, "site.ada-s-team.localhost");
    }
    harness.server.visitor("site.ada-s-team.localhost").get("/missing");
    let count =
        |status: &str| format!("launchway_proxy_requests_total{{application=\"{id}\",status=\"{status}\"}}");
    until("the numbers", || {
        let text = harness.server.client().get("/metrics").text;
        let has = |line: String| text.lines().any(|other| other == line);
        (has(format!("{} 3", count("2xx"))) && has(format!("{} 1", count("4xx")))).then_some(())
    });
    let log = std::fs::read_to_string(harness.server.data_dir().join("proxy/access.log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(&id)).count(), 4, "{log}");
}
