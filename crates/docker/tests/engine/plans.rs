//! Builds that are planned by a fake `nixpacks`.

use std::{fs, os::unix::fs::symlink, path::PathBuf, sync::Arc, time::Duration};

use launchway_docker::nixpacks::{Nixpacks, NixpacksOptions};
use launchway_domain::deployments::{BuildPlan, BuildPlanner as _, StepError};
use launchway_testkit::docker::FakeProgram;

use crate::{
    installation::{Installation, owner, variables},
    recorder::Recorder,
};

/// Accepts every project, and writes its variables into a script, as the real one does.
const WILLING: &str = r#"
case "$1" in
plan) echo '{"phases":{"install":{}},"variables":{"CI":"true","TOKEN":"of the plan"}}' ;;
build)
    while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
    mkdir -p "$out/.nixpacks"
    echo FROM x > "$out/.nixpacks/Dockerfile"
    echo "docker build --build-arg TOKEN=$TOKEN" > "$out/.nixpacks/build.sh"
    echo 'install | npm ci' ;;
esac"#;

fn planner(program: PathBuf) -> Nixpacks {
    Nixpacks::new(NixpacksOptions { program, time: Duration::from_secs(20) })
}

fn a_plan(installation: &Installation, pairs: &[(&str, &str)]) -> BuildPlan {
    installation.write("web/package.json", "{}");
    let base_path = "/web".parse().unwrap();
    BuildPlan { base_path, variables: variables(pairs), ..installation.plan(owner()) }
}

async fn refusal(fake: &FakeProgram, plan: &BuildPlan) -> String {
    match planner(fake.program()).complete(plan, Arc::new(Recorder::default())).await {
        Err(StepError::Rejected(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plan_gets_a_dockerfile_and_its_variables() {
    let (installation, fake) = (Installation::new(), FakeProgram::running("nixpacks", WILLING));
    let plan = a_plan(&installation, &[("TOKEN", "open-sesame")]);
    installation.write("web/.nixpacks/left.txt", "of the repository");
    let output = Arc::new(Recorder::default());

    let completed = planner(fake.program()).complete(&plan, output.clone()).await.unwrap();

    let expected = variables(&[("CI", "true"), ("TOKEN", "open-sesame")]);
    let dockerfile = ".nixpacks/Dockerfile".parse().unwrap();
    assert_eq!(completed, BuildPlan { dockerfile, variables: expected, ..plan });
    assert_eq!(output.text(), "install | npm ci\n");
    let made = installation.root().join("web/.nixpacks");
    let names: Vec<_> = made.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["Dockerfile"]);
}

#[tokio::test]
async fn variables_are_passed_by_environment_except_dangerous_ones() {
    let (installation, fake) = (Installation::new(), FakeProgram::running("nixpacks", WILLING));
    let plan = a_plan(&installation, &[("LD_PRELOAD", "/web/evil.so"), ("TOKEN", "open\nsesame")]);

    planner(fake.program()).complete(&plan, Arc::new(Recorder::default())).await.unwrap();

    let folder = fs::canonicalize(installation.root().join("web")).unwrap().display().to_string();
    let named = ["--env", "LD_PRELOAD=withheld", "--env", "TOKEN"];
    let mut calls = fake.calls();
    calls.sort_by_key(|call| call.arguments.clone());
    let ends = [vec!["--no-cache", "--out", &folder, &folder], vec!["--format", "json", &folder]];
    for ((call, command), end) in calls.iter().zip(["build", "plan"]).zip(ends) {
        let expected: Vec<&str> = [command].into_iter().chain(named).chain(end).collect();
        assert_eq!(call.arguments, expected);
        let mut names: Vec<_> = call.environment.iter().map(|pair| pair.split_once('=').unwrap().0).collect();
        names.retain(|name| !["PWD", "OLDPWD", "_", "SHLVL"].contains(name));
        names.sort_unstable();
        assert_eq!(names, ["PATH", "TOKEN"]);
        assert!(call.environment.contains(&"TOKEN=open\nsesame".to_owned()));
    }
    assert_eq!(calls.len(), 2);
}

#[tokio::test]
async fn without_the_program_it_says_how_to_get_it() {
    let installation = Installation::new();
    let fake = FakeProgram::running("nixpacks", WILLING);
    fs::remove_file(fake.program()).unwrap();
    let message = refusal(&fake, &a_plan(&installation, &[])).await;
    assert!(
        message.contains("is not on the server's PATH: install it by `cargo install nixpacks`"),
        "{message}"
    );
}

#[tokio::test]
async fn what_nobody_recognises_or_cannot_be_planned_is_refused() {
    let installation = Installation::new();
    let plan = a_plan(&installation, &[]);
    for (script, expected) in [
        (
            "echo '{}'",
            "nixpacks does not recognise what is in `/web`: see https://nixpacks.com for what it supports",
        ),
        ("echo 'Error: no start' >&2; exit 1", "nixpacks cannot plan this build: Error: no start"),
        ("echo nonsense", "nixpacks returned unreadable output"),
    ] {
        assert_eq!(refusal(&FakeProgram::running("nixpacks", script), &plan).await, expected);
    }
}

#[tokio::test]
async fn nothing_is_planned_that_leads_out_of_the_checkout() {
    let fake = FakeProgram::running("nixpacks", WILLING);
    let installation = Installation::new();
    let plan = a_plan(&installation, &[("NIXPACKS_CONFIG_FILE", "../..\n/secret.toml")]);
    let expected = "`../../secret.toml` of `NIXPACKS_CONFIG_FILE` is a link to a path outside the repository";
    assert_eq!(refusal(&fake, &plan).await, expected);

    let plan = a_plan(&installation, &[]);
    symlink("/etc/passwd", installation.root().join("web/Procfile")).unwrap();
    assert_eq!(refusal(&fake, &plan).await, "`web/Procfile` is a link to a path outside the repository");
    // Also where the folder's own links lead.
    fs::rename(installation.root().join("web/Procfile"), installation.root().join("Procfile")).unwrap();
    symlink("../Procfile", installation.root().join("web/Procfile")).unwrap();
    let expected = refusal(&fake, &plan).await;
    assert!(expected.ends_with("Procfile` is a link to a path outside the repository"), "{expected}");
    assert!(fake.calls().is_empty());
}

#[tokio::test]
async fn nothing_is_written_outside_of_the_checkout() {
    let installation = Installation::new();
    let plan = a_plan(&installation, &[]);
    for (planned, name) in [
        (r#""staticAssets":{"a.txt":"","/etc/cron.d/x":""}"#, "/etc/cron.d/x"),
        (r#""staticAssets":{"../../../.ssh/authorized_keys":""}"#, "../../../.ssh/authorized_keys"),
        (r#""staticAssets":{"a/../../x":""}"#, "a/../../x"),
        (r#""phases":{"setup":{"nixpkgsArchive":"a/../../x"}}"#, "a/../../x"),
    ] {
        let script = format!("echo '{{\"phases\":{{\"install\":{{}}}},{planned}}}'");
        let fake = FakeProgram::running("nixpacks", &script);
        let expected = format!("the plan may not have a file written at `{name}`: it is outside the build");
        assert_eq!(refusal(&fake, &plan).await, expected);
        assert_eq!(fake.calls().len(), 1, "it only plans");
    }
}
