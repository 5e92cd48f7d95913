//! The engine follows the records: changes by hand are undone, outages are waited out.

mod compositions;
mod containers;
mod notifications;
mod outage;
mod restart;
mod start_order;

use std::time::Duration;

use launchway_testkit::{docker::docker, server::WITH_A_FRONT};
use serde_json::Value;

use super::harness::{DEPLOY, Harness, spec, text};
use crate::wait::until;

/// The limit of a recovery on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// An application with a live version that serves by its host name.
struct Live {
    harness: Harness,
    id: String,
    deployment: String,
    host: String,
}

impl Live {
    /// Deploys `page` by a server with `settings` and a front proxy.
    fn serving(page: &str, settings: &[(&str, &str)]) -> Self {
        Self::serving_on(Harness::on_sqlite(&[&[WITH_A_FRONT], settings].concat()), page)
    }

    /// Deploys `page` on `harness`, which has a front proxy.
    fn serving_on(harness: Harness, page: &str) -> Self {
        let repository = harness.repository("web");
        repository.commit_page(page);
        let spec = spec("web", &repository);
        Self::deploy(harness, &spec)
    }

    /// Deploys an application with the name `web` on `harness`.
    fn deploy(harness: Harness, spec: &Value) -> Self {
        let (id, deployment) = harness.create_live(spec);
        let live = Self {
            harness,
            id,
            deployment: text(&deployment["id"]),
            host: "web.ada-s-team.localhost".to_owned(),
        };
        live.wait_until("the first page", || live.is_served("/"));
        live
    }

    /// The container that the API names.
    fn container(&self) -> String {
        text(&self.harness.deployment(&self.deployment)["container_id"])
    }

    /// The answer at its host name, if it is a page.
    fn page(&self, path: &str) -> Option<String> {
        let answer = self.harness.server.visitor(&self.host).try_send("GET", path, None).ok()?;
        (answer.status == 200).then(|| answer.text.trim_end().to_owned())
    }

    fn is_served(&self, path: &str) -> bool {
        self.page(path).is_some()
    }

    /// The state of the application by the API.
    fn status(&self) -> String {
        text(&self.harness.application(&self.id)["status"]["status"])
    }

    /// The reason why it does not serve, by the API.
    fn reason(&self) -> Option<String> {
        let application = self.harness.application(&self.id);
        let detail = application.get("status_detail").unwrap();
        detail.as_object().map(|detail| text(&detail["reason"]))
    }

    /// True if the API says that it runs, without a reason why it does not.
    fn is_healthy(&self) -> bool {
        self.status() == "running" && self.reason().is_none()
    }

    /// The log of the live version.
    fn log(&self) -> String {
        self.harness.story_of(&self.deployment)
    }

    /// The number of lines of the log with `words`.
    fn count(&self, words: &str) -> usize {
        self.log().matches(words).count()
    }

    /// Posts a request about the application.
    fn post(&self, action: &str) {
        self.harness.admin.post(&format!("{DEPLOY}/{action}"), &serde_json::json!({"id": self.id})).success();
    }

    /// Waits until `is_so`; shows the log if that takes too long.
    #[track_caller]
    fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begin = std::time::Instant::now();
        until(what, || {
            let application = self.harness.application(&self.id);
            let (status, detail) = (&application["status"]["status"], &application["status_detail"]);
            assert!(begin.elapsed() < LIMIT, "no {what}: {status} {detail}\n{}", self.log());
            is_so().then_some(())
        });
    }
}

/// A property of a container, by a template of docker.
fn inspect(container: &str, format: &str) -> String {
    docker(&["container", "inspect", "--format", format, container])
}

/// True if a container runs and is not paused.
fn is_running(container: &str) -> bool {
    inspect(container, "{{.State.Status}}") == "running"
}
