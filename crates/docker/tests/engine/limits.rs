//! Limits of builds and containers, read from inside and from outside.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use launchway_docker::{Builder, ContainerLimits, DockerOptions};
use launchway_domain::{
    deployments::{Deployer as _, ImageBuilder as _, Owner, StepError},
    ids::Ids as _,
};
use launchway_system::clock::TimeOrderedIds;
use launchway_testkit::docker::{FakeDocker, base_image, docker};

use crate::{
    builds::by_buildkit,
    installation::{Installation, owner, plan},
    recorder::Recorder,
};

/// Prints the limits of its control group, in version 1 and in version 2.
const READ_LIMITS: &str = "cd /sys/fs/cgroup; \
    if [ -d pids ]; then echo pids=$(cat pids/pids.max) cpu=$(cat cpu/cpu.cfs_quota_us)/$(cat cpu/cpu.cfs_period_us) \
    shares=$(cat cpu/cpu.shares); \
    else echo pids=$(cat pids.max) cpu=$(sed 's: :/:' cpu.max) shares=$(cat cpu.weight); fi";

/// Returns the weight that the kernel shows for shares of the engine.
fn shares(shares: u32) -> u32 {
    let is_unified = !Path::new("/sys/fs/cgroup/pids").is_dir();
    if is_unified { 1 + (shares - 2) * 9999 / 262_142 } else { shares }
}

fn small(options: &mut DockerOptions) {
    options.builder = Builder::Legacy;
    options.build_limits.pids = 64;
    options.build_limits.cpus = Some(0.5);
    options.limits = ContainerLimits { memory: 64 << 20, cpus: Some(0.25), pids: 50 };
}

/// Returns the current control groups of an installation's builds, wherever processes are limited.
fn cgroups(installation: &Installation) -> Vec<PathBuf> {
    let prefix = format!("launchway-{}-", installation.instance);
    let folders = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(Path::new);
    let entries = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let is_ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&prefix);
    entries.map(|entry| entry.path()).filter(is_ours).collect()
}

async fn until_no_cgroup_is_left(installation: &Installation) {
    for _ in 0..100 {
        if cgroups(installation).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?}", cgroups(installation));
}

#[tokio::test]
async fn a_container_and_a_command_read_their_limits() {
    let installation = Installation::with(small);
    let owner = owner();
    let container = installation.container(owner, "sleep 600").await;
    let expected = format!("pids=50 cpu=25000/100000 shares={}", shares(512));
    let seen = docker(&["exec", container.id.as_str(), "sh", "-c", READ_LIMITS]);
    assert_eq!(seen.trim(), expected);
    let recorder = Arc::new(Recorder::default());
    let image = installation.image(owner, "exit 9").await;
    let command = READ_LIMITS.parse().unwrap();
    installation.engine.run_once(&plan(owner, image), &command, recorder.clone()).await.unwrap();
    assert!(recorder.text().contains(&expected), "{}", recorder.text());
}

#[tokio::test]
async fn a_build_has_its_limits_on_both_sides() {
    let installation = Installation::with(small);
    let script = format!("{READ_LIMITS}; cat /proc/self/cgroup; echo go''es on; sleep 2");
    installation.write("Dockerfile", &format!("FROM {}\nRUN {script}\n", base_image()));
    let (engine, plan) = (installation.engine.clone(), installation.plan(owner()));
    let recorder = Arc::new(Recorder::default());
    let build = tokio::spawn({
        let recorder = recorder.clone();
        async move { engine.build(&plan, recorder).await }
    });
    recorder.wait_for("goes on").await;
    let outside = cgroups(&installation);
    let parent = outside.iter().find(|path| path.join("pids.max").is_file()).unwrap();
    assert_eq!(fs::read_to_string(parent.join("pids.max")).unwrap().trim(), "64");
    build.await.unwrap().unwrap();
    let inside = recorder.text();
    let expected = format!("cpu=50000/100000 shares={}", shares(256));
    assert!(inside.contains(&expected), "{inside}");
    let name = parent.file_name().unwrap().to_string_lossy().into_owned();
    assert!(inside.contains(&format!(":/{name}/")), "{name} is not in {inside}");
    until_no_cgroup_is_left(&installation).await;
}

#[tokio::test]
async fn a_build_with_too_many_processes_says_so() {
    let installation = Installation::with(small);
    let script = "i=0; while [ $i -lt 200 ]; do sleep 20 & i=$((i+1)); echo st''arted $i; done; wait";
    installation.write("Dockerfile", &format!("FROM {}\nRUN {script}\n", base_image()));
    let recorder = Arc::new(Recorder::default());
    let error = installation.engine.build(&installation.plan(owner()), recorder.clone()).await.unwrap_err();
    let StepError::Rejected(message) = &error else { panic!("{error:?}") };
    assert!(
        message.contains("64 processes and threads") && message.contains("LAUNCHWAY_BUILD_PIDS"),
        "{message}"
    );
    let started = recorder.text().matches("started ").count();
    assert!((20..64).contains(&started), "{started} processes were started");
    until_no_cgroup_is_left(&installation).await;
}

#[tokio::test]
async fn a_trigger_of_an_image_has_the_limits_of_a_build() {
    let installation = Installation::with(small);
    let name = format!("launchway-test/bomb:{}", installation.instance);
    let container = docker(&["create", base_image()]);
    let script = "i=0; while [ $i -lt 200 ]; do sleep 20 & i=$((i+1)); done; wait";
    docker(&["commit", "--change", &format!("ONBUILD RUN {script}"), &container, &name]);
    docker(&["rm", &container]);
    let recorder = Arc::new(Recorder::default());
    let obtained = installation.engine.obtain(&owner(), &name.parse().unwrap(), recorder).await;
    docker(&["image", "rm", &name]);
    let Err(StepError::Rejected(message)) = obtained else { panic!("{obtained:?}") };
    assert!(message.contains("64 processes and threads"), "{message}");
}

#[tokio::test]
async fn a_build_that_is_given_up_leaves_no_cgroup() {
    let installation = Installation::with(small);
    installation.write("Dockerfile", &format!("FROM {}\nRUN echo be''gins; sleep 600\n", base_image()));
    let (engine, plan) = (installation.engine.clone(), installation.plan(owner()));
    let recorder = Arc::new(Recorder::default());
    let build = tokio::spawn({
        let recorder = recorder.clone();
        async move { engine.build(&plan, recorder).await }
    });
    recorder.wait_for("begins").await;
    build.abort();
    drop(build.await);
    // The engine ends the step after the client is gone.
    until_no_cgroup_is_left(&installation).await;
}

#[tokio::test]
async fn cgroups_of_an_earlier_run_go_once_they_are_empty() {
    let installation = Installation::with(small);
    let root =
        ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new).into_iter().find(|root| root.is_dir());
    let [empty, used] = [TimeOrderedIds.next(), TimeOrderedIds.next()].map(|id| {
        let folder = root.unwrap().join(format!("launchway-{}-{id}", installation.instance));
        fs::create_dir(&folder).unwrap();
        folder
    });
    let mut process = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(used.join("cgroup.procs"), process.id().to_string()).unwrap();
    let first = TimeOrderedIds.next();
    let own = root.unwrap().join(format!("launchway-{}-{}", installation.instance, TimeOrderedIds.next()));
    fs::create_dir(&own).unwrap();

    let engine = installation.engine.clone();
    let removal = tokio::spawn(async move { engine.remove_leftover_cgroups(first).await });
    for _ in 0..100 {
        if !empty.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let seen = (empty.exists(), used.exists());
    process.kill().unwrap();
    process.wait().unwrap();
    removal.await.unwrap().unwrap();
    let seen_later = (used.exists(), own.exists());
    fs::remove_dir(&own).unwrap();
    assert_eq!((seen, seen_later), ((false, true), (false, true)));
}

#[tokio::test]
async fn a_second_build_with_limits_uses_the_cache() {
    let installation = Installation::with(small);
    let step = format!("echo ma''de {}", installation.instance);
    installation.write("Dockerfile", &format!("FROM {}\nRUN {step}\n", base_image()));
    let first = owner();
    let second = Owner { deployment: TimeOrderedIds.next().into(), ..first };
    for (owner, is_cached) in [(first, false), (second, true)] {
        let recorder = Arc::new(Recorder::default());
        installation.engine.build(&installation.plan(owner), recorder.clone()).await.unwrap();
        let text = recorder.text();
        assert_eq!(
            (text.contains("Using cache"), text.contains("\nmade ")),
            (is_cached, !is_cached),
            "{text}"
        );
    }
}

#[tokio::test]
async fn limits_that_builds_do_not_have_are_listed() {
    let missing = async |change: fn(&mut DockerOptions)| {
        let missing = Installation::with(change).engine.missing_build_limits().await.unwrap();
        missing.into_iter().map(|limit| limit.setting).collect::<Vec<_>>()
    };
    assert_eq!(missing(small).await, Vec::<&str>::new());
    let all = ["LAUNCHWAY_BUILD_MEMORY", "LAUNCHWAY_BUILD_PIDS", "LAUNCHWAY_BUILD_CPUS"];
    assert_eq!(missing(by_buildkit).await, all);
    // An engine on another machine.
    let fake = FakeDocker::running("echo 'cgroupfs 2 6.1.0 elsewhere'");
    let installation = Installation::with(|options| {
        small(options);
        options.program = fake.program();
    });
    let missing = installation.engine.missing_build_limits().await.unwrap();
    assert_eq!(missing.len(), 1);
    assert!(missing[0].reason.contains("another machine"), "{missing:?}");
}

#[tokio::test]
async fn a_command_line_without_buildkit_is_named() {
    let fake = FakeDocker::failing_with(
        "ERROR: BuildKit is enabled but the buildx component is missing or broken.\n       Install the buildx component to \
         build images with BuildKit:\n       https://docs.docker.com/go/buildx/",
    );
    let installation = Installation::with(|options| {
        options.builder = Builder::BuildKit;
        options.program = fake.program();
    });
    let StepError::Rejected(why) = installation.engine.missing_build_limits().await.unwrap_err() else {
        panic!("another attempt would fail too");
    };
    assert!(why.contains("LAUNCHWAY_BUILDER") && why.contains("buildx"), "{why}");
}
