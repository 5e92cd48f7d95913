//! A server on the manager of a Swarm, and repositories that it fetches by HTTP.

use launchway_testkit::{
    external::{Manner, Web},
    repository::Repository,
    server::{WITH_A_FRONT, binary},
    swarm::SwarmLab,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::docker::deployments::harness::Harness;

/// The host name of the application `web`.
pub(super) const WEB: &str = "web.ada-s-team.localhost";

/// Fields are dropped in their order: the server stops before the Swarm.
pub(super) struct SwarmHarness {
    pub(super) harness: Harness,
    web: Web,
    repositories: TempDir,
    pub(super) lab: SwarmLab,
}

impl SwarmHarness {
    /// Starts a server on a Swarm with `nodes` nodes.
    pub(super) fn start(nodes: usize) -> Self {
        Self::start_with(nodes, &[("LAUNCHWAY_ORPHAN_GRACE", "30s")])
    }

    /// The same with these settings.
    pub(super) fn start_with(nodes: usize, more: &[(&str, &str)]) -> Self {
        Self::on(SwarmLab::start(nodes), more)
    }

    /// Starts a server on a Swarm with `nodes` nodes, of which the first ones are managers.
    pub(super) fn with_managers(nodes: usize, managers: usize) -> Self {
        let lab = SwarmLab::with_managers(nodes, managers, binary());
        Self::on(lab, &[("LAUNCHWAY_ORPHAN_GRACE", "30s")])
    }

    /// Starts a server on the first node of `lab`.
    pub(super) fn on(lab: SwarmLab, more: &[(&str, &str)]) -> Self {
        let repositories = tempfile::tempdir().unwrap();
        let web = Web::serve(repositories.path(), Manner::Open);
        let allowed = format!("127.0.0.0/8:{}", web.port);
        let own = lab.settings(1);
        let mut settings: Vec<(&str, &str)> =
            own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        settings.extend([
            WITH_A_FRONT,
            ("LAUNCHWAY_GIT_ALLOW", allowed.as_str()),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", ""),
        ]);
        settings.extend(more);
        let harness = Harness::on_postgres(&settings);
        Self { harness, web, repositories, lab }
    }

    pub(super) fn repository(&self, name: &str) -> Repository {
        Repository::empty(self.repositories.path().join(name))
    }

    /// Returns the body of a request that deploys a repository by its Dockerfile.
    pub(super) fn spec(&self, name: &str, replicas: u16) -> Value {
        json!({
            "name": name, "repository": self.web.url(name), "branch": "main", "port": 8080, "replicas": replicas,
            "environment": "production", "build_pack": "dockerfile", "health_check_path": "/",
        })
    }

    /// Returns the page of the application `web` at the front proxy; the status if it is not 200.
    pub(super) fn page(&self) -> Result<String, u16> {
        let answer = self.harness.server.visitor(WEB).get("/");
        if answer.status == 200 { Ok(answer.text.trim_end().to_owned()) } else { Err(answer.status) }
    }

    /// Returns the logs of all deployments.
    fn stories(&self) -> String {
        let listed = self.harness.admin.get("/api/v1/deploy/applications").success();
        let applications = listed["applications"].as_array().into_iter().flatten();
        let details =
            applications.map(|one| self.harness.application(one["id"].as_str().unwrap_or_default()));
        let deployments = details.flat_map(|one| one["deployments"].as_array().cloned().unwrap_or_default());
        deployments.map(|one| self.harness.story_of(one["id"].as_str().unwrap_or_default())).collect()
    }

    /// Returns the names of all services.
    pub(super) fn services(&self) -> Vec<String> {
        let listed = self.lab.docker(1, &["service", "ls", "--format", "{{.Name}}"]);
        listed.lines().map(str::to_owned).collect()
    }
}

impl Drop for SwarmHarness {
    #[expect(clippy::print_stderr, reason = "what happened is in the logs")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}\n{}", self.harness.server.log(), self.stories());
        }
    }
}
