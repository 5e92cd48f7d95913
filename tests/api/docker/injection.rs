//! No shell of this machine evaluates the fields of an application.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::Client,
    docker::FakeDocker,
    hostile::{INERT_ENGINE, PAYLOADS},
    server::TestServer,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(240);

/// Puts a text into the body of a request for an application.
type Put = fn(&mut Value, &str);

/// Every text field of an application, and its setter.
const FIELDS: [(&str, Put); 15] = [
    ("name", |body, text| body["name"] = text.into()),
    ("repository", |body, text| body["repository"] = text.into()),
    ("image", |body, text| {
        body["build_pack"] = "image".into();
        body["repository"] = text.into();
    }),
    ("branch", |body, text| body["branch"] = text.into()),
    ("base_path", |body, text| body["base_path"] = text.into()),
    ("dockerfile_path", |body, text| body["dockerfile_path"] = text.into()),
    ("build_pack", |body, text| body["build_pack"] = text.into()),
    ("environment", |body, text| body["environment"] = text.into()),
    ("domain", |body, text| body["domain"] = text.into()),
    ("proxy_server", |body, text| body["proxy_server"] = text.into()),
    ("health_check_path", |body, text| body["health_check_path"] = text.into()),
    ("labels", |body, text| body["labels"] = json!([text])),
    ("everything that is free text", |body, text| {
        body["pre_run_command"] = text.into();
        body["post_run_command"] = text.into();
        body["build_variables"] = json!({"VALUE": text});
        body["environment_variables"] = json!({"VALUE": text});
    }),
    ("name of a build variable", |body, text| body["build_variables"] = json!({text: "value"})),
    ("name of an environment variable", |body, text| body["environment_variables"] = json!({text: "value"})),
];

#[test]
fn no_payload_in_any_field_reaches_a_shell() {
    // Fields have limits of length, so the path in the payloads is a short one.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let (canaries, repository) = (folder.path().join("canaries"), folder.path().join("repository"));
    fs::create_dir(&canaries).unwrap();
    make_repository(&repository);
    let engine = FakeDocker::running(INERT_ENGINE);
    let server = server(&engine, &repository);
    let admin = server.admin();

    let (mut accepted, mut refused) = (0, 0);
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let text = payload.replace('§', canaries.to_str().unwrap());
        for (at, (field, put)) in FIELDS.iter().enumerate() {
            let mut body = spec(&format!("app-{number}-{at}"), &repository);
            put(&mut body, &text);
            let answer = admin.post("/api/v1/deploy/application", &body);
            match answer.status {
                200 => accepted += 1,
                400 => refused += 1,
                other => panic!("{payload:?} as {field} gave {other}: {}", answer.text),
            }
        }
    }
    // Were one of them always the case, this test would show nothing.
    assert!(accepted >= 120 && refused >= 400, "{accepted} accepted, {refused} refused");
    wait_until_idle(&admin);
    assert!(engine.calls().iter().any(|call| call.arguments.first().is_some_and(|first| first == "build")));
    let left: Vec<_> = fs::read_dir(&canaries).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_shell_that_reads_a_payload_leaves_a_canary() {
    let folder = tempfile::tempdir().unwrap();
    for payload in [PAYLOADS[0], PAYLOADS[8], PAYLOADS[18]] {
        let text = payload.replace('§', folder.path().to_str().unwrap());
        Command::new("sh").args(["-c", &format!("echo {text}")]).output().unwrap();
        fs::remove_file(folder.path().join("CANARY")).unwrap();
    }
}

fn server(engine: &FakeDocker, repository: &Path) -> TestServer {
    let path = format!("{}:{}", engine.program().parent().unwrap().display(), std::env::var("PATH").unwrap());
    TestServer::configured(&[
        ("PATH", &path),
        ("LAUNCHWAY_MAX_BUILDS", "4"),
        ("LAUNCHWAY_QUOTA_APPLICATIONS", "0"),
        ("LAUNCHWAY_QUOTA_BUILDS", "0"),
        ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", repository.to_str().unwrap()),
    ])
}

fn spec(name: &str, repository: &Path) -> Value {
    json!({
        "name": name,
        "repository": repository,
        "branch": "main",
        "port": 8080,
        "environment": "production",
        "build_pack": "dockerfile",
    })
}

fn make_repository(folder: &Path) {
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("Dockerfile"), "FROM scratch\n").unwrap();
    for arguments in [
        ["init", "--quiet", "--initial-branch=main", "."].as_slice(),
        &["add", "."],
        &["-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message=first"],
    ] {
        assert!(Command::new("git").arg("-C").arg(folder).args(arguments).status().unwrap().success());
    }
}

fn wait_until_idle(admin: &Client) {
    let deadline = Instant::now() + TIMEOUT;
    for state in ["queued", "cloning", "building", "deploying"] {
        let path = format!("/api/v1/deploy/applications?page_size=1&status={state}");
        while admin.get(&path).success()["pagination"]["total_count"] != 0 {
            assert!(Instant::now() < deadline, "applications are still {state}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}
