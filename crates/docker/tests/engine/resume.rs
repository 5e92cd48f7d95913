//! Starting existing containers that do not run.

use std::time::Duration;

use launchway_domain::deployments::{Condition, Container, Deployer as _, StepError};
use launchway_testkit::docker::{base_image, docker};

use crate::installation::{Installation, owner, plan};

fn refused(why: &str) -> Result<Container, StepError> {
    Err(StepError::Rejected(why.to_owned()))
}

#[tokio::test]
async fn a_container_comes_up_with_its_address() {
    let installation = Installation::new();
    let ours = owner();
    let container = installation.container(ours, "sleep 600").await;
    let (id, engine) = (container.id.as_str(), &installation.engine);
    let network = format!("launchway-{}", ours.organization);
    let running = Condition::Running { address: container.address, restarts: 0 };
    let cases: [(&str, &[&[&str]]); 6] = [
        ("running", &[]),
        ("paused", &[&["pause", id]]),
        ("stopped", &[&["stop", "-t", "0", id]]),
        ("killed", &[&["kill", id]]),
        ("disconnected", &[&["network", "disconnect", &network, id]]),
        ("disconnected and killed", &[&["network", "disconnect", &network, id], &["kill", id]]),
    ];
    for (case, commands) in cases {
        for command in commands {
            docker(command);
        }
        for _ in 0..2 {
            assert_eq!(engine.resume(&container.id).await.as_ref(), Ok(&container), "{case}");
        }
        assert_eq!(engine.condition(&container.id).await, Ok(running), "{case}");
    }
}

#[tokio::test]
async fn a_container_that_was_never_started_comes_up() {
    let installation = Installation::new();
    let ours = owner();
    let first = installation.container(ours, "sleep 600").await;
    docker(&["rm", "-f", first.id.as_str()]);
    let labels = [
        format!("launchway.instance={}", installation.instance),
        format!("launchway.organization={}", ours.organization),
        format!("launchway.application={}", ours.application),
        format!("launchway.deployment={}", ours.deployment),
        "launchway.attempt=1".to_owned(),
        "launchway.service=".to_owned(),
        format!("launchway.address={}", first.address),
    ];
    let (network, address) = (format!("launchway-{}", ours.organization), first.address.to_string());
    let mut create = vec!["create", "--name", &first.name, "--network", &network, "--ip", &address];
    create.extend(labels.iter().flat_map(|label| ["--label", label]));
    create.extend([base_image(), "sleep", "600"]);
    let created = docker(&create).parse().unwrap();
    assert_eq!(installation.engine.condition(&created).await, Ok(Condition::Created));
    let resumed = installation.engine.resume(&created).await.unwrap();
    assert_eq!(resumed, Container { id: created, ..first });
}

#[tokio::test]
async fn what_is_gone_is_refused() {
    let installation = Installation::new();
    let ours = owner();
    let container = installation.container(ours, "sleep 600").await;
    let network = format!("launchway-{}", ours.organization);
    docker(&["kill", container.id.as_str()]);
    docker(&["network", "rm", &network]);
    assert_eq!(
        installation.engine.resume(&container.id).await,
        refused("the network of the container is gone")
    );
    // A start makes the network anew, with an address that no route names.
    let image = installation.image(ours, "sleep 600").await;
    let mut anew = plan(ours, image);
    anew.reserved = vec![container.address];
    let again = installation.engine.start(&anew).await.unwrap();
    assert_ne!(again.address, container.address);
    docker(&["rm", "-f", again.id.as_str()]);
    assert_eq!(installation.engine.resume(&again.id).await, refused("the container is gone"));
}

#[tokio::test]
async fn an_address_that_is_anothers_is_refused() {
    let installation = Installation::new();
    let ours = owner();
    let container = installation.container(ours, "sleep 600").await;
    let network = format!("launchway-{}", ours.organization);
    docker(&["kill", container.id.as_str()]);
    let address = container.address.to_string();
    let thief =
        docker(&["run", "-d", "--rm", "--network", &network, "--ip", &address, base_image(), "sleep", "600"]);
    let resumed = installation.engine.resume(&container.id).await;
    docker(&["rm", "-f", &thief]);
    assert_eq!(resumed, refused("the address of the container is used by another container"));
    assert_eq!(installation.engine.resume(&container.id).await, Ok(container));
}

#[tokio::test]
async fn a_kept_container_that_fails_is_left_to_the_engine() {
    let installation = Installation::new();
    let container = installation.container(owner(), "sleep 1; exit 1").await;
    installation.engine.enable_restart_policy(&container.id).await.unwrap();
    installation.wait_until(&container.id, |condition| matches!(condition, Condition::Restarting(_))).await;
    assert_eq!(installation.engine.resume(&container.id).await.as_ref(), Ok(&container));
    tokio::time::sleep(Duration::from_millis(100)).await;
    docker(&["rm", "-f", container.id.as_str()]);
}
