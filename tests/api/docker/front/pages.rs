//! The proxy's error pages.

use serde_json::json;

use super::{page, site, stage, status};
use crate::{
    docker::deployments::{
        repository::running,
        stage::{DEPLOY, spec},
    },
    wait::until,
};

#[test]
fn every_reason_has_a_page_of_its_own_and_gives_nothing_away() {
    let stage = stage();
    let unknown = stage.server.visitor("nobody.example.com").with_header("accept", "text/html").get("/");
    assert_eq!(unknown.status, 404);
    assert!(unknown.headers["content-type"].starts_with("text/html"), "{unknown:?}");
    assert!(!unknown.text.contains("nobody.example.com"), "{unknown:?}");

    // None is live yet, from the start.
    let broken = stage.repository("broken");
    broken.write("Dockerfile", running("exit 1")).commit();
    let (_, deployment) = stage.create(&spec("broken", &broken));
    let absent = stage.server.visitor("broken.ada-s-team.localhost").get("/");
    assert_eq!(absent.status, 503, "{absent:?}");
    stage.failed(&deployment);
    assert_eq!(status(&stage, "broken.ada-s-team.localhost"), 503);

    // Stopped, and started again.
    let repository = stage.repository("web");
    repository.commit_page("hello");
    let (id, deployment) = stage.create_live(&spec("web", &repository));
    let host = "web.ada-s-team.localhost";
    assert_eq!(page(&stage, host), "hello");
    stage.admin.post(&format!("{DEPLOY}/stop"), &json!({"id": id})).success();
    until("the page of what is stopped", || (status(&stage, host) == 503).then_some(()));
    let stopped = stage.server.visitor(host).with_header("accept", "text/html").get("/");
    assert!(stopped.text.contains("stopped"), "{stopped:?}");
    stage.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": id})).success();
    until("the page itself", || (status(&stage, host) == 200).then_some(()));

    assert_eq!(page(&stage, host), "hello");
    let restarted = stage.deployment(deployment["id"].as_str().unwrap());
    let container = restarted["container_id"].as_str().unwrap();
    for answer in [&unknown, &absent, &stopped] {
        for secret in ["10.192.", "launchway-data", container] {
            assert!(!answer.text.contains(secret), "{secret}: {answer:?}");
        }
    }

    stage.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    until("the page of an unknown name", || (status(&stage, host) == 404).then_some(()));
    let repository = stage.repository("site");
    repository.write("index.html", "a site").commit();
    stage.create_live(&site("site", &repository));
    assert_eq!(page(&stage, "site.ada-s-team.localhost"), "a site");
}

#[test]
fn the_metrics_count_what_each_application_was_asked() {
    let stage = stage();
    let repository = stage.repository("site");
    repository.write("index.html", "a site").commit();
    let (id, _) = stage.create_live(&site("site", &repository));
    for _ in 0..3 {
        page(&stage, "site.ada-s-team.localhost");
    }
    stage.server.visitor("site.ada-s-team.localhost").get("/missing");
    let count =
        |status: &str| format!("launchway_proxy_requests_total{{application=\"{id}\",status=\"{status}\"}}");
    until("the numbers", || {
        let text = stage.server.client().get("/metrics").text;
        let has = |line: String| text.lines().any(|other| other == line);
        (has(format!("{} 3", count("2xx"))) && has(format!("{} 1", count("4xx")))).then_some(())
    });
    let log = std::fs::read_to_string(stage.server.data_dir().join("proxy/access.log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(&id)).count(), 4, "{log}");
}
