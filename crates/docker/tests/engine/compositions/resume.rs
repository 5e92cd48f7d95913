//! Restarting the services of a composition, and removing one attempt.

use std::net::IpAddr;

use launchway_domain::deployments::{Composer as _, Deployer as _, DiscoveredObject, EngineInventory as _};
use launchway_testkit::docker::{base_image, docker};
use serde_json::Value;

use super::{Composing, page, plan};
use crate::installation::owner;

/// A page that is requested from another service by its alias, and a task that ends.
fn services() -> String {
    let base = base_image();
    format!(
        r#"
services:
  web:
    image: {base}
    command: sh -c "mkdir -p /www; until wget -q -O /www/index.html http://database:9000/index.html; do sleep 0.1; done; exec httpd -f -p 8080 -h /www"
    depends_on: {{db: {{condition: service_started}}, job: {{condition: service_completed_successfully}}}}
    expose: ["8080"]
    stop_signal: SIGKILL
  db:
    image: {base}
    command: sh -c "mkdir -p /www; echo from the database > /www/index.html; trap 'exit 0' TERM; httpd -p 9000 -h /www; while true; do sleep 0.1; done"
    networks: {{default: {{aliases: [database]}}}}
  job: {{image: {base}, command: "true"}}
"#
    )
}

#[tokio::test]
async fn services_come_up_again_and_tasks_do_not() {
    let composing = Composing::new();
    let plan = plan(owner());
    let web = composing.run(&plan, &services()).await;
    let engine = &composing.installation.engine;
    engine.enable_restart_policy(&web.id).await.unwrap();
    assert_eq!(page(&web).await, "from the database");
    let id = |name: &str| composing.service(&plan, name)["Id"].as_str().unwrap().to_owned();
    let started = |name: &str| composing.service(&plan, name)["State"]["StartedAt"].clone();
    let (db, job_started) = (id("db"), started("job"));
    let network = format!("launchway-{}-1", plan.owner.deployment);
    let web_id = web.id.as_str();
    let cases: [(&str, &[&[&str]]); 5] = [
        ("stopped, which ends well", &[&["stop", &db], &["stop", web_id]]),
        ("killed", &[&["kill", &db], &["kill", web_id]]),
        ("paused", &[&["pause", &db], &["pause", web_id]]),
        (
            "disconnected",
            &[&["network", "disconnect", &network, &db], &["network", "disconnect", &network, web_id]],
        ),
        ("one of them stopped", &[&["stop", &db]]),
    ];
    for (case, commands) in cases {
        for command in commands {
            docker(command);
        }
        let found = engine.containers().await.unwrap();
        for found in found {
            let DiscoveredObject::Container { service: Some(service), stays_up, .. } = found.what else {
                continue;
            };
            assert_eq!(stays_up, service.as_str() != "job", "{case}: {service}");
        }
        let resumed = engine.resume(&web.id).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(resumed, web, "{case}");
        // The page is of the last start; only a service that answers to its other name has made it.
        docker(&["restart", "-t", "0", web_id]);
        assert_eq!(page(&web).await, "from the database", "{case}");
        assert_eq!(started("job"), job_started, "{case}: what has done its work is left alone");
        let runs = |name: &str| composing.service(&plan, name)["State"]["Status"].clone();
        assert_eq!([runs("web"), runs("db"), runs("job")], ["running", "running", "exited"], "{case}");
    }
    docker(&["rm", "-f", web_id]);
    assert_eq!(engine.resume(&web.id).await.unwrap_err().to_string(), "the container is gone");
}

#[tokio::test]
async fn only_the_web_service_has_an_address_of_ours() {
    let composing = Composing::new();
    let mut plan = plan(owner());
    // The lowest subnet that is free, which a route names.
    let probe = composing.installation.container(owner(), "sleep 600").await;
    let network = |container: &IpAddr| container.to_string().rsplit_once('.').unwrap().0.to_owned();
    let first = composing.run(&plan, &services()).await;
    let assigned = |name: &str| -> Value {
        let networks = composing.service(&plan, name)["NetworkSettings"]["Networks"].clone();
        networks.as_object().unwrap().values().next().unwrap().clone()
    };
    assert_eq!(assigned("web")["IPAMConfig"]["IPv4Address"], first.address.to_string());
    let chosen: IpAddr = assigned("db")["IPAddress"].as_str().unwrap().parse().unwrap();
    let IpAddr::V4(chosen) = chosen else { panic!("{chosen}") };
    assert!(chosen.octets()[3] >= 192, "{chosen}");
    // The same attempt again goes on with what there is.
    assert_eq!(composing.start(&plan).await.unwrap(), first);
    composing.installation.engine.remove_attempt(&plan.owner).await.unwrap();
    plan.owner.attempt = 2;
    plan.reserved = vec![first.address];
    composing.compose(&plan).await.unwrap();
    let second = composing.start(&plan).await.unwrap();
    assert_ne!(network(&second.address), network(&first.address), "no subnet with a reserved address");
    assert_ne!(network(&second.address), network(&probe.address));
}

#[tokio::test]
async fn one_attempt_is_removed_with_its_network() {
    let composing = Composing::new();
    let first = plan(owner());
    composing.run(&first, &services()).await;
    let mut second = first.clone();
    second.owner.attempt = 2;
    composing.compose(&second).await.unwrap();
    let stays = composing.start(&second).await.unwrap();
    assert_eq!(composing.installation.traces.containers().len(), 6);
    let networks = composing.installation.traces.networks().len();
    for _ in 0..2 {
        composing.installation.engine.remove_attempt(&first.owner).await.unwrap();
    }
    assert_eq!(composing.installation.traces.containers().len(), 3);
    assert_eq!(composing.installation.traces.networks().len(), networks - 1);
    assert_eq!(page(&stays).await, "from the database");
    composing.compositions.forget(first.owner.application).await.unwrap();
}
