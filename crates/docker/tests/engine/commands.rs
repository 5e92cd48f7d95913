//! Commands in containers of their own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use launchway_docker::DockerOptions;
use launchway_domain::deployments::{ContainerPlan, Deployer as _, ImageBuilder as _, StepError};
use launchway_testkit::docker::base_image;

use crate::{
    installation::{Installation, owner, plan, variables},
    recorder::Recorder,
};

async fn prepared(change: impl FnOnce(&mut DockerOptions)) -> (Installation, ContainerPlan) {
    let installation = Installation::with(change);
    let owner = owner();
    let mut plan = plan(owner, installation.image(owner, "exit 9").await);
    plan.environment = variables(&[("NAME", "of a variable")]);
    (installation, plan)
}

async fn run(
    installation: &Installation,
    plan: &ContainerPlan,
    command: &str,
) -> (Result<(), StepError>, String) {
    let recorder = Arc::new(Recorder::default());
    let ended = installation.engine.run_once(plan, &command.parse().unwrap(), recorder.clone()).await;
    (ended, recorder.text())
}

#[tokio::test]
async fn a_command_runs_in_a_shell_and_leaves_no_container() {
    let (installation, plan) = prepared(|_| {}).await;
    let (ended, text) = run(&installation, &plan, "echo \"$NAME\" | tr a-z A-Z; echo warning >&2").await;
    assert_eq!(ended, Ok(()));
    assert!(text.contains("OF A VARIABLE\n") && text.contains("warning\n"), "{text}");
    assert_eq!(installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_command_that_fails_is_refused_with_its_exit_code() {
    let (installation, plan) = prepared(|options| options.limits.memory = 32 * 1024 * 1024).await;
    for (command, expected) in [
        ("echo last line; exit 3", "the command ended with exit code 3"),
        ("exit 125", "the command ended with exit code 125"),
        ("no-such-program", "the command ended with exit code 127"),
        ("-x", "the command ended with exit code 127"),
        ("exec tail -c 90m /dev/zero", "the command wanted more than 32 MiB of memory"),
    ] {
        let (ended, text) = run(&installation, &plan, command).await;
        assert_eq!(ended, Err(StepError::Rejected(expected.to_owned())), "{command} {text}");
    }
    assert_eq!(installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn lines_of_a_command_come_as_they_appear() {
    let (installation, plan) = prepared(|_| {}).await;
    let recorder = Arc::new(Recorder::default());
    let command = "echo begin; sleep 2; echo end".parse().unwrap();
    installation.engine.run_once(&plan, &command, recorder.clone()).await.unwrap();
    let between = recorder.moment_of("end").unwrap() - recorder.moment_of("begin").unwrap();
    assert!(between > Duration::from_millis(1500), "{between:?}");
}

#[tokio::test]
async fn a_command_that_does_not_end_is_ended() {
    let (installation, plan) = prepared(|options| options.command_time = Duration::from_secs(2)).await;
    let started = Instant::now();
    let (ended, _) = run(&installation, &plan, "sleep 600").await;
    assert_eq!(ended, Err(StepError::Rejected("the command took longer than 2s".to_owned())));
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_is_ended() {
    let (installation, plan) = prepared(|_| {}).await;
    let recorder = Arc::new(Recorder::default());
    let (engine, output) = (installation.engine.clone(), recorder.clone());
    let command = "echo begin; sleep 600".parse().unwrap();
    let running = tokio::spawn(async move { engine.run_once(&plan, &command, output).await });
    recorder.wait_for("begin").await;
    running.abort();
    for _ in 0..50 {
        if installation.traces.containers().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the container is still there");
}

#[tokio::test]
async fn an_image_without_a_shell_is_refused() {
    let installation = Installation::new();
    let owner = owner();
    installation.write("Dockerfile", &format!("FROM {}\nRUN rm /bin/sh\n", base_image()));
    let image =
        installation.engine.build(&installation.plan(owner), Arc::new(Recorder::default())).await.unwrap();
    let (ended, _) = run(&installation, &plan(owner, image), "true").await;
    let expected = "exec: \"/bin/sh\": stat /bin/sh: no such file or directory";
    assert_eq!(ended, Err(StepError::Rejected(expected.to_owned())));
    assert_eq!(installation.traces.containers(), Vec::<String>::new());
}
