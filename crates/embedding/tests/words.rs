//! The words that an embedding service and its users get to read.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use launchway_embedding::{
    Actor, ApplicationChange, ApplicationId, Blueprint, Deployment, DeploymentState, Embedded, Error, Host,
    MemoryStore, PageRequest, PrintedLine, ProcessHost, ProcessSpec, Role, StepError, Version, VersionId,
};
use launchway_testkit::builders::{an_actor, parsed};
use tempfile::TempDir;
use tokio::time::sleep;

/// Words of the server, which mean nothing on a host of processes.
const FOREIGN: [&str; 5] = ["container", "docker", "image", "launchway", "localhost"];

/// A host of processes that can be away.
#[derive(Clone)]
struct Machine(Arc<ProcessHost>, Arc<AtomicBool>);

#[async_trait]
impl Host for Machine {
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
        self.0.start(version).await
    }

    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        match self.1.load(Relaxed) {
            true => std::future::pending().await,
            false => self.0.list().await,
        }
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        self.0.end(id).await
    }

    async fn printed(
        &self,
        id: VersionId,
        since: Option<chrono::DateTime<chrono::Utc>>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        self.0.printed(id, since, limit).await
    }
}

/// The messages and values of tracing events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Events {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.lock().unwrap().push(format!("{value:?}"));
    }
}

impl tracing::Subscriber for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("launchway")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

fn ada() -> Actor {
    an_actor().with_role(Role::Admin).build()
}

struct Service(Embedded, ApplicationId);

impl Service {
    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        for _ in 0..600 {
            if holds().await {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}: {:#?}", self.log().await);
    }

    async fn log(&self) -> Vec<String> {
        let lines = self.0.logs().of_application(&ada(), self.1, None, 1000).await.unwrap();
        lines.into_iter().map(|line| line.text).collect()
    }

    /// Waits for a line that begins so.
    async fn line(&self, begin: &str) {
        self.until(begin, async || self.log().await.iter().any(|line| line.starts_with(begin))).await;
    }

    async fn over(&self, deployment: &Deployment) -> DeploymentState {
        let state = async || self.0.deployments().get(&ada(), deployment.id).await.unwrap().status.state;
        self.until("the end of the deployment", async || state().await.is_final()).await;
        state().await
    }

    async fn deploy(&self, image: &str) -> DeploymentState {
        let change = ApplicationChange { repository: Some(image.to_owned()), ..Default::default() };
        self.0.applications().update(&ada(), self.1, change).await.unwrap();
        let page = PageRequest::new(1, 1, 1).unwrap();
        let newest = self.0.deployments().list(&ada(), self.1, page).await.unwrap();
        self.over(&newest.items[0]).await
    }

    /// Deploys, fails, crashes, loses its host, rolls back, restarts and stops.
    async fn story(&self, first: &Deployment, machine: &Machine, folder: &TempDir) {
        assert_eq!(self.over(first).await, DeploymentState::Deployed);
        for broken in ["exits:1", "silent:1", "absent:1", "refused:1"] {
            assert_eq!(self.deploy(broken).await, DeploymentState::Failed, "{broken}");
        }
        let pid = folder.path().join(format!("{}.1/pid", first.id));
        let pid = std::fs::read_to_string(pid).unwrap().lines().next().unwrap().to_owned();
        let killed = std::process::Command::new("/bin/sh").args(["-c", "kill -9 $0", &pid]).status();
        assert!(killed.unwrap().success());
        self.line("The version ended").await;
        self.line("Running at").await;
        machine.1.store(true, Relaxed);
        self.0.deployments().request(&ada(), self.1).await.unwrap();
        self.line("Attempt failed: the host did not list its versions").await;
        machine.1.store(false, Relaxed);
        let back = self.0.deployments().roll_back(&ada(), first.id).await.unwrap();
        assert_eq!(self.over(&back).await, DeploymentState::Deployed);
        self.0.applications().restart(&ada(), self.1).await.unwrap();
        self.line("Restarted").await;
        self.0.applications().stop(&ada(), self.1).await.unwrap();
        self.line("Stopped").await;
    }
}

fn programs(version: &Version) -> Result<ProcessSpec, String> {
    let script = match version.image.as_str() {
        "web:1" => "exec busybox httpd -f -p $HOST:$PORT",
        "exits:1" => "echo bye; exit 3",
        "silent:1" => "exec sleep 60",
        "absent:1" => return Ok(ProcessSpec::new("/nowhere")),
        _ => return Err("there is no such program".to_owned()),
    };
    Ok(ProcessSpec::new("/bin/sh").arguments(["-c", script]))
}

#[tokio::test]
async fn no_text_is_about_containers() {
    let (folder, events) = (TempDir::new().unwrap(), Events::default());
    let _subscribed = tracing::subscriber::set_default(events.clone());
    let host = ProcessHost::builder(folder.path(), programs).grace(Duration::from_millis(100)).open();
    let machine = Machine(Arc::new(host.unwrap()), Arc::default());
    let hurry = |limits: &mut launchway_embedding::Limits| {
        limits.healthy = Duration::from_secs(2);
        limits.stable = Duration::from_millis(200);
        limits.reconcile = Duration::from_millis(200);
        limits.host.call = Duration::from_millis(500);
    };
    let platform = Embedded::builder(MemoryStore::new(), machine.clone()).limits(hurry).build();
    let port = 80.try_into().unwrap();
    let web = Blueprint::of_image(parsed("web"), parsed("production"), parsed("web:1"), port);
    let created = platform.applications().create(&ada(), web).await.unwrap();
    let service = Service(platform, created.application.id);

    let (sender, stop) = tokio::sync::oneshot::channel();
    let story = async {
        service.story(&created.deployment, &machine, &folder).await;
        sender.send(()).unwrap();
    };
    let (ran, ()) = tokio::join!(service.0.run(async { stop.await.unwrap() }), story);
    ran.unwrap();

    let mut texts = service.log().await;
    texts.extend(service.refusals().await.iter().map(Error::to_string));
    let page = PageRequest::new(1, 100, 100).unwrap();
    let deployments = service.0.deployments().list(&ada(), service.1, page).await.unwrap();
    texts.extend(deployments.items.into_iter().filter_map(|deployment| deployment.breakdown));
    let audit = service.0.audit().list(&ada(), &Default::default(), page).await.unwrap();
    assert!(audit.total > 5, "{}", audit.total);
    texts.extend(audit.items.into_iter().map(|entry| entry.message));
    texts.extend(events.0.lock().unwrap().iter().cloned());
    for text in texts {
        let lower = text.to_lowercase();
        assert!(!FOREIGN.iter().any(|word| lower.contains(word)), "{text}");
    }
}

impl Service {
    /// Returns the errors of what is refused.
    async fn refusals(&self) -> Vec<Error> {
        let applications = self.0.applications();
        let source = "https://git.example.com/analytics/web.git".to_owned();
        let change = ApplicationChange {
            repository: Some(source),
            build_pack: Some(launchway_domain::applications::BuildPack::Dockerfile),
            branch: Some(parsed("main")),
            ..Default::default()
        };
        let unknown = uuid::Uuid::from_u128(404);
        let viewer = an_actor().with_role(Role::Viewer).build();
        vec![
            applications.update(&ada(), self.1, change).await.unwrap_err(),
            applications.get(&ada(), unknown.into()).await.unwrap_err(),
            applications.stop(&viewer, self.1).await.unwrap_err(),
            self.0.deployments().get(&ada(), unknown.into()).await.unwrap_err(),
            self.0.deployments().roll_back(&ada(), unknown.into()).await.unwrap_err(),
        ]
    }
}
