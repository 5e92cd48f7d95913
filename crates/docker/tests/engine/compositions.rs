//! The services of compose files, on the real engine with the real compose.

mod installed;
mod registries;
mod resume;
mod together;
mod volumes;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use launchway_docker::{Compositions, DockerOptions};
use launchway_domain::{
    applications::{BasePath, DockerfilePath, Port, Variables},
    deployments::{
        BuildCache, Checkout, ComposeSource, Composer as _, Composition, CompositionPlan, Container, Owner,
        StepError,
    },
    secret::SecretBox as _,
};
use launchway_testkit::{
    compositions::MemoryCompositions,
    docker::{base_image, docker},
    secrets::OpenBox,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{installation::Installation, recorder::Recorder};

/// An installation that runs compositions.
struct Composing {
    compositions: Arc<Compositions>,
    installation: Installation,
    stored: Arc<MemoryCompositions>,
    _folder: TempDir,
}

impl Composing {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut DockerOptions)) -> Self {
        let (installation, folder) = (Installation::with(change), tempfile::tempdir().unwrap());
        let stored = Arc::new(MemoryCompositions::default());
        let (engine, secrets) = (installation.engine.clone(), Arc::new(OpenBox));
        let compositions = Compositions::open(engine, stored.clone(), secrets, folder.path()).unwrap();
        Self { compositions: Arc::new(compositions), installation, stored, _folder: folder }
    }

    fn source(&self) -> ComposeSource {
        ComposeSource {
            checkout: Checkout { root: self.installation.root() },
            base_path: BasePath::default(),
            file: DockerfilePath::default(),
            variables: Variables::default(),
            cache: BuildCache::Use,
        }
    }

    /// Composes the repository in its current state.
    async fn compose(&self, plan: &CompositionPlan) -> Result<Composition, StepError> {
        self.compositions.compose(plan, &self.source(), Arc::new(Recorder::default())).await
    }

    async fn start(&self, plan: &CompositionPlan) -> Result<Container, StepError> {
        self.compositions.start(plan, Arc::new(Recorder::default())).await
    }

    /// Composes and starts a file.
    async fn run(&self, plan: &CompositionPlan, file: &str) -> Container {
        self.installation.write("compose.yaml", file);
        self.compose(plan).await.unwrap();
        self.start(plan).await.unwrap()
    }

    /// Returns the container of a service.
    fn service(&self, plan: &CompositionPlan, name: &str) -> Value {
        let container = format!("launchway-{}-{}-{name}", plan.owner.deployment, plan.owner.attempt);
        serde_json::from_str::<Value>(&docker(&["inspect", &container])).unwrap()[0].take()
    }

    /// Returns the text of every stored composition.
    fn kept(&self) -> Vec<String> {
        let text = |((application, deployment), sealed)| {
            let place = format!("compositions.sealed:{application}:{deployment}");
            String::from_utf8(OpenBox.open(&place, &sealed).unwrap().expose().clone()).unwrap()
        };
        self.stored.all().into_iter().map(text).collect()
    }
}

fn plan(owner: Owner) -> CompositionPlan {
    let port = Port::try_from(8080).unwrap();
    CompositionPlan { owner, port, environment: Variables::default(), live: None, reserved: Vec::new() }
}

/// Returns the response of a container on port 8080, after retries.
async fn page(container: &Container) -> String {
    let address = SocketAddr::new(container.address, 8080);
    for _ in 0..100 {
        if let Some(page) = answer(address) {
            return page;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody answers at {address}");
}

fn answer(address: SocketAddr) -> Option<String> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.trim_end().to_owned())
}

/// A database that serves the contents of its volume, and a page that requests it.
fn shop() -> String {
    let base = base_image();
    format!(
        r#"
services:
  web:
    image: {base}
    command:
      - sh
      - -c
      - |
        wget -q -O /www/index.html http://db:9000/index.html
        exec httpd -f -p 8080 -h /www
    stop_signal: SIGKILL
    depends_on: {{db: {{condition: service_healthy}}}}
    ports: ["80:8080"]
  db:
    image: {base}
    command: sh -c "test -s /data/index.html || echo from the database > /data/index.html; exec httpd -f -p 9000 -h /data"
    stop_signal: SIGKILL
    healthcheck: {{test: [CMD, wget, -q, -O, "-", "http://127.0.0.1:9000/index.html"], interval: 1s, retries: 20}}
    volumes: ["data:/data"]
volumes: {{data: }}
"#
    )
}
