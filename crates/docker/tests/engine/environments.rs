//! Users' variables are passed byte for byte, and never visible to others.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use data_encoding::BASE64;
use launchway_domain::{
    applications::Variables,
    deployments::{Deployer as _, EngineInventory as _, ImageBuilder as _, StepError},
};

use crate::{
    installation::{Installation, owner, plan, variables},
    recorder::Recorder,
};

/// Returns the environment of the first program of a container with these variables.
async fn seen(environment: Variables) -> BTreeMap<String, String> {
    let installation = Installation::new();
    let owner = owner();
    let image = installation.image(owner, "exec env -i /bin/base64 -w 0 /proc/$PPID/../1/environ").await;
    let mut plan = plan(owner, image);
    plan.environment = environment;
    let recorder = Arc::new(Recorder::default());
    let command = "base64 -w 0 /proc/self/environ".parse().unwrap();
    installation.engine.run_once(&plan, &command, recorder.clone()).await.unwrap();
    let bytes = BASE64.decode(recorder.text().trim().as_bytes()).unwrap();
    let pairs = bytes.split(|byte| *byte == 0).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| String::from_utf8(pair.to_vec()).unwrap());
    pairs.map(|pair| pair.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()).collect()
}

#[tokio::test]
async fn every_value_arrives_byte_for_byte() {
    let long = "x".repeat(65_536);
    let just_a_line = "y".repeat(60_000 - 5);
    let pairs = [
        ("QUOTES", "\"a\" 'b' `id`"),
        ("DOLLAR", "$HOME ${PATH} $(id) $$"),
        ("EQUALS", "=a=b="),
        ("SPACES", "  both ends  "),
        ("TABS", "\ta\t"),
        ("HASH", "#no comment"),
        ("UNICODE", "ä\u{1f680}\u{feff}\u{2028}"),
        ("EMPTY", ""),
        ("BACKSLASH", "a\\nb\\"),
        ("LINES", "-----BEGIN-----\nQUJD\n-----END-----\n"),
        ("RETURNS", "a\r\nb\r"),
        ("INJECTION", "x\nINJECTED=yes\n--privileged"),
        ("DASHES", "--privileged"),
        ("LONG", &long),
        ("LINE", &just_a_line),
        ("CONTROL", "\u{1}\u{7f}\u{1b}[0m"),
        ("HTTP_PROXY", "http://192.0.2.1:1"),
        ("DOCKER_HOST", "tcp://192.0.2.1:1"),
        ("LD_PRELOAD", "/nothing.so"),
        ("PATH", "/bin:/app/bin"),
    ];
    let seen = seen(variables(&pairs)).await;
    for (name, value) in pairs {
        assert!(seen.get(name).is_some_and(|seen| seen == value), "{name}: {:?}", seen.get(name));
    }
    assert!(!seen.contains_key("INJECTED"));
}

#[tokio::test]
async fn there_may_be_512_variables() {
    let pairs: BTreeMap<String, String> =
        (0..512).map(|n| (format!("V{n}"), format!("{n}\n").repeat(n % 2 + 1))).collect();
    let seen = seen(pairs.clone().try_into().unwrap()).await;
    for (name, value) in pairs {
        assert_eq!(seen.get(&name), Some(&value));
    }
}

#[tokio::test]
async fn rejects_variables_of_docker_that_need_inheriting() {
    let installation = Installation::new();
    let owner = owner();
    let image = installation.image(owner, "true").await;
    let mut plan = plan(owner, image);
    plan.environment = variables(&[("LD_PRELOAD", "a\nb")]);
    let message = installation.engine.start(&plan).await.unwrap_err();
    assert!(
        matches!(&message, StepError::Rejected(message) if message.contains("`LD_PRELOAD`")),
        "{message:?}"
    );
}

#[tokio::test]
async fn the_largest_environment_still_starts_a_program() {
    let long = "x".repeat(60_000 - 10);
    let pairs: BTreeMap<String, String> = (0..32).map(|n| (format!("V{n}"), long.clone())).collect();
    assert_eq!(seen(pairs.try_into().unwrap()).await.get("V31"), Some(&long));
}

#[tokio::test]
async fn no_command_line_shows_a_value() {
    let installation = Installation::new();
    let owner = owner();
    let (one, other) = (format!("canary-{}", owner.deployment), format!("canary\n{}", owner.deployment));
    let needle = owner.deployment.to_string();
    let stop = Arc::new(AtomicBool::new(false));
    let sweep = {
        let (stop, needle) = (stop.clone(), needle.clone());
        std::thread::spawn(move || {
            let (mut lines, mut seen) = (0, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                for process in fs::read_dir("/proc").unwrap().flatten() {
                    let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
                    let line = String::from_utf8_lossy(&line).into_owned();
                    lines += usize::from(line.contains(&needle));
                    if line.contains("canary") {
                        seen.push(line);
                    }
                }
            }
            (lines, seen)
        })
    };
    let image = installation.image(owner, "echo started; sleep 600").await;
    let mut plan = plan(owner, image);
    plan.environment = variables(&[("SECRET", &one), ("PEM", &other)]);
    let mut build = installation.plan(owner);
    build.variables = variables(&[("SECRET", &one), ("PEM", &other)]);
    installation.engine.build(&build, Arc::new(Recorder::default())).await.unwrap();
    let container = installation.engine.start(&plan).await.unwrap();
    let command = "true".parse().unwrap();
    installation.engine.run_once(&plan, &command, Arc::new(Recorder::default())).await.unwrap();
    installation.engine.restart(&container.id).await.unwrap();
    installation.engine.everything().await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let (lines, seen) = sweep.join().unwrap();
    assert!(lines > 0, "the sweep saw the calls");
    assert_eq!(seen, Vec::<String>::new());
}
