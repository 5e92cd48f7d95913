//! Starting, stopping and removing containers, and their restart policy.

use std::{collections::HashSet, net::SocketAddr, sync::Arc, time::Duration};

use launchway_docker::{ContainerLimits, health::NetworkProbe};
use launchway_domain::deployments::{
    Condition, ContainerPlan, Deployer, EngineInventory as _, Exit, HealthProbe as _, ImageBuilder as _,
    ProbeTarget, StepError,
};
use launchway_testkit::docker::{base_image, docker, http_app};
use serde_json::Value;

use crate::{
    installation::{Installation, owner, plan},
    recorder::Recorder,
};

fn inspected(container: &str) -> Value {
    serde_json::from_str::<Value>(&docker(&["inspect", container])).unwrap()[0].take()
}

#[tokio::test]
async fn a_container_serves_at_its_address() {
    let installation = Installation::new();
    let owner = owner();
    installation.write("Dockerfile", &http_app("hello"));
    let image =
        installation.engine.build(&installation.plan(owner), Arc::new(Recorder::default())).await.unwrap();
    let container = installation.engine.start(&plan(owner, image)).await.unwrap();
    assert_eq!(container.name, format!("launchway-{}-1", owner.deployment));
    let running = Condition::Running { address: container.address, restarts: 0 };
    assert_eq!(installation.engine.condition(&container.id).await, Ok(running));
    let address = SocketAddr::new(container.address, 8080);
    let path = |path: &str| ProbeTarget { address, path: Some(path.parse().unwrap()) };
    let probe = NetworkProbe::default();
    for _ in 0..100 {
        if probe.probe(&path("/health")).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(probe.probe(&path("/health")).await, Ok(()));
    assert_eq!(probe.probe(&path("/nothing")).await, Err("GET /nothing answered 404".to_owned()));
    assert_eq!(probe.probe(&ProbeTarget { address, path: None }).await, Ok(()));
    let closed = SocketAddr::new(container.address, 8081);
    let reported = probe.probe(&ProbeTarget { address: closed, path: None }).await;
    assert_eq!(reported, Err(format!("nothing listens on {closed}")));
}

#[tokio::test]
async fn a_container_has_limits_and_cannot_gain_privileges() {
    let limits = ContainerLimits { memory: 64 * 1024 * 1024, cpus: Some(0.5), pids: 50 };
    let installation = Installation::with(|options| options.limits = limits);
    let owner = owner();
    let container = installation.container(owner, "sleep 600").await;
    let seen = inspected(container.id.as_str());
    let host = &seen["HostConfig"];
    assert_eq!((&host["Memory"], &host["MemorySwap"]), (&67_108_864.into(), &67_108_864.into()));
    assert_eq!((&host["CpuQuota"], &host["CpuPeriod"]), (&50_000.into(), &100_000.into()));
    assert_eq!((&host["CpuShares"], &host["PidsLimit"]), (&512.into(), &50.into()));
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["SecurityOpt"], serde_json::json!(["no-new-privileges"]));
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]));
    assert_eq!(host["RestartPolicy"]["Name"], "no");
    let log = serde_json::json!({ "Type": "json-file", "Config": { "max-size": "10m", "max-file": "3" } });
    assert_eq!(host["LogConfig"], log);
    assert_eq!((&host["PortBindings"], &host["PublishAllPorts"]), (&serde_json::json!({}), &false.into()));
    assert_eq!((&host["Binds"], &seen["Mounts"]), (&Value::Null, &serde_json::json!([])));
    let status = docker(&["exec", container.id.as_str(), "cat", "/proc/1/status"]);
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    // No NET_RAW (bit 13), MKNOD (27), SYS_ADMIN (21).
    let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:\t")).unwrap();
    let bounding = u64::from_str_radix(bounding, 16).unwrap();
    assert_eq!(bounding & (1 << 13 | 1 << 27 | 1 << 21), 0);
    let socket = docker(&[
        "exec",
        container.id.as_str(),
        "sh",
        "-c",
        "ls /var/run/docker.sock /run/docker.sock 2>&1; mount",
    ]);
    assert!(socket.matches("No such file").count() == 2 && !socket.contains("docker.sock type"), "{socket}");
}

#[tokio::test]
async fn a_program_out_of_memory_is_recognized() {
    let installation = Installation::with(|options| options.limits.memory = 16 * 1024 * 1024);
    let container = installation
        .container(owner(), "head -c 100m /dev/zero | tail -c 90m | wc -c; exec tail -c 90m /dev/zero")
        .await;
    let condition =
        installation.wait_until(&container.id, |condition| matches!(condition, Condition::Exited(_))).await;
    assert_eq!(condition, Condition::Exited(Exit { code: 137, out_of_memory: true, restarts: 0 }));
}

#[tokio::test]
async fn a_container_that_ends_at_once_can_still_be_asked_why() {
    let installation = Installation::new();
    let container = installation.container(owner(), "echo no database >&2; exit 3").await;
    let exited = Condition::Exited(Exit { code: 3, out_of_memory: false, restarts: 0 });
    installation.wait_until(&container.id, |condition| condition == exited).await;
    let words = installation.engine.tail_logs(&container.id, 10).await.unwrap();
    assert_eq!(words.iter().map(|line| line.text.as_slice()).collect::<Vec<_>>(), [b"no database"]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(installation.engine.condition(&container.id).await, Ok(exited), "nobody started it again");
}

#[tokio::test]
async fn a_kept_container_is_started_again_and_counted() {
    let installation = Installation::new();
    let container = installation.container(owner(), "sleep 2; exit 1").await;
    installation.engine.enable_restart_policy(&container.id).await.unwrap();
    let restarts = |condition| match condition {
        Condition::Running { restarts, .. } => restarts,
        Condition::Exited(exit) | Condition::Restarting(exit) => exit.restarts,
        _ => 0,
    };
    installation.wait_until(&container.id, |condition| restarts(condition) >= 2).await;
    installation.engine.stop(&container.id).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let condition = installation.engine.condition(&container.id).await.unwrap();
    assert!(matches!(condition, Condition::Exited(_)), "what is stopped stays still: {condition:?}");
}

#[tokio::test]
async fn a_stopped_container_ends_gracefully_and_can_be_started() {
    let installation = Installation::new();
    let script = "trap 'echo bye; exit 0' TERM; echo hello; while true; do sleep 0.1; done";
    let container = installation.container(owner(), script).await;
    installation.engine.enable_restart_policy(&container.id).await.unwrap();
    for _ in 0..2 {
        installation.engine.stop(&container.id).await.unwrap();
    }
    let exited = Condition::Exited(Exit { code: 0, out_of_memory: false, restarts: 0 });
    assert_eq!(installation.engine.condition(&container.id).await, Ok(exited));
    for _ in 0..2 {
        let again = installation.engine.restart(&container.id).await.unwrap();
        assert_eq!((&again.id, &again.name), (&container.id, &container.name));
        let running = Condition::Running { address: again.address, restarts: 0 };
        assert_eq!(installation.engine.condition(&container.id).await, Ok(running));
    }
    // The program may not have begun to print when its container runs.
    let expected = ["hello", "bye", "hello", "bye", "hello"];
    let printed = async || {
        let lines = installation.engine.tail_logs(&container.id, 100).await.unwrap();
        lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect::<Vec<_>>()
    };
    for _ in 0..100 {
        if printed().await.len() == expected.len() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(printed().await, expected);
}

#[tokio::test]
async fn only_the_containers_of_a_deployment_are_removed() {
    let installation = Installation::new();
    let (mut one, other) = (owner(), owner());
    let mut removed = Vec::new();
    for attempt in 1..=2 {
        one.attempt = attempt;
        removed.push(installation.container(one, "sleep 600").await);
    }
    let stays = installation.container(other, "sleep 600").await;
    for _ in 0..2 {
        Deployer::remove(&*installation.engine, one.deployment).await.unwrap();
    }
    for container in &removed {
        assert_eq!(installation.engine.condition(&container.id).await, Ok(Condition::Gone));
    }
    assert_eq!(installation.traces.containers(), [stays.id.as_str()]);
    let gone = &removed[0].id;
    assert!(matches!(installation.engine.enable_restart_policy(gone).await, Err(StepError::Retryable(_))));
    assert_eq!(installation.engine.stop(gone).await, Ok(()));
    let expected = StepError::Rejected("the container is gone".to_owned());
    assert_eq!(installation.engine.restart(gone).await, Err(expected));
}

#[tokio::test]
async fn a_container_of_the_same_attempt_is_replaced() {
    let installation = Installation::new();
    let owner = owner();
    let first = installation.container(owner, "sleep 600").await;
    let second = installation.container(owner, "sleep 600").await;
    assert_ne!(first.id, second.id);
    assert_eq!(installation.traces.containers(), [second.id.as_str()]);
}

#[tokio::test]
async fn copies_of_one_attempt_run_beside_each_other() {
    let installation = Installation::new();
    let owner = owner();
    let image = installation.image(owner, "sleep 600").await;
    let start = async |copy| {
        let plan = ContainerPlan { copy, ..plan(owner, image.clone()) };
        installation.engine.start(&plan).await.unwrap()
    };
    let first = start(1).await;
    let (second, third) = tokio::join!(start(2), start(3));
    let addresses = HashSet::from([first.address, second.address, third.address]);
    assert_eq!(addresses.len(), 3, "each has an address of its own");
    assert_eq!(second.name, format!("{}-2", first.name));
    let label = "{{index .Config.Labels \"launchway.copy\"}}";
    for (container, copy) in [(&first, "1"), (&second, "2"), (&third, "3")] {
        let labelled = docker(&["container", "inspect", "--format", label, container.id.as_str()]);
        assert_eq!(labelled, copy);
    }

    let again = start(2).await;
    let left: HashSet<String> = installation.traces.containers().into_iter().collect();
    let expected = [&first, &again, &third].map(|container| container.id.to_string());
    assert_eq!(left, HashSet::from(expected), "only the same copy is replaced");
    installation.engine.remove_attempt(&owner).await.unwrap();
    assert_eq!(installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_nothing_behind() {
    let installation = Installation::new();
    let owner = owner();
    let image = installation.image(owner, "sleep 600").await;
    for delay in [50, 150, 400, 700] {
        let (engine, plan) = (installation.engine.clone(), plan(owner, image.clone()));
        let start = tokio::spawn(async move { engine.start(&plan).await });
        tokio::time::sleep(Duration::from_millis(delay)).await;
        start.abort();
        if let Ok(Ok(_in_time)) = start.await {
            Deployer::remove(&*installation.engine, owner.deployment).await.unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn rejects_an_image_that_cannot_run_and_leaves_nothing() {
    let installation = Installation::new();
    for (lines, message) in [
        (
            "CMD [\"/no/such/program\"]",
            "exec: \"/no/such/program\": stat /no/such/program: no such file or directory",
        ),
        ("CMD [\"nope\"]", "exec: \"nope\": executable file not found in $PATH"),
        ("ENTRYPOINT []\nCMD []", "No command specified"),
        (
            "USER nobody-there\nCMD [\"true\"]",
            "unable to find user nobody-there: no matching entries in passwd file",
        ),
    ] {
        let owner = owner();
        installation.write("Dockerfile", &format!("FROM {}\n{lines}\n", base_image()));
        let image = installation
            .engine
            .build(&installation.plan(owner), Arc::new(Recorder::default()))
            .await
            .unwrap();
        let error = installation.engine.start(&plan(owner, image)).await.unwrap_err();
        assert_eq!(error, StepError::Rejected(message.to_owned()), "{lines}");
    }
    assert_eq!(installation.traces.containers(), Vec::<String>::new());
    let owner = owner();
    let missing =
        plan(owner, launchway_domain::deployments::ImageName::of(owner.application, owner.deployment));
    assert!(
        matches!(installation.engine.start(&missing).await, Err(StepError::Rejected(message)) if message.ends_with("no longer exists"))
    );
}
