//! A user with a git client, and a server without an engine.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use launchway_testkit::{client::Client, repository::Repository, server::TestServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::wait::until;

pub(super) const DEPLOY: &str = "/api/v1/deploy/application";
/// The address of an application that does not exist yet.
pub(super) const SHOP: &str = "ada%27s%20Team/production/shop.git";

/// Generates a test of each function on each database.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(crate::sources::harness::Developer::on_sqlite(&[])); })*
        }
        mod on_postgres {
            $(#[test] fn $name() { super::$name(crate::sources::harness::Developer::on_postgres(&[])); })*
        }
    };
}
pub(super) use on_both;

/// A user with a git client.
pub(super) struct Developer {
    pub(super) server: TestServer,
    pub(super) admin: Client,
    pub(super) token: String,
    folder: TempDir,
}

impl Developer {
    pub(super) fn on_sqlite(settings: &[(&str, &str)]) -> Self {
        Self::new(settings, TestServer::configured)
    }

    pub(super) fn on_postgres(settings: &[(&str, &str)]) -> Self {
        Self::new(settings, TestServer::configured_on_postgres)
    }

    fn new(settings: &[(&str, &str)], start: impl FnOnce(&[(&str, &str)]) -> TestServer) -> Self {
        let path = env::var("PATH").unwrap();
        let mut all = vec![("PATH", path.as_str()), ("LAUNCHWAY_MIN_FREE_DISK", "0")];
        all.extend_from_slice(settings);
        let server = start(&all);
        let admin = server.admin();
        let token = token(&admin, &["deploy:create", "deploy:read"]);
        Self { server, admin, token, folder: tempfile::tempdir().unwrap() }
    }

    /// Creates a repository with a site.
    pub(super) fn site(&self, name: &str) -> Repository {
        let repository = Repository::empty(self.path(name));
        repository.write("index.html", "the first page").commit();
        repository
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the address of a repository, with the token as the password.
    pub(super) fn remote(&self, path: &str) -> String {
        self.remote_with(path, &self.token)
    }

    pub(super) fn remote_with(&self, path: &str, token: &str) -> String {
        format!("http://ada:{token}@{}/git/{path}", self.server.address())
    }

    /// Pushes, and returns the text in the terminal; fails unless git succeeds.
    #[track_caller]
    pub(super) fn push(&self, repository: &Repository, arguments: &[&str]) -> String {
        let output = self.try_push(repository, arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}\n{}", self.server.log());
        text
    }

    /// Pushes, and returns the text in the terminal; fails if git succeeds.
    #[track_caller]
    pub(super) fn refused(&self, repository: &Repository, arguments: &[&str]) -> String {
        let output = self.try_push(repository, arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{text}");
        text
    }

    pub(super) fn try_push(&self, repository: &Repository, arguments: &[&str]) -> Output {
        let all: Vec<&str> = ["push", "--no-progress"].iter().chain(arguments).copied().collect();
        git(repository.path(), &all)
    }

    /// Creates the site `shop` by a push of `main`, and returns its id.
    #[track_caller]
    pub(super) fn pushed_shop(&self, repository: &Repository) -> String {
        let text = self.push(repository, &[&self.remote(SHOP), "main"]);
        assert!(text.contains("Live"), "{text}");
        self.applications()[0]["id"].as_str().unwrap().to_owned()
    }

    pub(super) fn applications(&self) -> Vec<Value> {
        let page = self.admin.get("/api/v1/deploy/applications").success();
        page["applications"].as_array().unwrap().clone()
    }

    /// Returns the deployments of an application, newest first.
    pub(super) fn deployments(&self, id: &str) -> Vec<Value> {
        let page = self.admin.get(&format!("{DEPLOY}/deployments?id={id}&page_size=100")).success();
        page["deployments"].as_array().unwrap().clone()
    }

    /// Waits until every deployment of an application has finished, and returns them.
    #[track_caller]
    pub(super) fn finished(&self, id: &str) -> Vec<Value> {
        until("the end of all deployments", || {
            let all = self.deployments(id);
            let is_over = |one: &Value| {
                let state = one["status"]["status"].as_str().unwrap();
                ["deployed", "failed", "cancelled"].contains(&state)
            };
            all.iter().all(is_over).then_some(all)
        })
    }

    /// Returns the folder of the repository of an application.
    pub(super) fn hosted(&self, id: &str) -> PathBuf {
        self.server.data_dir().join(format!("git/{id}.git"))
    }

    /// Returns the commit of a reference in the repository of an application.
    pub(super) fn head(&self, id: &str, reference: &str) -> Option<String> {
        let output = git(&self.hosted(id), &["--git-dir=.", "rev-parse", "--verify", "--quiet", reference]);
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    pub(super) fn restart(&mut self) {
        self.server.restart();
        self.admin = self.admin.at(self.server.url());
    }
}

/// Creates an API token.
pub(super) fn token(admin: &Client, permissions: &[&str]) -> String {
    let body = json!({"name": permissions.join(" "), "permissions": permissions});
    admin.post("/api/v1/auth/tokens", &body).success()["token"].as_str().unwrap().to_owned()
}

/// Runs git as a developer would, independent of the machine's settings.
pub(super) fn git(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Returns the same, not started.
pub(super) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "credential.helper="])
        .args(arguments)
        .current_dir(folder)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ])
        .stdin(Stdio::null());
    command
}
