//! Listing many containers, on a fake engine.

use std::fs;

use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::deployments::{
    Condition, DiscoveredObject, EngineInventory as _, Exit, Owner, StepError,
};
use serde_json::{Value, json};

use crate::{
    fake_engine::{FakeEngine, Reply},
    installation::{Installation, owner},
};

/// The most CPU time that a list of a thousand containers may take, in milliseconds. Without optimisation
/// 36 ms were measured.
const MOST_MILLISECONDS: u128 = if cfg!(debug_assertions) { 100 } else { 50 };

/// A container of the fake engine.
struct Known {
    id: String,
    owner: Owner,
    state: &'static str,
    status: &'static str,
    restarts: u32,
    code: i32,
}

impl Known {
    fn new(number: usize) -> Self {
        let id = format!("{number:064x}");
        Self { id, owner: owner(), state: "running", status: "Up 2 days", restarts: 3, code: 0 }
    }

    fn networks(&self) -> Value {
        json!({ "launchway-x": { "IPAddress": "10.192.0.2", "NetworkID": "0".repeat(64), "Aliases": null } })
    }

    fn labels(&self, instance: &str) -> Value {
        json!({
            "launchway.instance": instance,
            "launchway.organization": self.owner.organization.to_string(),
            "launchway.application": self.owner.application.to_string(),
            "launchway.deployment": self.owner.deployment.to_string(),
            "launchway.attempt": "1",
            "launchway.service": "",
            "launchway.call": "0123456789abcdef",
            "org.opencontainers.image.description": "what an image may say about itself, at some length",
        })
    }

    fn listed(&self, instance: &str) -> Value {
        json!({
            "Id": self.id,
            "Names": [format!("/launchway-{}-1", self.owner.deployment)],
            "Image": "launchway/some:image",
            "ImageID": format!("sha256:{}", self.id),
            "Command": "/bin/sh -c 'exec /app/server'",
            "Created": 1_760_000_000,
            "Ports": [],
            "Labels": self.labels(instance),
            "State": self.state,
            "Status": self.status,
            "HostConfig": { "NetworkMode": "0".repeat(64) },
            "NetworkSettings": { "Networks": self.networks() },
            "Mounts": [],
        })
    }

    fn inspected(&self, instance: &str) -> Value {
        json!({
            "Id": self.id,
            "Name": format!("/launchway-{}-1", self.owner.deployment),
            "Created": "2026-01-02T03:04:05.678901234Z",
            "RestartCount": self.restarts,
            "State": { "Status": self.state, "Running": self.state == "running", "ExitCode": self.code },
            "HostConfig": { "RestartPolicy": { "Name": "unless-stopped" } },
            "Config": { "Labels": self.labels(instance) },
            "NetworkSettings": { "Networks": self.networks() },
        })
    }
}

/// Makes the engine list these containers.
fn list(engine: &FakeEngine, instance: &str, containers: &[Known]) {
    let list: Vec<Value> = containers.iter().map(|container| container.listed(instance)).collect();
    engine.reply("/containers/json", Reply::Json(Value::from(list).to_string()));
    for container in containers {
        let path = format!("/containers/{}/json", container.id);
        engine.reply(&path, Reply::Json(container.inspected(instance).to_string()));
    }
}

/// Returns the CPU time of this thread, in milliseconds.
fn processor_time() -> u128 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<u128>().unwrap() / 1_000_000
}

#[tokio::test]
async fn a_thousand_containers_are_one_request() {
    let fake = FakeEngine::new();
    let instance = Installation::new().instance;
    let id = instance.to_string();
    let mut containers: Vec<Known> = (0..1000).map(Known::new).collect();
    list(&fake, &id, &containers);
    let engine = DockerEngine::new(DockerOptions::new(instance).at_socket(&fake.socket()));
    let conditions = async || -> Vec<Condition> {
        let found = engine.containers().await.unwrap();
        let conditions = found.into_iter().map(|found| match found.what {
            DiscoveredObject::Container { condition, .. } => condition,
            other => panic!("{other:?}"),
        });
        conditions.collect()
    };
    let address = "10.192.0.2".parse().unwrap();
    let running = |restarts| Condition::Running { address, restarts };
    assert_eq!(conditions().await, vec![running(3); 1000]);
    assert_eq!(fake.requests().len(), 1001, "each is inspected once");
    let before = processor_time();
    assert_eq!(conditions().await, vec![running(3); 1000]);
    let took = processor_time() - before;
    assert_eq!(fake.requests(), ["/containers/json"]);
    println!("a list of 1,000 containers took {took} ms of processor time");
    assert!(took <= MOST_MILLISECONDS, "{took} ms");

    // What happened between two calls is in the next one.
    containers[7] = Known { status: "Up 1 second", restarts: 4, ..Known::new(7) };
    containers[8] = Known { state: "exited", status: "Exited (9) 3 minutes ago", code: 9, ..Known::new(8) };
    containers[9] = Known { state: "paused", status: "Up 2 days (Paused)", ..Known::new(9) };
    list(&fake, &id, &containers);
    let exited = Condition::Exited(Exit { code: 9, out_of_memory: false, restarts: 3 });
    for inspected in [2, 1] {
        let seen = conditions().await;
        assert_eq!((seen[7], seen[8], seen[9]), (running(4), exited, Condition::Paused));
        assert_eq!(fake.requests().len(), 1 + inspected, "a second is not long enough to be sure");
    }
    containers.truncate(1);
    containers[0].status = "Up About a minute";
    list(&fake, &id, &containers);
    assert_eq!(conditions().await, [running(3)]);
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_a_fault() {
    let fake = FakeEngine::new();
    let options = DockerOptions::new(Installation::new().instance).at_socket(&fake.socket());
    let engine = DockerEngine::new(options);
    assert_eq!(
        engine.containers().await,
        Err(StepError::Retryable("docker answered 404 Not Found".to_owned()))
    );
    for answer in ["what?", "{}", "", r#"[{"Id":1}]"#] {
        fake.reply("/containers/json", Reply::Json(answer.to_owned()));
        let unreadable = StepError::Retryable("docker returned unreadable output".to_owned());
        assert_eq!(engine.containers().await, Err(unreadable), "{answer}");
    }
    fake.reply("/containers/json", Reply::Json("[]".to_owned()));
    assert_eq!(engine.containers().await, Ok(vec![]));
}
