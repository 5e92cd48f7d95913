//! An engine that cannot be reached, and one that does not answer.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use launchway_domain::deployments::{ContainerId, Deployer, EngineInventory as _, ImageName, StepError};

use crate::{
    fake_engine::{FakeEngine, Reply},
    installation::{Installation, owner, plan},
};

fn at(socket: &Path, call_time: Duration) -> Installation {
    Installation::with(|options| {
        *options = options.clone().at_socket(socket);
        options.call_time = call_time;
    })
}

async fn errors(installation: &Installation) -> Vec<(&'static str, StepError)> {
    let (engine, owner) = (&installation.engine, owner());
    let container: ContainerId = "a".repeat(64).parse().unwrap();
    let plan = plan(owner, ImageName::of(owner.application, owner.deployment));
    vec![
        ("containers", engine.containers().await.unwrap_err()),
        ("start", engine.start(&plan).await.unwrap_err()),
        ("condition", engine.condition(&container).await.unwrap_err()),
        ("resume", engine.resume(&container).await.unwrap_err()),
        ("remove_attempt", engine.remove_attempt(&owner).await.unwrap_err()),
    ]
}

fn is_reported(error: &StepError) -> bool {
    matches!(error, StepError::Unavailable(why) if why.starts_with("the Docker engine does not answer: "))
}

#[tokio::test]
async fn a_socket_that_nobody_listens_on_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    for _ in 0..2 {
        for (call, error) in errors(&at(&socket, Duration::from_secs(60))).await {
            assert!(is_reported(&error), "{call}: {error:?}");
        }
        // The socket of an engine that ended without a word.
        drop(std::os::unix::net::UnixListener::bind(&socket));
    }
}

#[tokio::test]
async fn an_engine_that_never_answers_is_unavailable() {
    let fake = FakeEngine::new();
    for path in ["/containers/json", "/_ping"] {
        fake.reply(path, Reply::Nothing);
    }
    let installation = at(&fake.socket(), Duration::from_secs(60));
    let started = Instant::now();
    let error = installation.engine.containers().await.unwrap_err();
    let expected = "the Docker engine does not answer: no list of containers within 10s";
    assert_eq!(error, StepError::Unavailable(expected.to_owned()));
    assert!((9..50).contains(&started.elapsed().as_secs()));
}

#[tokio::test]
async fn a_call_that_takes_too_long_asks_whether_the_engine_is_there() {
    // Accepts, and never answers, whoever asks for what.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (call, error) in errors(&at(&socket, Duration::from_secs(2))).await {
        assert!(is_reported(&error), "{call}: {error:?}");
    }
}
