//! `launchway doctor`: a line for each check, a hint for each that did not pass, and nothing changed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use launchway_testkit::{
    docker::{base_image, docker},
    server::TestServer,
    wait::until,
};
use serde_json::json;

use crate::{
    harness::{DEPLOY, Harness, text},
    person::CommandOutput,
};

/// Ids that no record has.
const APPLICATION: &str = "01980000-0000-7000-8000-0000000000a2";
const DEPLOYMENT: &str = "01980000-0000-7000-8000-0000000000a3";

/// Runs `launchway doctor` with the settings of `server` and `more`.
fn doctor(server: &TestServer, more: &[(&str, &str)]) -> CommandOutput {
    let output = server.command(&["doctor"]).envs(more.iter().copied()).output().unwrap();
    CommandOutput::new(&["doctor"], output)
}

/// Asserts that the report has a line that begins like this, and returns it.
#[track_caller]
fn line<'a>(report: &'a CommandOutput, begin: &str) -> &'a str {
    let found = report.stdout.lines().find(|line| line.starts_with(begin));
    found.unwrap_or_else(|| panic!("no line `{begin}`\n{report}"))
}

/// Asserts that the report has this line, and a hint with `words` behind it.
#[track_caller]
fn has_hint(report: &CommandOutput, begin: &str, words: &str) {
    let mut lines = report.stdout.lines().skip_while(|line| !line.starts_with(begin));
    assert!(lines.next().is_some(), "no line `{begin}`\n{report}");
    let hint = lines.next().unwrap_or_default();
    assert!(hint.starts_with("      hint: ") && hint.contains(words), "`{hint}` of `{begin}`\n{report}");
}

/// Asserts that the checks failed, `failures` of them.
#[track_caller]
fn fails(report: &CommandOutput, failures: usize) {
    let count = report.stdout.lines().filter(|line| line.starts_with("FAIL  ")).count();
    assert_eq!((report.code, count), (Some(1), failures), "{report}");
    let sentence = match failures {
        1 => "error: one check failed".to_owned(),
        _ => format!("error: {failures} checks failed"),
    };
    assert!(report.stderr.contains(&sentence), "{report}");
}

/// Asserts that no check failed.
#[track_caller]
fn passes(report: &CommandOutput) {
    assert_eq!((report.code, report.stdout.contains("FAIL")), (Some(0), false), "{report}");
    assert_eq!(report.stderr, "", "{report}");
}

/// Requests a deployment of `application`, waits for its end, and returns the ids of both and the state.
fn deploy(harness: &Harness, application: &serde_json::Value) -> (String, String, String) {
    let made = harness.admin.post(DEPLOY, application).success();
    let deployment = text(&made["deployments"][0]["id"]);
    let state = until("the end of a deployment", || {
        let path = format!("{DEPLOY}/deployments/{deployment}");
        let state = text(&harness.admin.get(&path).success()["status"]["status"]);
        ["deployed", "failed"].contains(&state.as_str()).then_some(state)
    });
    (text(&made["id"]), deployment, state)
}

/// Deploys a container, and returns the ids of the application, the deployment and the container.
fn deploy_container(harness: &Harness) -> (String, String, String) {
    let repository = harness.repository("web");
    repository.commit_page("a page");
    let (id, deployment, state) = deploy(
        harness,
        &json!({
            "name": "web", "repository": repository.path(), "branch": "main", "port": 8080,
            "environment": "production", "build_pack": "dockerfile", "health_check_path": "/",
        }),
    );
    assert_eq!(state, "deployed", "{:#?}", harness.lines_of(&deployment));
    let shown = harness.admin.get(&format!("{DEPLOY}/deployments/{deployment}")).success();
    (id, deployment, text(&shown["container_id"]))
}

fn installation_of(server: &TestServer) -> String {
    fs::read_to_string(server.data_dir().join("instance-id")).unwrap().trim().to_owned()
}

/// Creates a container by hand with all the labels of one of a deployment, and returns its id.
fn make_container(harness: &Harness, application: &str, deployment: &str, attempt: u32) -> String {
    let organization = text(&harness.admin.get("/api/v1/organizations").success()["id"]);
    let installation = installation_of(&harness.server);
    // Containers of deployments are known by the beginning of their names, too.
    let name = format!("launchway-by-hand-{installation}-{attempt}");
    let labels = [
        format!("launchway.instance={installation}"),
        format!("launchway.organization={organization}"),
        format!("launchway.application={application}"),
        format!("launchway.deployment={deployment}"),
        format!("launchway.attempt={attempt}"),
        format!("launchway.owner={organization}/{application}/{deployment}/{attempt}"),
        "launchway.service=".to_owned(),
        "launchway.address=".to_owned(),
        "launchway.aliases=".to_owned(),
    ];
    let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label.as_str()]).collect();
    let command: &[&str] = &[base_image(), "sleep", "600"];
    docker(
        &[&["run", "--detach", "--name", &name, "--stop-signal", "KILL"], labels.as_slice(), command]
            .concat(),
    )
}

/// Creates the folder of a release by hand.
fn make_release(server: &TestServer, application: &str, deployment: &str) -> PathBuf {
    let release = server.data_dir().join("sites").join(application).join(deployment);
    fs::create_dir_all(&release).unwrap();
    fs::write(release.join("index.html"), "a page").unwrap();
    release
}

fn exists(container: &str) -> bool {
    !docker(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &format!("id={container}")]).is_empty()
}

#[test]
fn a_healthy_installation_passes_every_check() {
    let mut harness = Harness::new();
    let (_, _, container) = deploy_container(&harness);
    let report = doctor(&harness.server, &[]);
    passes(&report);
    assert!(!report.stdout.contains("warn"), "{report}");
    for begin in [
        "ok    git: git version ",
        "ok    docker: Docker version ",
        "ok    disk: ",
        "ok    packet filter: ",
        "ok    build limits: memory, processors and processes are limited",
    ] {
        line(&report, begin);
    }
    line(&report, "ok    server: runs on this data directory");
    assert!(line(&report, "ok    front proxy: serves ").ends_with(harness.server.front()), "{report}");
    line(&report, "ok    database: is up to date, and the key matches");
    line(&report, &format!("ok    installation: {}", installation_of(&harness.server)));
    line(&report, "ok    engine: answers");
    line(&report, "ok    applications: ");
    line(&report, "ok    unknown objects: none");

    // Without a server applications are served on.
    assert!(harness.server.terminate().success());
    let report = doctor(&harness.server, &[]);
    passes(&report);
    has_hint(&report, "warn  server: does not run on this data directory", "`launchway`");
    line(&report, "ok    applications: ");

    docker(&["kill", &container]);
    harness.server.kill_front();
    let report = doctor(&harness.server, &[]);
    fails(&report, 2);
    has_hint(&report, "FAIL  front proxy: does not run", "launchway proxy run");
    has_hint(&report, "FAIL  application: `web`: its container is not running", "log");
}

#[test]
fn a_missing_engine_fails_with_a_hint() {
    let harness = Harness::new();
    let folder = harness.folder().join("nobody.sock");
    let report = doctor(&harness.server, &[("DOCKER_HOST", &format!("unix://{}", folder.display()))]);
    fails(&report, 1);
    has_hint(&report, "FAIL  engine: the Docker engine does not answer: ", "systemctl start docker");
    assert!(line(&report, "FAIL  engine").contains("nobody.sock"), "{report}");
    line(&report, "ok    database: ");
}

#[test]
fn a_missing_data_directory_is_named_and_not_made() {
    let server = TestServer::on_sqlite();
    let missing = server.data_dir().join("no/such/folder");
    let path = missing.display().to_string();
    let report = doctor(&server, &[("LAUNCHWAY_DATA_DIR", &path)]);
    fails(&report, 1);
    let begin = format!("FAIL  data directory: `{path}` does not exist");
    has_hint(&report, &begin, "LAUNCHWAY_DATA_DIR");
    assert!(!missing.exists());
    // Neither git nor docker is on the PATH of this server.
    has_hint(&report, "warn  git: is not on the PATH", "apt-get install git");
    has_hint(&report, "warn  docker: is not on the PATH", "apt-get install docker.io");
}

#[test]
fn a_foreign_missing_or_silent_database_is_named() {
    let (server, other) = (TestServer::on_sqlite(), TestServer::on_sqlite());
    let at = |path: &Path| format!("sqlite://{}", path.display());
    let database = other.data_dir().join("launchway.db");
    let report = doctor(&server, &[("LAUNCHWAY_DATABASE_URL", &at(&database))]);
    fails(&report, 1);
    let refused = line(&report, "FAIL  installation: ");
    for id in [installation_of(&server), installation_of(&other)] {
        assert!(refused.contains(&id), "{id}: {report}");
    }
    assert!(!report.stdout.contains("engine: "), "nothing of the engine is looked at: {report}");

    let missing = server.data_dir().join("missing.db");
    let report = doctor(&server, &[("LAUNCHWAY_DATABASE_URL", &at(&missing))]);
    fails(&report, 1);
    assert!(report.stdout.contains(&missing.display().to_string()), "{report}");
    assert!(!missing.exists());

    let nobody = "postgres://postgres@127.0.0.1:1/launchway";
    let report = doctor(&server, &[("LAUNCHWAY_DATABASE_URL", nobody)]);
    fails(&report, 1);
    has_hint(&report, "FAIL  database: cannot connect to the database: ", "LAUNCHWAY_DATABASE_URL");
    assert!(line(&report, "FAIL  database: ").contains("Connection refused"), "{report}");
}

#[test]
fn unknown_objects_are_listed_and_never_removed() {
    let harness = Harness::with(&[("LAUNCHWAY_ORPHAN_GRACE", "8s")]);
    let (application, deployment, _) = deploy_container(&harness);
    let site = json!({
        "name": "site", "repository": harness.repository("site").path(), "branch": "nowhere", "port": 8080,
        "environment": "production", "build_pack": "static",
    });
    let (failed_site, failed, state) = deploy(&harness, &site);
    assert_eq!(state, "failed");
    let unknown = make_container(&harness, APPLICATION, DEPLOYMENT, 1);
    let unknown_release = make_release(&harness.server, APPLICATION, DEPLOYMENT);
    // Recorded but unwanted resources are removed: then the grace period of the others has passed, too.
    let orphan = make_container(&harness, &application, &deployment, 9);
    let orphan_release = make_release(&harness.server, &failed_site, &failed);

    let report = doctor(&harness.server, &[]);
    passes(&report);
    let shown = format!("warn  unknown object: container {unknown} ");
    has_hint(&report, &shown, &format!("`docker rm --force {unknown}`"));
    let shown = format!("warn  unknown object: the release {DEPLOYMENT} of application {APPLICATION} ");
    has_hint(&report, &shown, &format!("`sites/{APPLICATION}/{DEPLOYMENT}`"));
    assert!(!report.stdout.contains(&orphan) && !report.stdout.contains(&failed), "{report}");

    until("the end of the orphans", || (!exists(&orphan) && !orphan_release.exists()).then_some(()));
    assert!(exists(&unknown) && unknown_release.exists(), "{}", harness.server.log());
    assert_eq!(harness.server.visitor("web.ada-s-team.localhost").get("/").text.trim_end(), "a page");
}
