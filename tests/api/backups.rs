//! Backups: they contain everything but the key, and restore everything.

mod refusals;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Output,
};

use launchway_testkit::{
    authenticator::Authenticator,
    postgres::FreshDatabase,
    server::{TestServer, WITH_A_FRONT},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    docker::deployments::harness::{DEPLOY, Harness, spec},
    docker::front::{page, site},
    wait::until,
};

/// Runs a command of the binary on the data of a server.
pub(crate) fn run(server: &TestServer, arguments: &[&str]) -> Output {
    server.command(arguments).output().unwrap()
}

/// Returns the output of a command, stdout and stderr.
pub(crate) fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
pub(crate) fn succeed(server: &TestServer, arguments: &[&str]) -> String {
    let output = run(server, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", words(&output));
    words(&output)
}

/// Runs a command that must fail, and returns its output.
#[track_caller]
pub(crate) fn fail(server: &TestServer, arguments: &[&str]) -> String {
    let output = run(server, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", words(&output));
    words(&output)
}

/// A folder with a backup and its key.
pub(crate) struct Kept {
    folder: TempDir,
}

impl Kept {
    /// Creates a backup of a server, whether it is running or not.
    #[track_caller]
    pub(crate) fn of(server: &TestServer) -> Self {
        let kept = Self { folder: tempfile::tempdir().unwrap() };
        let said = succeed(server, &["backup", "create", &kept.file(), "--key", &kept.key()]);
        assert!(said.contains("backed up") && said.contains("the key is in"), "{said}");
        kept
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> String {
        self.path("backup.tar.gz").display().to_string()
    }

    pub(crate) fn key(&self) -> String {
        self.path("secret.key").display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A server with an engine and a front proxy, a site, a container, and a secret of every kind that callers
/// can read again.
pub(crate) struct PopulatedServer {
    pub(crate) harness: Harness,
    pub(crate) application: String,
    web: String,
    paths: Vec<String>,
}

impl PopulatedServer {
    pub(crate) fn on(start: fn(&[(&str, &str)]) -> Harness) -> Self {
        let harness = start(&[WITH_A_FRONT]);
        let repository = harness.repository("site");
        let odd = std::ffi::OsString::from("odd % name\n.html");
        repository.write("index.html", "a site").write("deep/page.html", "deep down");
        fs::write(repository.path().join(odd), "odd").unwrap();
        std::os::unix::fs::symlink("deep/page.html", repository.path().join("link.html")).unwrap();
        repository.commit();
        let (application, _) = harness.create_live(&site("site", &repository));
        let repository = harness.repository("web");
        repository.commit_page("a container");
        let mut spec = spec("web", &repository);
        spec["environment_variables"] = json!({"GREETING": "a secret \u{1F511} \"quoted\"\n"});
        let (web, _) = harness.create_live(&spec);
        Authenticator::enabled_for(&harness.admin);
        let admin = &harness.admin;
        admin.get(&format!("{DEPLOY}/webhook-secret?id={web}")).success();
        let hook = json!({"type": "generic", "webhook_url": "https://hooks.example.com/1"});
        admin.post("/api/v1/notification/webhook", &hook).success();
        let paths = [
            "/api/v1/user".to_owned(),
            "/api/v1/user/organizations".to_owned(),
            "/api/v1/organizations/users".to_owned(),
            "/api/v1/deploy/applications".to_owned(),
            format!("{DEPLOY}?id={application}"),
            format!("{DEPLOY}?id={web}"),
            format!("{DEPLOY}/deployments?id={web}"),
            format!("{DEPLOY}/logs/{application}"),
            "/api/v1/audit/logs".to_owned(),
            "/api/v1/notification/webhook/generic".to_owned(),
            "/api/v1/extensions".to_owned(),
        ];
        Self { harness, application, web, paths: paths.into() }
    }

    /// Returns the responses to callers.
    pub(crate) fn answers(&self) -> Vec<(String, u16, Value)> {
        let answer = |path: &String| {
            let answer = self.harness.admin.get(path);
            assert!(answer.status == 200, "{answer:?}");
            (path.clone(), answer.status, answer.json())
        };
        self.paths.iter().map(answer).collect()
    }

    /// The secret that a code host signs with. Reading it is recorded in the audit log.
    fn webhook_secret(&self) -> Value {
        self.harness.admin.get(&format!("{DEPLOY}/webhook-secret?id={}", self.web)).success()
    }

    /// Asserts that both applications are reachable by their domains.
    #[track_caller]
    pub(crate) fn is_reached(&self) {
        assert_eq!(page(&self.harness, "site.ada-s-team.localhost"), "a site");
        let visitor = self.harness.server.visitor("site.ada-s-team.localhost");
        for (path, text) in [("/deep/page.html", "deep down"), ("/link.html", "deep down")] {
            assert_eq!(visitor.get(path).text, text, "{path}");
        }
        assert_eq!(visitor.get("/odd%20%25%20name%0A.html").text, "odd");
        until("the container", || {
            let answer = self.harness.server.visitor("web.ada-s-team.localhost").get("/");
            (answer.status == 200 && answer.text.trim_end() == "a container").then_some(())
        });
    }
}

fn restored(from: fn(&[(&str, &str)]) -> Harness, to: impl FnOnce() -> Option<FreshDatabase>) {
    let mut populated = PopulatedServer::on(from);
    populated.is_reached();
    let tag = |populated: &PopulatedServer| {
        let answer = populated.harness.server.visitor("site.ada-s-team.localhost").get("/");
        (answer.headers["etag"].clone(), answer.headers["last-modified"].clone())
    };
    let (secret, tag_before) = (populated.webhook_secret(), tag(&populated));
    let before = populated.answers();
    let kept = Kept::of(&populated.harness.server);

    populated.harness.server.kill();
    populated.harness.server.kill_front();
    populated.harness.server.lose_data();
    populated.harness.server.use_database(to());
    let said = succeed(&populated.harness.server, &["backup", "restore", &kept.file(), "--key", &kept.key()]);
    // Needed for a restore on another machine.
    assert!(said.contains("  web\n") && said.contains("redeploy") && !said.contains("  site\n"), "{said}");
    populated.harness.server.restart();
    populated.harness.reconnect();
    populated.is_reached();
    assert_eq!(populated.answers(), before);
    assert_eq!(populated.webhook_secret(), secret);
    assert_eq!(tag(&populated), tag_before, "browsers notice nothing");
    let verified = succeed(&populated.harness.server, &["audit", "verify"]);
    assert!(verified.contains("ok") && !verified.contains("BROKEN"), "{verified}");
    // It goes on from there.
    let again = populated.harness.redeploy(&populated.application);
    populated.harness.deployed(&again);
}

#[test]
fn everything_with_docker_is_back_on_sqlite() {
    restored(Harness::on_sqlite, || None);
}

#[test]
fn everything_with_docker_is_back_on_postgres() {
    restored(Harness::on_postgres, || Some(FreshDatabase::create()));
}

#[test]
fn sqlite_with_docker_can_be_restored_on_postgres() {
    restored(Harness::on_sqlite, || Some(FreshDatabase::create()));
}

#[test]
fn postgres_with_docker_can_be_restored_on_sqlite() {
    restored(Harness::on_postgres, || None);
}

#[test]
fn without_the_images_of_docker_applications_are_deployed_again() {
    let mut populated = PopulatedServer::on(Harness::on_sqlite);
    let kept = Kept::of(&populated.harness.server);
    populated.harness.server.kill();
    populated.harness.server.kill_front();
    populated.harness.server.lose_data();
    for id in populated.harness.engine.containers() {
        launchway_testkit::docker::docker(&["rm", "--force", &id]);
    }
    for id in populated.harness.engine.images() {
        launchway_testkit::docker::docker(&["image", "rm", "--force", &id]);
    }
    let said = succeed(&populated.harness.server, &["backup", "restore", &kept.file(), "--key", &kept.key()]);
    let line = said.lines().find(|line| line.ends_with("  web")).unwrap();
    let web = line.split_whitespace().next().unwrap().to_owned();
    populated.harness.server.restart();
    populated.harness.reconnect();
    // The site is there at once.
    assert_eq!(page(&populated.harness, "site.ada-s-team.localhost"), "a site");
    let again = populated.harness.redeploy(&web);
    populated.harness.deployed(&again);
    populated.is_reached();
}

#[test]
fn a_backup_is_private_and_can_be_verified_without_a_server() {
    let server = TestServer::on_sqlite();
    server.admin();
    let kept = Kept::of(&server);
    for path in [kept.file(), kept.key()] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
    assert_eq!(fs::read_dir(kept.folder()).unwrap().count(), 2, "nothing else is left");
    let elsewhere = tempfile::tempdir().unwrap();
    let mut verify = server.command(&["backup", "verify", &kept.file()]);
    let output = verify.env("LAUNCHWAY_DATA_DIR", elsewhere.path().join("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert!(
        words(&output).contains("  1 rows  users") && words(&output).contains("is complete"),
        "{output:?}"
    );
    assert!(!elsewhere.path().join("none").exists());
    server.client().get("/ready").success();
}
