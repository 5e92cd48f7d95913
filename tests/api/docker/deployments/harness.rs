//! A server with an engine, and a user who deploys on it.

use std::{env, fs, path::Path};

use launchway_testkit::{
    client::Client,
    docker::{Traces, docker},
    server::TestServer,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::repository::Repository;
use crate::wait::until;

/// The endpoint of applications.
pub(crate) const DEPLOY: &str = "/api/v1/deploy/application";

/// A server that finds docker and git, with everything that it creates on the engine.
///
/// Fields are dropped in their order: the server stops before its resources are removed.
pub(crate) struct Harness {
    pub(crate) server: TestServer,
    pub(crate) admin: Client,
    pub(crate) engine: Traces,
    folder: TempDir,
}

impl Harness {
    /// Starts on the embedded database, with `settings`.
    pub(crate) fn on_sqlite(settings: &[(&str, &str)]) -> Self {
        Self::new(settings, TestServer::configured)
    }

    /// Starts on PostgreSQL, with `settings`.
    pub(crate) fn on_postgres(settings: &[(&str, &str)]) -> Self {
        Self::new(settings, TestServer::configured_on_postgres)
    }

    fn new(settings: &[(&str, &str)], start: impl FnOnce(&[(&str, &str)]) -> TestServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (path, repositories) = (env::var("PATH").unwrap(), folder.path().display().to_string());
        let mut all = vec![
            ("PATH", path.as_str()),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &repositories),
            ("LAUNCHWAY_HEALTH_TIMEOUT", "20s"),
        ];
        all.extend_from_slice(settings);
        let server = start(&all);
        let instance = fs::read_to_string(server.data_dir().join("instance-id")).unwrap();
        let engine = Traces::of(instance.trim().parse().unwrap());
        let admin = server.admin();
        Self { server, admin, engine, folder }
    }

    /// Creates an empty repository from which applications may be deployed.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        Repository::empty(self.folder.path().join(name))
    }

    /// Returns a folder for other files of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Points the client to the server after a restart.
    pub(crate) fn reconnect(&mut self) {
        self.admin = self.admin.at(self.server.url());
    }

    /// Creates an application, and returns it with its first deployment's id.
    pub(crate) fn create(&self, spec: &Value) -> (Value, String) {
        let application = self.admin.post(DEPLOY, spec).success();
        let deployment = text(&application["deployments"][0]["id"]);
        (application, deployment)
    }

    /// Creates an application whose first deployment must succeed, and returns its id and that deployment.
    pub(crate) fn create_live(&self, spec: &Value) -> (String, Value) {
        let (application, deployment) = self.create(spec);
        (text(&application["id"]), self.deployed(&deployment))
    }

    /// Requests another deployment, and returns its id.
    pub(crate) fn redeploy(&self, application: &str) -> String {
        let answer = self.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": application}));
        text(&answer.success()["id"])
    }

    /// Changes an application and deploys it; returns the id of the deployment.
    pub(crate) fn change(&self, application: &str, change: &Value) -> String {
        let changed = self.admin.put(&format!("{DEPLOY}?id={application}"), change).success();
        text(&changed["deployments"][0]["id"])
    }

    /// Returns the current state of a deployment.
    pub(crate) fn deployment(&self, id: &str) -> Value {
        self.admin.get(&format!("{DEPLOY}/deployments/{id}")).success()
    }

    /// Returns the current state of an application.
    pub(crate) fn application(&self, id: &str) -> Value {
        self.admin.get(&format!("{DEPLOY}?id={id}")).success()
    }

    /// Waits for a deployment to finish.
    #[track_caller]
    pub(crate) fn end_of(&self, id: &str) -> Value {
        until("the end of a deployment", || {
            let deployment = self.deployment(id);
            let state = deployment["status"]["status"].as_str().unwrap();
            ["deployed", "failed", "cancelled"].contains(&state).then_some(deployment)
        })
    }

    /// Waits until a deployment is in that state.
    #[track_caller]
    pub(crate) fn reaches(&self, id: &str, state: &str) {
        until(state, || {
            let now = text(&self.deployment(id)["status"]["status"]);
            assert!(
                now == state || !["deployed", "failed", "cancelled"].contains(&now.as_str()),
                "{now} instead of {state}:\n{}",
                self.story_of(id)
            );
            (now == state).then_some(())
        });
    }

    /// Waits for a deployment to succeed.
    #[track_caller]
    pub(crate) fn deployed(&self, id: &str) -> Value {
        let deployment = self.end_of(id);
        assert_eq!(deployment["status"]["status"], "deployed", "{}", self.story_of(id));
        deployment
    }

    /// Waits for a deployment to fail, and returns its log.
    #[track_caller]
    pub(crate) fn failed(&self, id: &str) -> String {
        let deployment = self.end_of(id);
        assert_eq!(deployment["status"]["status"], "failed", "{}", self.story_of(id));
        self.story_of(id)
    }

    /// Returns the log of a deployment, each line after its level.
    pub(crate) fn story_of(&self, id: &str) -> String {
        let lines = self.lines_of(id);
        let lines = lines.iter().map(|line| format!("{}: {}\n", text(&line["level"]), text(&line["log"])));
        lines.collect()
    }

    /// Returns the lines of a deployment, oldest first.
    pub(crate) fn lines_of(&self, id: &str) -> Vec<Value> {
        let path = format!("{DEPLOY}/deployments/{id}/logs?page_size=1000&embed=none");
        let mut lines = self.admin.get(&path).success()["logs"].as_array().unwrap().clone();
        lines.reverse();
        lines
    }

    /// Waits until exactly `count` containers are left on the engine.
    #[track_caller]
    pub(crate) fn has_containers(&self, count: usize) {
        until("the right number of containers", || (self.engine.containers().len() == count).then_some(()));
    }

    /// Asserts that no checkout is left.
    #[track_caller]
    pub(crate) fn has_no_work_left(&self) {
        until("an empty folder of checkouts", || {
            let mut work = self.server.data_dir().join("work").read_dir().unwrap();
            work.next().is_none().then_some(())
        });
    }
}

/// Returns the page of a deployment's container at its own address.
pub(crate) fn page_of(deployment: &Value) -> String {
    page_at(&address_of(&text(&deployment["container_id"])), "/").unwrap()
}

/// Returns the page at that address on port 8080, if there is one.
pub(crate) fn page_at(address: &str, path: &str) -> Option<String> {
    let answer = Client::new(&format!("http://{address}:8080")).try_send("GET", path, None).ok()?;
    Some(answer.text.trim_end().to_owned())
}

/// Returns the address of a container.
pub(crate) fn address_of(container: &str) -> String {
    docker(&[
        "container",
        "inspect",
        "--format",
        "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}",
        container,
    ])
}

/// The body of a request that deploys a repository's `main` by its Dockerfile.
pub(crate) fn spec(name: &str, repository: &Repository) -> Value {
    json!({
        "name": name, "repository": repository.path(), "branch": "main", "port": 8080,
        "environment": "production", "build_pack": "dockerfile", "health_check_path": "/",
    })
}

/// Returns a text of a response.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
