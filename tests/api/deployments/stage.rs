//! A server with an engine, and a person who deploys on it.

use std::{env, fs, path::Path, time::Duration};

use launchway_testkit::{
    client::Client,
    docker::{Traces, docker},
    server::TestServer,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::repository::Repository;
use crate::patience::{until, until_within};

/// The path of endpoint 12 and its neighbours.
pub(crate) const DEPLOY: &str = "/api/v1/deploy/application";
/// How long a deployment of a test may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server that finds docker and git, with everything that it makes on the engine.
///
/// Fields go in their order: the server ends before what it made is removed.
pub(crate) struct Stage {
    pub(crate) server: TestServer,
    pub(crate) admin: Client,
    pub(crate) engine: Traces,
    folder: TempDir,
}

impl Stage {
    /// On the embedded database, with `settings`.
    pub(crate) fn on_sqlite(settings: &[(&str, &str)]) -> Self {
        Self::new(settings, TestServer::configured)
    }

    /// On PostgreSQL, with `settings`.
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

    /// An empty repository that applications may be deployed from.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        Repository::empty(self.folder.path().join(name))
    }

    /// A folder for other things of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Calls on where the server is now, after a restart.
    pub(crate) fn reconnect(&mut self) {
        self.admin = self.admin.at(self.server.url());
    }

    /// Makes an application, and gives it with its first deployment's id.
    pub(crate) fn create(&self, wish: &Value) -> (Value, String) {
        let application = self.admin.post(DEPLOY, wish).success();
        let deployment = text(&application["deployments"][0]["id"]);
        (application, deployment)
    }

    /// Makes an application whose first deployment has to succeed, and gives its id and that
    /// deployment.
    pub(crate) fn create_live(&self, wish: &Value) -> (String, Value) {
        let (application, deployment) = self.create(wish);
        (text(&application["id"]), self.deployed(&deployment))
    }

    /// Asks for another deployment, and gives its id.
    pub(crate) fn redeploy(&self, application: &str) -> String {
        let answer = self.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": application}));
        text(&answer.success()["id"])
    }

    /// Changes an application and deploys it; gives the id of the deployment.
    pub(crate) fn change(&self, application: &str, change: &Value) -> String {
        let changed = self.admin.put(&format!("{DEPLOY}?id={application}"), change).success();
        text(&changed["deployments"][0]["id"])
    }

    /// A deployment as it is now.
    pub(crate) fn deployment(&self, id: &str) -> Value {
        self.admin.get(&format!("{DEPLOY}/deployments/{id}")).success()
    }

    /// An application as it is now.
    pub(crate) fn application(&self, id: &str) -> Value {
        self.admin.get(&format!("{DEPLOY}?id={id}")).success()
    }

    /// Waits for a deployment to come to its end.
    #[track_caller]
    pub(crate) fn end_of(&self, id: &str) -> Value {
        until_within(PATIENCE, "the end of a deployment", || {
            let deployment = self.deployment(id);
            let state = deployment["status"]["status"].as_str().unwrap();
            ["deployed", "failed", "cancelled"].contains(&state).then_some(deployment)
        })
    }

    /// Waits until a deployment is in that state.
    #[track_caller]
    pub(crate) fn reaches(&self, id: &str, state: &str) {
        until_within(PATIENCE, state, || {
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

    /// Waits for a deployment to fail, and gives its log.
    #[track_caller]
    pub(crate) fn failed(&self, id: &str) -> String {
        let deployment = self.end_of(id);
        assert_eq!(deployment["status"]["status"], "failed", "{}", self.story_of(id));
        self.story_of(id)
    }

    /// The log of a deployment, each line behind its level.
    pub(crate) fn story_of(&self, id: &str) -> String {
        let lines = self.lines_of(id);
        let lines = lines.iter().map(|line| format!("{}: {}\n", text(&line["level"]), text(&line["log"])));
        lines.collect()
    }

    /// The lines of a deployment, oldest first.
    pub(crate) fn lines_of(&self, id: &str) -> Vec<Value> {
        let path = format!("{DEPLOY}/deployments/{id}/logs?page_size=1000&embed=none");
        let mut lines = self.admin.get(&path).success()["logs"].as_array().unwrap().clone();
        lines.reverse();
        lines
    }

    /// Waits until nothing but `count` containers is left on the engine.
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

/// What a deployment's container answers on its own address.
pub(crate) fn page_of(deployment: &Value) -> String {
    page_at(&address_of(&text(&deployment["container_id"])), "/").unwrap()
}

/// What is answered there on port 8080, if anything is.
pub(crate) fn page_at(address: &str, path: &str) -> Option<String> {
    let answer = Client::new(&format!("http://{address}:8080")).try_send("GET", path, None).ok()?;
    Some(answer.text.trim_end().to_owned())
}

/// The address of a container.
pub(crate) fn address_of(container: &str) -> String {
    docker(&[
        "container",
        "inspect",
        "--format",
        "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}",
        container,
    ])
}

/// What endpoint 12 needs to deploy a repository's `main` by its Dockerfile.
pub(crate) fn wish(name: &str, repository: &Repository) -> Value {
    json!({
        "name": name, "repository": repository.path(), "branch": "main", "port": 8080,
        "environment": "production", "build_pack": "dockerfile", "health_check_path": "/",
    })
}

/// A text in an answer.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
