//! A server that finds git and docker, its administrator, and repositories to deploy.

use std::{env, fs, path::Path};

use launchway_testkit::{
    client::Client,
    docker::Traces,
    repository::Repository,
    server::{TestServer, WITH_A_FRONT},
};
use serde_json::Value;
use tempfile::TempDir;

use crate::person::Person;

/// The endpoint of applications.
pub(crate) const DEPLOY: &str = "/api/v1/deploy/application";

/// Fields are dropped in their order: the server stops before its resources are removed.
pub(crate) struct Harness {
    pub(crate) server: TestServer,
    /// An API client of the same administrator.
    pub(crate) admin: Client,
    _engine: Traces,
    folder: TempDir,
}

impl Harness {
    /// Starts with a front proxy, so that applications have addresses.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// The same, with more settings.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (path, repositories) = (env::var("PATH").unwrap(), folder.path().display().to_string());
        let own = [
            ("PATH", path.as_str()),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &repositories),
            ("LAUNCHWAY_HEALTH_TIMEOUT", "5s"),
            WITH_A_FRONT,
        ];
        let server = TestServer::configured(&[&own, settings].concat());
        let instance = fs::read_to_string(server.data_dir().join("instance-id")).unwrap();
        let engine = Traces::of(instance.trim().parse().unwrap());
        let admin = server.admin();
        Self { server, admin, _engine: engine, folder }
    }

    /// Creates an empty repository from which applications may be deployed.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        let repository = Repository::empty(self.folder.path().join(name));
        // Without a remote its files would be uploaded.
        repository.git(&["remote", "add", "origin", repository.path().to_str().unwrap()]);
        repository
    }

    /// Returns a folder for other files of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a repository with a site of one page, deployed by ada, whose working directory it is.
    pub(crate) fn site(&self, name: &str) -> (Person, Repository) {
        let repository = self.repository(name);
        repository.write("index.html", "the first page\n").commit();
        let ada = Person::ada(&self.server).standing_in(repository.path());
        ada.runs(&["deploy", "--yes"]).succeeded();
        (ada, repository)
    }

    /// Returns the lines of a deployment, oldest first.
    pub(crate) fn lines_of(&self, deployment: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for page in 1.. {
            let path =
                format!("{DEPLOY}/deployments/{deployment}/logs?page_size=1000&embed=none&page={page}");
            let data = self.admin.at(self.server.url()).get(&path).success();
            lines.extend(data["logs"].as_array().unwrap().iter().map(|line| text(&line["log"])));
            if data["pagination"]["has_next"] == false {
                break;
            }
        }
        lines.reverse();
        lines
    }
}

/// Returns a text of a response.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
