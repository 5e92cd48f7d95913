//! A server with many static sites, and its front proxy.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Result;
use fs_err as fs;

use crate::{
    bench::{
        Connection, Repository, Server, http, launch,
        reconciler::{FakeEngine, write_client},
        usage,
    },
    workspace::{self, dist},
};

/// The domain of the site that is deployed again.
const DOMAIN: &str = "switch.example.com";
/// The pause between two requests for a page that is about to change.
const POLL: Duration = Duration::from_millis(5);

/// The server, the engine and the proxy of one measurement.
pub(crate) struct Installation {
    server: Server,
    proxy: Server,
    pub(crate) token: String,
    pub(crate) size: u32,
    /// The site that the API created.
    pub(crate) application: String,
    settings: Settings,
}

/// The settings of a server of the installation.
struct Settings {
    data: PathBuf,
    engine: FakeEngine,
    path: String,
    repository: String,
}

impl Settings {
    fn prepare(folder: &Path, repository: &Repository) -> Result<Self> {
        let client = folder.join("client");
        fs::create_dir_all(&client)?;
        write_client(&client)?;
        Ok(Self {
            data: folder.join("data"),
            engine: FakeEngine::listen(folder)?,
            path: format!("{}:{}", client.display(), env::var("PATH").unwrap_or_default()),
            repository: repository.path().display().to_string(),
        })
    }

    fn serve(&self, proxy: Option<&Server>) -> Result<Server> {
        let bind = proxy.map_or_else(|| "off".to_owned(), |proxy| format!("127.0.0.1:{}", proxy.port));
        let settings = [
            ("DOCKER_HOST", self.engine.host()),
            ("PATH", self.path.clone()),
            ("LAUNCHWAY_LOG", "warn".to_owned()),
            ("LAUNCHWAY_PROXY_BIND", bind),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", self.repository.clone()),
            ("LAUNCHWAY_ORGANIZATION_LOG_SIZE", "16g".to_owned()),
        ];
        launch::serve(&self.data, &settings)
    }
}

impl Installation {
    /// Deploys one site, stores the others beside it, and starts the server again.
    pub(crate) fn prepare(folder: &Path, repository: &Repository, (size, lines): (u32, u32)) -> Result<Self> {
        let settings = Settings::prepare(folder, repository)?;
        let server = settings.serve(None)?;
        let token = launch::register(&server)?;
        let site = launch::static_site("switch", &settings.repository);
        let site = site.replacen('{', &format!(r#"{{"domain":"{DOMAIN}","#), 1);
        let application = launch::create(&server, &token, &site)?;
        launch::wait_until_deployed(server.port, &token, &application)?;
        drop(server);
        let mut seed = Command::new(dist("examples/large_installation"));
        workspace::output(seed.arg(&settings.data).args([size - 1, lines].map(|number| number.to_string())))?;
        // The server would start a proxy that outlives it.
        let (proxy, _) = launch::run_proxy(&settings.data)?;
        let server = settings.serve(Some(&proxy))?;
        Ok(Self { server, proxy, token, size, application, settings })
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port
    }

    /// Starts the server again. Returns the milliseconds from the start of the process to the first answer.
    pub(crate) fn restart(&mut self) -> Result<f64> {
        self.server.end();
        self.server = self.settings.serve(Some(&self.proxy))?;
        let port = self.server.port;
        launch::wait_for("the first answer", Duration::from_millis(1), || {
            Ok(http::get(port, "/api/v1/auth/is-admin-registered", None).is_ok())
        })?;
        Ok(self.server.started.elapsed().as_secs_f64() * 1e3)
    }

    /// Returns the processor time that the server has used.
    pub(crate) fn cpu_microseconds(&self) -> Result<f64> {
        usage::cpu_microseconds(self.server.pid())
    }

    pub(crate) fn resident_megabytes(&self) -> Result<f64> {
        usage::resident_megabytes(self.server.pid())
    }

    pub(crate) fn resident_megabytes_of_proxy(&self) -> Result<f64> {
        usage::resident_megabytes(self.proxy.pid())
    }

    /// Deploys another page. Returns the milliseconds from the request until the front proxy serves it.
    pub(crate) fn switch(&mut self, repository: &Repository, page: &str) -> Result<f64> {
        repository.commit(page)?;
        let mut visitor = Connection::open_with(self.proxy.port, format!("Host: {DOMAIN}\r\n"))?;
        let body = format!(r#"{{"id":"{}"}}"#, self.application);
        let began = Instant::now();
        http::post(self.server.port, "/api/v1/deploy/application/redeploy", Some(&self.token), &body)?;
        launch::wait_for("the new page", POLL, || Ok(visitor.get("/")? == page))?;
        Ok(began.elapsed().as_secs_f64() * 1e3)
    }
}
