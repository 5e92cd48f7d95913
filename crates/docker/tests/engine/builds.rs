//! Building images, with both builders.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use launchway_docker::{BuildLimits, Builder, DockerOptions};
use launchway_domain::{
    deployments::{BuildCache, BuildPlan, ImageBuilder as _, ImageName, Owner, StepError},
    ids::Ids as _,
};
use launchway_system::clock::TimeOrderedIds;
use launchway_testkit::docker::{base_image, docker};

use crate::{
    installation::{Installation, owner, variables},
    recorder::Recorder,
};

fn by_legacy(options: &mut DockerOptions) {
    options.builder = Builder::Legacy;
}

pub(crate) fn by_buildkit(options: &mut DockerOptions) {
    options.builder = Builder::BuildKit;
    options.program = program_with_buildkit();
}

/// Clients since version 23 build with BuildKit only if buildx is installed.
fn program_with_buildkit() -> PathBuf {
    let can_build = |program: &&str| {
        let mut help = Command::new(program);
        help.args(["build", "--help"])
            .env("DOCKER_BUILDKIT", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        help.status().is_ok_and(|status| status.success())
    };
    let program = ["docker", "/usr/bin/docker"].into_iter().find(can_build);
    let Some(program) = program else { panic!("no docker here builds by BuildKit: install docker-buildx") };
    program.into()
}

/// Makes each function a test with either builder.
macro_rules! with_both_builders {
    ($($promise:ident),* $(,)?) => {
        mod legacy {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(super::by_legacy).await;
            })*
        }

        mod buildkit {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(super::by_buildkit).await;
            })*
        }
    };
}

with_both_builders!(
    an_image_is_built_named_and_marked,
    lines_come_as_they_appear,
    arguments_reach_the_build_byte_for_byte,
    a_step_that_fails_is_refused,
    a_dockerfile_that_is_none_is_refused,
    a_dockerfile_in_another_folder_may_be_used,
    a_build_that_does_not_end_is_ended,
    a_build_that_nobody_waits_for_is_ended,
    building_a_second_time_replaces_the_first,
);

type Choice = fn(&mut DockerOptions);

async fn an_image_is_built_named_and_marked(choice: Choice) {
    let installation = Installation::with(choice);
    let owner = owner();
    // New content, for a step that was run before prints nothing again.
    let content = format!("from the repository of {}", installation.instance);
    installation.write("file", &content);
    installation.write("Dockerfile", &format!("FROM {}\nCOPY file /file\nRUN cat /file\n", base_image()));
    let recorder = Arc::new(Recorder::default());
    let image = installation.engine.build(&installation.plan(owner), recorder.clone()).await.unwrap();
    assert_eq!(image, ImageName::of(owner.application, owner.deployment));
    assert!(recorder.text().contains(&content), "{}", recorder.text());
    let labels = docker(&["image", "inspect", "--format", "{{json .Config.Labels}}", image.as_str()]);
    let Owner { organization, application, deployment, .. } = owner;
    for (name, value) in [
        ("instance", installation.instance.to_string()),
        ("owner", format!("{organization}/{application}/{deployment}/1")),
    ] {
        assert!(labels.contains(&format!("\"launchway.{name}\":\"{value}\"")), "{labels}");
    }
}

async fn lines_come_as_they_appear(choice: Choice) {
    let installation = Installation::with(choice);
    let step = format!("echo be''gin {0}; sleep 2; echo e''nd {0}", installation.instance);
    installation.write("Dockerfile", &format!("FROM {}\nRUN {step}\n", base_image()));
    let recorder = Arc::new(Recorder::default());
    installation.engine.build(&installation.plan(owner()), recorder.clone()).await.unwrap();
    let moment = |word: &str| recorder.moment_of(&format!("{word} {}", installation.instance)).unwrap();
    let between = moment("end") - moment("begin");
    assert!(between > Duration::from_millis(1500), "{between:?}");
}

async fn arguments_reach_the_build_byte_for_byte(choice: Choice) {
    let installation = Installation::with(choice);
    let pairs = [
        ("PLAIN", " a=b \"q\" 'q' $X `id` "),
        ("LINES", "first\nsecond"),
        ("HTTP_PROXY", "http://192.0.2.1:3128"),
        ("DOCKER_HOST", "tcp://192.0.2.1:1"),
        ("LD_PRELOAD", "/nothing.so"),
        ("GODEBUG", "x=1"),
        ("EMPTY", ""),
    ];
    let mut text = format!("FROM {}\n", base_image());
    for (name, _) in &pairs {
        text += &format!("ARG {name}\n");
    }
    // Two of these would hinder the step itself.
    text += "RUN env -0 | base64 -w 0 > /seen\n";
    installation.write("Dockerfile", &text);
    let mut plan = installation.plan(owner());
    plan.variables = variables(&pairs);
    let recorder = Arc::new(Recorder::default());
    let image = installation.engine.build(&plan, recorder.clone()).await;
    let image = image.unwrap_or_else(|error| panic!("{error}: {}", recorder.text()));
    let label = format!("launchway.instance={}", installation.instance);
    let seen = docker(&[
        "run",
        "--rm",
        "--label",
        &label,
        "--network",
        "none",
        image.as_str(),
        "base64",
        "-d",
        "/seen",
    ]);
    for (name, value) in pairs {
        assert!(seen.split('\0').any(|pair| pair == format!("{name}={value}")), "{name}: {seen:?}");
    }
}

async fn a_step_that_fails_is_refused(choice: Choice) {
    let installation = Installation::with(choice);
    installation
        .write("Dockerfile", &format!("FROM {}\nRUN echo no space left on device; exit 3\n", base_image()));
    let recorder = Arc::new(Recorder::default());
    let error = installation.engine.build(&installation.plan(owner()), recorder.clone()).await.unwrap_err();
    assert!(
        matches!(&error, StepError::Rejected(message) if message.starts_with("the build failed: ") && message.ends_with(": 3")),
        "{error:?}"
    );
    assert_eq!(installation.traces.images(), Vec::<String>::new());
}

async fn a_dockerfile_that_is_none_is_refused(choice: Choice) {
    let installation = Installation::with(choice);
    installation.write("Dockerfile", "NONSENSE here\n");
    let recorder = Arc::new(Recorder::default());
    let error = installation.engine.build(&installation.plan(owner()), recorder.clone()).await.unwrap_err();
    assert!(
        matches!(&error, StepError::Rejected(message) if message.to_lowercase().contains("nonsense")),
        "{error:?}"
    );
    let mut missing = installation.plan(owner());
    missing.dockerfile = "deploy/Dockerfile".parse().unwrap();
    let error = installation.engine.build(&missing, recorder).await.unwrap_err();
    assert_eq!(error, StepError::Rejected("there is no Dockerfile at `deploy/Dockerfile`".to_owned()));
}

async fn a_dockerfile_in_another_folder_may_be_used(choice: Choice) {
    let installation = Installation::with(choice);
    installation.write(
        "apps/web/deploy/My.Dockerfile",
        &format!("FROM {}\nCOPY in-base /x\nRUN test ! -e /y\n", base_image()),
    );
    installation.write("apps/web/in-base", "x");
    installation.write("apps/web/.dockerignore", "ignored\n");
    let mut plan = installation.plan(owner());
    plan.base_path = "/apps/web".parse().unwrap();
    plan.dockerfile = "deploy/My.Dockerfile".parse().unwrap();
    let recorder = Arc::new(Recorder::default());
    let built = installation.engine.build(&plan, recorder.clone()).await;
    assert!(built.is_ok(), "{built:?} {}", recorder.text());
}

async fn a_build_that_does_not_end_is_ended(choice: Choice) {
    let installation = Installation::with(|options| {
        choice(options);
        options.build_limits = BuildLimits { time: Duration::from_secs(4), ..BuildLimits::default() };
    });
    let sleep = endless(&installation);
    let started = Instant::now();
    let error = installation
        .engine
        .build(&installation.plan(owner()), Arc::new(Recorder::default()))
        .await
        .unwrap_err();
    assert_eq!(error, StepError::Rejected("the build took longer than 4s".to_owned()));
    assert!(started.elapsed() < Duration::from_secs(60));
    wait_until_nobody_runs(&sleep).await;
}

async fn a_build_that_nobody_waits_for_is_ended(choice: Choice) {
    let installation = Installation::with(choice);
    let sleep = endless(&installation);
    let (engine, plan) = (installation.engine.clone(), installation.plan(owner()));
    let build = tokio::spawn(async move { engine.build(&plan, Arc::new(Recorder::default())).await });
    while !runs(&sleep) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!build.is_finished());
    }
    build.abort();
    wait_until_nobody_runs(&sleep).await;
}

async fn building_a_second_time_replaces_the_first(choice: Choice) {
    let installation = Installation::with(choice);
    let mut owner = owner();
    for attempt in 1..=2 {
        owner.attempt = attempt;
        installation.write("Dockerfile", &format!("FROM {}\nENV ATTEMPT={attempt}\n", base_image()));
        installation.engine.build(&installation.plan(owner), Arc::new(Recorder::default())).await.unwrap();
    }
    assert_eq!(installation.traces.images().len(), 1);
}

#[tokio::test]
async fn a_legacy_build_that_wants_too_much_memory_is_ended() {
    let installation = Installation::with(|options| {
        by_legacy(options);
        options.build_limits.memory = 64 * 1024 * 1024;
    });
    installation.write(
        "Dockerfile",
        &format!("FROM {}\nRUN head -c 300m /dev/zero | tail -c 200m > /dev/null\n", base_image()),
    );
    let recorder = Arc::new(Recorder::default());
    let error = installation.engine.build(&installation.plan(owner()), recorder.clone()).await.unwrap_err();
    assert!(
        matches!(&error, StepError::Rejected(message) if message.contains("more than 64 MiB of memory")),
        "{error:?} {}",
        recorder.text()
    );
}

#[tokio::test]
async fn the_builder_that_limits_memory_is_preferred() {
    let installation = Installation::new();
    installation.write("Dockerfile", &format!("FROM {}\n", base_image()));
    let recorder = Arc::new(Recorder::default());
    installation.engine.build(&installation.plan(owner()), recorder.clone()).await.unwrap();
    let text = recorder.text();
    assert!(text.contains("Step 1/") && !text.contains("DEPRECATED"), "{text}");
}

/// Writes a Dockerfile with a step that does not end; returns the argument that identifies its process.
fn endless(installation: &Installation) -> String {
    // A number of seconds that no other process sleeps.
    let seconds =
        format!("86{}", &installation.instance.to_string().replace(|c: char| !c.is_ascii_digit(), "")[..7]);
    installation.write("Dockerfile", &format!("FROM {}\nRUN sleep {seconds}\n", base_image()));
    seconds
}

fn runs(seconds: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.starts_with(format!("sleep\0{seconds}\0").as_bytes()))
}

async fn wait_until_nobody_runs(seconds: &str) {
    for _ in 0..100 {
        if !runs(seconds) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the step still runs");
}

#[tokio::test]
async fn a_build_takes_over_its_own_steps_and_nobody_elses() {
    let installation = Installation::with(by_legacy);
    // The engine distinguishes builds by their arguments, except for those of a proxy.
    let steps = format!("FROM {}\nRUN echo through $HTTP_PROXY > /way\nRUN cat /way\n", base_image());
    installation.write("Dockerfile", &steps);
    let (ours, theirs) = (owner(), owner());
    let build = async |owner, proxy: &str| {
        let recorder = Arc::new(Recorder::default());
        let mut plan = installation.plan(owner);
        plan.variables = variables(&[("HTTP_PROXY", proxy)]);
        installation.engine.build(&plan, recorder.clone()).await.unwrap();
        recorder.text()
    };
    assert!(build(ours, "http://ours").await.contains("through http://ours"));
    let of_others = build(theirs, "http://theirs").await;
    assert!(of_others.contains("through http://theirs"), "{of_others}");
    assert!(!of_others.contains("Using cache"), "{of_others}");
    let again = Owner { deployment: TimeOrderedIds.next().into(), ..ours };
    let again = build(again, "http://ours").await;
    assert!(again.contains("Using cache") && !again.contains("through http"), "{again}");
}

#[tokio::test]
async fn a_build_without_the_cache_runs_every_step() {
    for builder in [by_legacy, by_buildkit] {
        let installation = Installation::with(builder);
        let steps = format!("FROM {}\nRUN cat /proc/sys/kernel/random/uuid | tee /made\n", base_image());
        installation.write("Dockerfile", &steps);
        let first = owner();
        let build = async |cache| {
            let recorder = Arc::new(Recorder::default());
            let owner = Owner { deployment: TimeOrderedIds.next().into(), ..first };
            let plan = BuildPlan { cache, ..installation.plan(owner) };
            let image = installation.engine.build(&plan, recorder.clone()).await.unwrap();
            docker(&["run", "--rm", image.as_str(), "cat", "/made"])
        };
        let made = build(BuildCache::Use).await;
        assert_eq!(build(BuildCache::Use).await, made);
        let anew = build(BuildCache::Ignore).await;
        assert_ne!(anew, made);
        // Later builds take over the newest steps.
        assert_eq!(build(BuildCache::Use).await, anew);
    }
}

#[tokio::test]
async fn a_build_runs_in_the_network_of_its_organization() {
    let installation = Installation::with(by_legacy);
    installation.write("Dockerfile", &format!("FROM {}\nRUN ip -o -4 addr show eth0\n", base_image()));
    let recorder = Arc::new(Recorder::default());
    installation.engine.build(&installation.plan(owner()), recorder.clone()).await.unwrap();
    assert!(recorder.text().contains("inet 10."), "{}", recorder.text());
}
