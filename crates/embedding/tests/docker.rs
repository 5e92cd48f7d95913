//! Containers as versions, on the Docker engine of this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use launchway_domain::applications::RegistryPolicy;
use launchway_embedding::{
    Actor, Blueprint, DeploymentState, DockerHost, DockerOptions, Embedded, ImageRef, MemoryStore, Role,
    conformance::check_host,
};
use launchway_testkit::{
    builders::{an_actor, parsed},
    docker::{Traces, base_image, docker},
};
use uuid::Uuid;

/// A registry at which no server listens, so that the image on the engine is used.
const NOWHERE: &str = "127.0.0.1:9";
/// A web server that ends when it is asked to, although it is the first process.
const SERVER: &str = "trap 'echo bye; exit 0' TERM; echo hello; httpd -f -p 80 & wait";

/// An image, and the containers of an installation; removed when dropped.
struct Harness {
    instance: Uuid,
    image: String,
    traces: Traces,
}

impl Harness {
    #[expect(clippy::disallowed_methods, reason = "each test has an installation of its own")]
    fn new() -> Self {
        let instance = Uuid::now_v7();
        let image = format!("{NOWHERE}/launchway-test/embedded-{instance}:1");
        let program = serde_json::to_string(&["/bin/sh", "-c", SERVER]).unwrap();
        let container = docker(&["create", base_image(), "true"]);
        docker(&["commit", "--change", &format!("CMD {program}"), &container, &image]);
        docker(&["rm", &container]);
        Self { instance, image, traces: Traces::of(instance.into()) }
    }

    fn host(&self) -> DockerHost {
        let mut options = DockerOptions::new(self.instance.into());
        options.registries = RegistryPolicy::allowing(vec![parsed(NOWHERE)]);
        DockerHost::with_options(options)
    }

    fn image(&self) -> ImageRef {
        parsed(&self.image)
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        docker(&["image", "rm", &self.image]);
    }
}

fn ada() -> Actor {
    an_actor().with_role(Role::Admin).build()
}

#[tokio::test]
async fn a_host_of_containers_conforms() {
    let harness = Harness::new();
    check_host(|| async { harness.host() }, harness.image())
        .await
        .unwrap_or_else(|failed| panic!("{failed}"));
}

#[tokio::test]
async fn a_container_is_deployed_restarted_and_stopped() {
    let harness = Harness::new();
    let service = Embedded::builder(MemoryStore::new(), harness.host()).build();
    let port = 80.try_into().unwrap();
    let web = Blueprint::of_image(parsed("web"), parsed("production"), harness.image(), port);
    let created = service.applications().create(&ada(), web).await.unwrap();
    let log = async || {
        let lines = service.logs().of_application(&ada(), created.application.id, None, 1000).await.unwrap();
        lines.into_iter().map(|line| line.text).collect::<Vec<String>>()
    };
    let says = async |text: &str| {
        for _ in 0..600 {
            if log().await.iter().any(|line| line.starts_with(text)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{text}: {:#?}", log().await);
    };
    let (sender, stop) = tokio::sync::oneshot::channel();
    let story = async {
        says("Deployed in").await;
        says("hello").await;
        // Somebody kills it.
        docker(&["kill", &harness.traces.containers()[0]]);
        says("The version ended").await;
        says("The application is healthy again").await;
        service.applications().restart(&ada(), created.application.id).await.unwrap();
        says("Restarted").await;
        service.applications().stop(&ada(), created.application.id).await.unwrap();
        says("Stopped").await;
        says("bye").await;
        sender.send(()).unwrap();
    };
    let (ran, ()) = tokio::join!(service.run(async { stop.await.unwrap() }), story);
    ran.unwrap();
    let deployment = service.deployments().get(&ada(), created.deployment.id).await.unwrap();
    assert_eq!(deployment.status.state, DeploymentState::Deployed);
    let running =
        docker(&["ps", "--quiet", "--filter", &format!("label=launchway.instance={}", harness.instance)]);
    assert_eq!(running, "");
}
