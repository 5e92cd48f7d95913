//! An engine that is not available, fails, or is not docker.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use launchway_domain::deployments::{
    ContainerId, Deployer, EngineInventory as _, ImageBuilder as _, ImageName, Owner, StepError,
};
use launchway_testkit::docker::FakeDocker;

use crate::{
    installation::{Installation, owner, plan},
    recorder::Recorder,
};

fn installation(fake: &FakeDocker) -> Installation {
    Installation::with(|options| {
        options.program = fake.program();
        options.call_time = Duration::from_secs(3);
        options.build_limits.time = Duration::from_secs(3);
        options.command_time = Duration::from_secs(3);
    })
}

fn image(owner: Owner) -> ImageName {
    ImageName::of(owner.application, owner.deployment)
}

/// Returns the error of every call of every port.
async fn every_error(installation: &Installation) -> Vec<(&'static str, StepError)> {
    let (engine, owner) = (&installation.engine, owner());
    let (container, output): (ContainerId, _) =
        ("a".repeat(64).parse().unwrap(), Arc::new(Recorder::default()));
    let plan = plan(owner, image(owner));
    installation.write("Dockerfile", "FROM x");
    let (reference, command) = ("nginx".parse().unwrap(), "true".parse().unwrap());
    vec![
        ("build", engine.build(&installation.plan(owner), output.clone()).await.unwrap_err()),
        ("obtain", engine.obtain(&owner, &reference, output.clone()).await.unwrap_err()),
        ("reuse", engine.reuse(&owner, &image(owner)).await.unwrap_err()),
        ("start", engine.start(&plan).await.unwrap_err()),
        ("run_once", engine.run_once(&plan, &command, output).await.unwrap_err()),
        ("keep", engine.enable_restart_policy(&container).await.unwrap_err()),
        ("condition", engine.condition(&container).await.unwrap_err()),
        ("resume", engine.resume(&container).await.unwrap_err()),
        ("restart", engine.restart(&container).await.unwrap_err()),
        ("stop", engine.stop(&container).await.unwrap_err()),
        ("remove", Deployer::remove(&**engine, owner.deployment).await.unwrap_err()),
        ("remove_attempt", engine.remove_attempt(&owner).await.unwrap_err()),
        ("everything", engine.everything().await.unwrap_err()),
        ("printed", engine.printed(&container, None, 10).await.unwrap_err()),
        ("tail_logs", engine.tail_logs(&container, 10).await.unwrap_err()),
    ]
}

#[tokio::test]
async fn an_engine_that_is_not_well_is_a_fault_of_every_call() {
    for message in [
        "request returned 500 Internal Server Error for API route and version http://x/v1.41/y, check if the \
         server supports the requested API version",
        "Error response from daemon: write /var/lib/docker/x: no space left on device",
    ] {
        let fake = FakeDocker::failing_with(message);
        for (call, error) in every_error(&installation(&fake)).await {
            assert!(matches!(error, StepError::Retryable(_)), "{call}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_missing_engine_is_reported_by_every_call() {
    for message in [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "error during connect: Get \"http://x/v1.41/y\": read unix @->/var/run/docker.sock: connection reset",
    ] {
        let fake = FakeDocker::failing_with(message);
        let installation = installation(&fake);
        let unavailable = StepError::Unavailable(format!("the Docker engine does not answer: {message}"));
        for (call, error) in every_error(&installation).await {
            assert_eq!(error, unavailable, "{call}");
        }
        assert_eq!(installation.engine.containers().await, Err(unavailable));
    }
}

#[tokio::test]
async fn a_client_that_is_not_installed_is_a_fault_of_every_call() {
    let installation = Installation::with(|options| options.program = "no-such-docker".into());
    for (call, error) in every_error(&installation).await {
        assert_eq!(error, StepError::Retryable("`no-such-docker` is not installed".to_owned()), "{call}");
    }
}

#[tokio::test]
async fn a_client_that_hangs_is_ended() {
    let fake = FakeDocker::running("exec sleep 600");
    let installation = installation(&fake);
    let container: ContainerId = "a".repeat(64).parse().unwrap();
    let started = Instant::now();
    let error = installation.engine.condition(&container).await.unwrap_err();
    let expected = "the Docker engine does not answer: `docker` took longer than 2s";
    assert_eq!(error, StepError::Unavailable(expected.to_owned()));
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_fault() {
    let fake = FakeDocker::running("cat >/dev/null; echo 'what? {'");
    let (installation, owner) = (installation(&fake), owner());
    let container: ContainerId = "a".repeat(64).parse().unwrap();
    let unreadable = StepError::Retryable("docker returned unreadable output".to_owned());
    assert_eq!(installation.engine.condition(&container).await, Err(unreadable.clone()));
    assert_eq!(installation.engine.everything().await, Err(unreadable.clone()));
    assert_eq!(installation.engine.start(&plan(owner, image(owner))).await, Err(unreadable.clone()));
    assert_eq!(Deployer::remove(&*installation.engine, owner.deployment).await, Err(unreadable));
    assert_eq!(installation.engine.printed(&container, None, 10).await, Ok(vec![]));
}

#[tokio::test]
async fn waiting_for_events_of_a_missing_engine_does_not_spin() {
    let fake = FakeDocker::failing_with("Cannot connect to the Docker daemon");
    let started = Instant::now();
    installation(&fake).engine.wait_for_events(Duration::from_millis(2500)).await;
    assert!((2400..30_000).contains(&started.elapsed().as_millis()));
    // One of them asks where the engine is.
    assert!(fake.calls().len() <= 4, "{}", fake.calls().len());
}
