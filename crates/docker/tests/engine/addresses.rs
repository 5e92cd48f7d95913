//! Every container that can be routed to keeps its address.

use std::{net::IpAddr, sync::Arc};

use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::deployments::{Condition, Container, Deployer as _, StepError};
use launchway_testkit::docker::{base_image, docker};

use crate::{
    installation::{Installation, owner, owner_in, plan},
    recorder::Recorder,
};

/// Returns the address of a container from the engine itself.
fn address_of(container: &Container) -> String {
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    docker(&["inspect", "--format", format, container.id.as_str()])
}

#[tokio::test]
async fn an_address_survives_stops_in_any_order() {
    let installation = Installation::new();
    let first = owner();
    let image = installation.image(first, "sleep 600").await;
    let mut containers = Vec::new();
    for owner in [first, owner_in(first.organization), owner_in(first.organization)] {
        containers.push(installation.engine.start(&plan(owner, image.clone())).await.unwrap());
    }
    for container in &containers {
        docker(&["kill", container.id.as_str()]);
    }
    // The engine gives out addresses of its own choice in the order of starting.
    for container in containers.iter().rev() {
        docker(&["start", container.id.as_str()]);
    }
    for container in &containers {
        assert_eq!(address_of(container), container.address.to_string());
    }
    for container in containers.iter().rev() {
        docker(&["restart", "-t", "0", container.id.as_str()]);
    }
    for container in &containers {
        assert_eq!(address_of(container), container.address.to_string());
    }
}

#[tokio::test]
async fn a_new_network_leaves_the_top_quarter_to_the_engine() {
    let installation = Installation::new();
    let ours = owner();
    let container = installation.container(ours, "sleep 600").await;
    let network = format!("launchway-{}", ours.organization);
    let format = "{{range .IPAM.Config}}{{.Subnet}} {{.IPRange}} {{.Gateway}}{{end}}";
    let printed = docker(&["network", "inspect", "--format", format, &network]);
    let subnet: ipnet::Ipv4Net = printed.split(' ').next().unwrap().parse().unwrap();
    let [a, b, c, _] = subnet.network().octets();
    assert_eq!(printed, format!("{a}.{b}.{c}.0/24 {a}.{b}.{c}.192/26 {a}.{b}.{c}.1"));
    assert_eq!(container.address, IpAddr::from([a, b, c, 2]));
    let by_hand = docker(&["run", "-d", "--rm", "--network", &network, base_image(), "sleep", "600"]);
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let theirs = docker(&["inspect", "--format", format, &by_hand]);
    docker(&["rm", "-f", &by_hand]);
    assert_eq!(theirs, format!("{a}.{b}.{c}.192"));
    let output = Arc::new(Recorder::default());
    let image = installation.image(ours, "sleep 600").await;
    let command = "ip -4 addr show eth0".parse().unwrap();
    installation.engine.run_once(&plan(ours, image), &command, output.clone()).await.unwrap();
    let once = output.text();
    let host: u8 =
        once.split(&format!("inet {a}.{b}.{c}.")).nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    assert!(host >= 192, "{once}");
}

#[tokio::test]
async fn no_address_that_somebody_has_or_had_is_given_away() {
    let installation = Installation::new();
    let first = owner();
    let image = installation.image(first, "sleep 600").await;
    let one = installation.engine.start(&plan(first, image.clone())).await.unwrap();
    let IpAddr::V4(address) = one.address else { panic!("{one:?}") };
    let [a, b, c, d] = address.octets();
    let at = |offset: u8| IpAddr::from([a, b, c, d + offset]);
    docker(&["kill", one.id.as_str()]);
    // Of a container that is not ours, and was never started.
    let network = format!("launchway-{}", first.organization);
    let by_hand =
        docker(&["create", "--network", &network, "--ip", &at(1).to_string(), base_image(), "true"]);
    // Another process of the same installation knows nothing of what this one gave out.
    let other = DockerEngine::new(DockerOptions::new(installation.instance));
    let mut wanted = plan(owner_in(first.organization), image.clone());
    wanted.reserved = vec![at(2), "fd00::2".parse().unwrap()];
    let two = other.start(&wanted).await.unwrap();
    docker(&["rm", &by_hand]);
    assert_eq!(two.address, at(3), "{} is stopped, {} is somebody's, {} is reserved", at(0), at(1), at(2));
    // One that was taken out of the network has its address all the same.
    docker(&["network", "disconnect", &network, two.id.as_str()]);
    let third = DockerEngine::new(DockerOptions::new(installation.instance));
    let mut wanted = plan(owner_in(first.organization), image);
    wanted.reserved = vec![at(4)];
    assert_eq!(third.start(&wanted).await.unwrap().address, at(5));
}

#[tokio::test]
async fn concurrent_starts_get_different_addresses() {
    let installation = Installation::new();
    let first = owner();
    let image = installation.image(first, "sleep 600").await;
    // Processes that know nothing of each other; the engine decides between them.
    let other = Arc::new(DockerEngine::new(DockerOptions::new(installation.instance)));
    let mut starts = tokio::task::JoinSet::new();
    for number in 0..8 {
        let engine = if number % 2 == 0 { installation.engine.clone() } else { other.clone() };
        let plan = plan(owner_in(first.organization), image.clone());
        starts.spawn(async move { engine.start(&plan).await.unwrap() });
    }
    let started = starts.join_all().await;
    let mut addresses: Vec<_> = started.iter().map(|container| container.address).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 8);
    for container in &started {
        assert_eq!(address_of(container), container.address.to_string());
    }
}

#[tokio::test]
async fn an_older_network_is_used_from_its_middle() {
    let installation = Installation::new();
    let ours = owner();
    let image = installation.image(ours, "sleep 600").await;
    let network = format!("launchway-{}", ours.organization);
    let format = "{{range .IPAM.Config}}{{.Subnet}}{{end}}";
    let subnet = docker(&["network", "inspect", "--format", format, &network]);
    docker(&["network", "rm", &network]);
    // As an earlier version made it.
    let instance = format!("launchway.instance={}", installation.instance);
    let organization = format!("launchway.organization={}", ours.organization);
    docker(&[
        "network",
        "create",
        "--subnet",
        &subnet,
        "--label",
        &instance,
        "--label",
        &organization,
        &network,
    ]);
    let engine = DockerEngine::new(DockerOptions::new(installation.instance));
    let container = engine.start(&plan(ours, image.clone())).await.unwrap();
    let IpAddr::V4(address) = container.address else { panic!("{container:?}") };
    assert_eq!(address.octets()[3], 128);
    let output = Arc::new(Recorder::default());
    let command = "ip -4 addr show eth0".parse().unwrap();
    engine.run_once(&plan(ours, image), &command, output.clone()).await.unwrap();
    let [a, b, c, _] = address.octets();
    assert!(output.text().contains(&format!("inet {a}.{b}.{c}.129/24")), "{}", output.text());
}

#[tokio::test]
async fn a_network_without_room_says_so() {
    let installation = Installation::new();
    let ours = owner();
    let image = installation.image(ours, "sleep 600").await;
    let network = format!("launchway-{}", ours.organization);
    docker(&["network", "rm", &network]);
    let instance = format!("launchway.instance={}", installation.instance);
    let organization = format!("launchway.organization={}", ours.organization);
    let bytes = *uuid::Uuid::from(ours.deployment).as_bytes();
    // Two addresses beside the gateway's.
    let subnet = format!("10.190.{}.{}/30", bytes[14], bytes[15] & 0b1111_1100);
    docker(&[
        "network",
        "create",
        "--subnet",
        &subnet,
        "--label",
        &instance,
        "--label",
        &organization,
        &network,
    ]);
    let engine = DockerEngine::new(DockerOptions::new(installation.instance));
    engine.start(&plan(ours, image.clone())).await.unwrap();
    let full = engine.start(&plan(owner_in(ours.organization), image)).await.unwrap_err();
    let message = format!(
        "the network `{network}` has no address left for another container: remove some of the containers in it"
    );
    assert_eq!(full, StepError::Rejected(message));
}

#[tokio::test]
async fn a_restart_gives_an_older_container_its_own_address() {
    let installation = Installation::new();
    let ours = owner();
    let container = installation.container(ours, "sleep 600").await;
    let network = format!("launchway-{}", ours.organization);
    let labels = [
        format!("launchway.instance={}", installation.instance),
        format!("launchway.organization={}", ours.organization),
        format!("launchway.application={}", ours.application),
        format!("launchway.deployment={}", ours.deployment),
        "launchway.attempt=2".to_owned(),
        "launchway.service=".to_owned(),
    ];
    let name = format!("launchway-{}-2", ours.deployment);
    let mut run = vec!["run", "-d", "--name", &name, "--network", &network];
    run.extend(labels.iter().flat_map(|label| ["--label", label]));
    run.extend([base_image(), "sleep", "600"]);
    let older = docker(&run).parse().unwrap();
    let Ok(Condition::Running { address: before, .. }) = installation.engine.condition(&older).await else {
        panic!("it does not run");
    };
    let restarted = installation.engine.restart(&older).await.unwrap();
    let format = "{{range .NetworkSettings.Networks}}{{.IPAMConfig.IPv4Address}} {{.IPAddress}}{{end}}";
    let output = docker(&["inspect", "--format", format, older.as_str()]);
    assert_eq!(output, format!("{0} {0}", restarted.address));
    assert!(restarted.address != before && restarted.address != container.address);
}
