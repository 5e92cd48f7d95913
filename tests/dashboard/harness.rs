//! A server that finds git and docker, and repositories to deploy.

use std::{env, fs};

use launchway_testkit::{
    client::Client,
    docker::Traces,
    repository::Repository,
    server::{TestServer, WITH_A_FRONT},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The endpoint of applications.
pub(crate) const DEPLOY: &str = "/api/v1/deploy/application";

/// Fields are dropped in their order: the server stops before its resources are removed.
pub(crate) struct Harness {
    pub(crate) server: TestServer,
    pub(crate) admin: Client,
    _engine: Traces,
    folder: TempDir,
}

impl Harness {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("git").rand_bytes(4).tempdir().unwrap();
        let (path, repositories) = (env::var("PATH").unwrap(), folder.path().display().to_string());
        let server = TestServer::configured(&[
            ("PATH", &path),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &repositories),
            WITH_A_FRONT,
        ]);
        let instance = fs::read_to_string(server.data_dir().join("instance-id")).unwrap();
        let engine = Traces::of(instance.trim().parse().unwrap());
        let admin = server.admin();
        Self { server, admin, _engine: engine, folder }
    }

    /// Deploys a Dockerfile, and returns the id of the deployment.
    pub(crate) fn deploy(&self, name: &str, dockerfile: &str) -> String {
        self.create(name, "dockerfile", dockerfile, &json!({}))
    }

    /// Deploys a page as a static site, with more fields of the request, and returns the id of the deployment.
    pub(crate) fn publish(&self, name: &str, more: &Value) -> String {
        self.create(name, "static", "", more)
    }

    fn create(&self, name: &str, pack: &str, dockerfile: &str, more: &Value) -> String {
        let repository = Repository::empty(self.folder.path().join(name.to_lowercase().replace(' ', "-")));
        repository.write("Dockerfile", dockerfile).write("index.html", "a page\n").commit();
        let mut spec = json!({
            "name": name, "repository": format!("file://{}", repository.path().display()), "branch": "main",
            "port": 8080, "environment": "production", "build_pack": pack,
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let created = self.admin.post(DEPLOY, &spec).success();
        created["deployments"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Returns the texts of the stored lines, oldest first.
    pub(crate) fn lines(&self, deployment: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        for page in 1.. {
            let path =
                format!("{DEPLOY}/deployments/{deployment}/logs?page_size=1000&embed=none&page={page}");
            let data = self.admin.at(self.server.url()).get(&path).success();
            lines.extend(data["logs"].as_array().unwrap().iter().map(|line| line["log"].clone()));
            if data["pagination"]["has_next"] == false {
                break;
            }
        }
        lines.reverse();
        lines
    }
}
