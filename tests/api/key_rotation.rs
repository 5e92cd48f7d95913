//! Rotation of the key of all secrets, with interruptions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use launchway_testkit::{
    authenticator::Authenticator,
    client::Client,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer, binary},
};
use serde_json::{Value, json};

use crate::{
    auth::credentials,
    backups::{Kept, fail, succeed},
    docker::deployments::harness::DEPLOY,
};

super::on_both_databases!(
    a_rotation_seals_every_secret_with_the_new_key,
    an_interrupted_rotation_works_and_can_be_completed,
    the_key_is_changed_only_when_it_fits_and_no_server_runs,
);

/// A server with a secret in every column that holds sealed values.
struct Secrets {
    server: TestServer,
    admin: Client,
    authenticator: Authenticator,
    paths: Vec<String>,
    before: Vec<Value>,
}

impl Secrets {
    fn on(server: TestServer) -> Self {
        let admin = server.admin();
        let (authenticator, _) = Authenticator::enabled_for(&admin);
        let spec = json!({
            "name": "site", "repository": "https://ada:hunter2@git.example.com/site.git", "branch": "main",
            "port": 80, "environment": "production", "build_pack": "static",
            "build_variables": {"ONE": "canary one"}, "environment_variables": {"TWO": "canary two"},
        });
        let once = admin.with_header("idempotency-key", "once");
        let id = once.post(DEPLOY, &spec).success()["id"].as_str().unwrap().to_owned();
        let previews = json!({"build_variables": {"A": "canary"}, "environment_variables": {"B": "canary"}});
        admin.put(&format!("{DEPLOY}/previews/settings?id={id}"), &previews).success();
        let hook = json!({"type": "generic", "webhook_url": "https://hooks.example.com/canary"});
        admin.post("/api/v1/notification/webhook", &hook).success();
        admin.post("/api/v1/notification/webhook/generic/secret", &json!({})).success();
        let mail = json!({
            "host": "smtp.example.com", "username": "launchway", "password": "canary in a letter",
            "from_email": "launchway@example.com",
        });
        admin.post("/api/v1/notification/smtp", &mail).success();
        let run = json!({"variables": {}});
        admin.post("/api/v1/extensions/hello-note/run", &run).success();
        let paths = vec![
            format!("{DEPLOY}?id={id}"),
            format!("{DEPLOY}/webhook-secret?id={id}"),
            format!("{DEPLOY}/previews/settings?id={id}"),
            "/api/v1/organizations/deploy-key".to_owned(),
            "/api/v1/notification/webhook/generic".to_owned(),
        ];
        let mut secrets = Self { server, admin, authenticator, paths, before: Vec::new() };
        secrets.settle();
        secrets.compose(&id);
        secrets.before = secrets.shown();
        secrets
    }

    /// Stores a composition of an application as an earlier version did, in a file, which the next start moves to the
    /// database.
    fn compose(&mut self, application: &str) {
        let column = if self.server.is_on_sqlite() { "lower(hex(id))" } else { "id::text" };
        let deployments = self.server.query(&format!("SELECT {column} AS value FROM deployments"));
        self.server.terminate();
        let folder = self.server.data_dir().join("compositions");
        fs::create_dir_all(folder.join(application)).unwrap();
        let kept =
            json!({"file": "services: {}", "env_files": {"a.env": "canary"}, "images": {}, "volumes": []});
        fs::write(folder.join(format!("{application}/{}.json", deployments[0])), kept.to_string()).unwrap();
        self.server.restart();
        assert!(!folder.exists());
        self.admin = self.admin.at(self.server.url());
    }

    /// Waits until no job, deployment or run is open.
    fn settle(&self) {
        crate::wait::until("the end of what is under way", || {
            let open = "SELECT state AS value FROM jobs WHERE finished_at IS NULL
                UNION ALL SELECT status FROM deployments WHERE status NOT IN ('deployed', 'failed', 'cancelled')
                UNION ALL SELECT status FROM extension_executions WHERE completed_at IS NULL";
            self.server.query(open).is_empty().then_some(())
        });
    }

    /// Returns the sealed values as callers see them.
    fn shown(&self) -> Vec<Value> {
        self.paths.iter().map(|path| self.admin.get(path).success()).collect()
    }

    /// Asserts that every secret still works.
    #[track_caller]
    fn are_all_there(&mut self) {
        self.admin = self.admin.at(self.server.url());
        assert_eq!(self.shown(), self.before);
    }

    /// Returns the sealed values, by their table and column.
    fn sealed(&self) -> BTreeMap<String, BTreeSet<String>> {
        let kept = Kept::of(&self.server);
        let unpacked = Command::new("tar").args(["-xzf", &kept.file(), "-C"]).arg(kept.folder()).status();
        assert!(unpacked.unwrap().success());
        let manifest: Value =
            serde_json::from_slice(&fs::read(kept.folder().join("manifest.json")).unwrap()).unwrap();
        let mut sealed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for table in manifest["tables"].as_array().unwrap() {
            let name = table["name"].as_str().unwrap();
            let columns = table["columns"].as_array().unwrap();
            let Ok(pieces) = kept.folder().join("tables").join(name).read_dir() else { continue };
            for piece in pieces {
                let text = fs::read_to_string(piece.unwrap().path()).unwrap();
                for line in text.lines() {
                    let row: Vec<Value> = serde_json::from_str(line).unwrap();
                    for (column, value) in columns.iter().zip(row) {
                        if let Some(value) = value.as_str().filter(|value| value.starts_with("v1:")) {
                            let column = format!("{name}.{}", column.as_str().unwrap());
                            sealed.entry(column).or_default().insert(value.to_owned());
                        }
                    }
                }
            }
        }
        sealed
    }
}

/// Every column with sealed values.
const SEALED: [&str; 15] = [
    "applications.build_variables",
    "applications.credentials",
    "applications.environment_variables",
    "compositions.sealed",
    "deploy_keys.private_key",
    "extension_executions.sealed_values",
    "idempotency_keys.answer",
    "key_check.sealed",
    "preview_settings.build_variables",
    "preview_settings.environment_variables",
    "signing_secrets.secret",
    "smtp_configs.password",
    "two_factor.secret",
    "webhook_configs.webhook_url",
    "webhook_secrets.secret",
];

fn a_rotation_seals_every_secret_with_the_new_key(server: TestServer) {
    let mut secrets = Secrets::on(server);
    let before = secrets.sealed();
    assert_eq!(before.keys().map(String::as_str).collect::<Vec<_>>(), SEALED);
    secrets.server.terminate();
    let key = secrets.server.data_dir().join("secret.key");
    let old = fs::read_to_string(&key).unwrap();

    let said = succeed(&secrets.server, &["key", "rotate"]);
    let after = secrets.sealed();
    let values =
        |sealed: &BTreeMap<String, BTreeSet<String>>| sealed.values().map(BTreeSet::len).sum::<usize>();
    assert!(said.contains(&format!("encrypted {} secrets with a new key", values(&after))), "{said}");
    for (column, old) in &before {
        assert_eq!(old.intersection(&after[column]).count(), 0, "{column} has what the old key sealed");
    }
    let new = fs::read_to_string(&key).unwrap();
    assert!(new.lines().count() == 1 && new != old, "one key");

    secrets.server.restart();
    secrets.are_all_there();
    // The second factor is unchanged, too, and so is a stored response.
    let mut login = credentials(ADMIN_EMAIL, ADMIN_PASSWORD);
    login["totp_code"] = json!(secrets.authenticator.next_code());
    secrets.server.client().post("/api/v1/auth/login", &login).success();

    // The old key is useless now.
    secrets.server.terminate();
    fs::write(&key, &old).unwrap();
    let said = fail(&secrets.server, &["serve"]);
    assert!(said.contains("is not the one that encrypted the secrets of this database"), "{said}");
    fs::write(&key, &new).unwrap();
    secrets.server.restart();
    secrets.are_all_there();
}

/// Kills a command at its `when`th call of a system call; returns whether it got so far.
pub(crate) fn is_killed_at(server: &TestServer, arguments: &[&str], call: &str, when: usize) -> bool {
    let inner = server.command(&[]);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:signal=KILL:when={when}")]);
    command.arg(binary()).args(arguments).env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap());
    }
    command.env("PATH", std::env::var("PATH").unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success() || output.status.code().is_none_or(|code| code > 128), "{output:?}");
    !output.status.success()
}

fn an_interrupted_rotation_works_and_can_be_completed(server: TestServer) {
    let mut secrets = Secrets::on(server);
    let key = secrets.server.data_dir().join("secret.key");
    let calls: &[&str] = if secrets.server.is_on_sqlite() {
        &["rename", "fsync", "fdatasync", "pwrite64"]
    } else {
        &["rename", "fsync", "sendto"]
    };
    let (mut kills, mut with_both) = (0, 0);
    secrets.server.terminate();
    for call in calls {
        // Some moments of each kind: the first ones, then fewer.
        for when in [1, 2, 3, 5, 8, 13, 30] {
            let before = secrets.sealed();
            if !is_killed_at(&secrets.server, &["key", "rotate"], call, when) {
                break;
            }
            kills += 1;
            with_both += usize::from(fs::read_to_string(&key).unwrap().lines().count() == 2);
            secrets.server.restart();
            secrets.are_all_there();
            secrets.server.terminate();
            succeed(&secrets.server, &["key", "rotate"]);
            assert_eq!(fs::read_to_string(&key).unwrap().lines().count(), 1);
            let after = secrets.sealed();
            for (column, old) in &before {
                assert_eq!(old.intersection(&after[column]).count(), 0, "{column} after {call} {when}");
            }
        }
    }
    secrets.server.restart();
    secrets.are_all_there();
    assert!(kills >= 6 && with_both >= 2, "{kills} kills, {with_both} between the two files");
}

fn the_key_is_changed_only_when_it_fits_and_no_server_runs(mut server: TestServer) {
    let admin = server.admin();
    assert!(fail(&server, &["key", "rotate"]).contains("another Launchway is running"));
    server.terminate();
    let key = server.data_dir().join("secret.key");
    let right = fs::read_to_string(&key).unwrap();
    fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    assert!(fail(&server, &["key", "rotate"]).contains("is not the one"));
    fs::remove_file(&key).unwrap();
    assert!(fail(&server, &["key", "rotate"]).contains("is missing"));
    assert!(!key.exists());
    fs::write(&key, right).unwrap();
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();
}
