//! A server with many applications, whose containers are on a fake engine.

use std::{
    env,
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use anyhow::Result;
use fs_err as fs;

use crate::{
    bench::{
        Repository, Server, http, launch,
        reconciler::{
            check_target::CheckTarget,
            containers::{ContainerState, Fleet},
            fake_engine::FakeEngine,
        },
        usage,
    },
    workspace::{self, dist},
};

/// The file beside the client of docker that keeps `docker logs` from ending.
const HOLD: &str = "hold";

/// The server, the engine and the proxy of one measurement.
pub(crate) struct Installation {
    server: Server,
    pub(crate) engine: FakeEngine,
    target: CheckTarget,
    client: PathBuf,
    _proxy: Server,
}

/// The usage of the server in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) seconds: f64,
    /// Processor time of the server process.
    pub(crate) cpu_milliseconds: f64,
    /// Processor time of the programs that it started and that have ended.
    pub(crate) children_milliseconds: f64,
    pub(crate) lists: f64,
    pub(crate) log_reads: f64,
    pub(crate) checks: f64,
}

impl Usage {
    /// The share of one core that the server process used, in percent.
    pub(crate) fn percent(&self) -> f64 {
        self.cpu_milliseconds / self.seconds / 10.0
    }

    /// The share of one core that the programs used which it started, in percent.
    pub(crate) fn percent_of_children(&self) -> f64 {
        self.children_milliseconds / self.seconds / 10.0
    }

    /// The processor time of each list that `self` has more of than `idle` in the same time.
    pub(crate) fn milliseconds_of_a_look(&self, idle: &Self) -> f64 {
        let per_second = |usage: &Self, amount: f64| amount / usage.seconds;
        let cpu = per_second(self, self.cpu_milliseconds) - per_second(idle, idle.cpu_milliseconds);
        cpu / (per_second(self, self.lists) - per_second(idle, idle.lists))
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            seconds: self.seconds - earlier.seconds,
            cpu_milliseconds: self.cpu_milliseconds - earlier.cpu_milliseconds,
            children_milliseconds: self.children_milliseconds - earlier.children_milliseconds,
            lists: self.lists - earlier.lists,
            log_reads: self.log_reads - earlier.log_reads,
            checks: self.checks - earlier.checks,
        }
    }
}

impl Installation {
    /// Deploys one application, copies it `size` times, and restarts the server with an engine that has a
    /// container in `state` for each copy.
    pub(crate) fn prepare(folder: &Path, size: u32, state: ContainerState) -> Result<Self> {
        let client = folder.join("client");
        fs::create_dir_all(&client)?;
        write_client(&client)?;
        let (engine, target) = (FakeEngine::listen(folder)?, CheckTarget::listen()?);
        let repository = Repository::create(&folder.join("repository"), &[])?;
        let data = folder.join("data");
        let path = format!("{}:{}", client.display(), env::var("PATH").unwrap_or_default());
        let serve = |proxy: String| {
            let settings = [
                ("DOCKER_HOST", engine.host()),
                ("PATH", path.clone()),
                ("LAUNCHWAY_LOG", "warn".to_owned()),
                ("LAUNCHWAY_PROXY_BIND", proxy),
                ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", repository.path().display().to_string()),
            ];
            launch::serve(&data, &settings)
        };

        let server = serve("off".to_owned())?;
        let token = launch::register(&server)?;
        let site = launch::static_site("template", repository.path().display());
        let application = launch::create(&server, &token, &site)?;
        launch::wait_until_deployed(server.port, &token, &application)?;
        let application = format!("{}?id={application}", launch::APPLICATIONS);
        let application = http::get(server.port, &application, Some(&token))?;
        let organization = http::text_field(&application, "organization_id")?;
        drop(server);
        let url = format!("sqlite://{}", data.join("launchway.db").display());
        let arguments = [url, size.to_string(), state.as_str().to_owned(), target.port().to_string()];
        workspace::output(Command::new(dist("examples/rows")).args(arguments))?;

        engine.set_fleet(Fleet { organization, size, state, port: target.port() });
        // The server would start a proxy that outlives it.
        let (proxy, _) = launch::run_proxy(&data)?;
        let server = serve(format!("127.0.0.1:{}", proxy.port))?;
        let installation = Self { server, engine, target, client, _proxy: proxy };
        launch::wait_for("a list of containers", launch::PAUSE, || Ok(installation.engine.lists() > 0))?;
        Ok(installation)
    }

    /// Blocks the collection of logs at its next container, or continues it.
    pub(crate) fn hold_logs(&self, is_on: bool) -> Result<()> {
        self.engine.hold_logs(is_on);
        let file = self.client.join(HOLD);
        let done = if is_on { fs::write(file, "") } else { fs::remove_file(file) };
        Ok(done?)
    }

    /// Measures for this many seconds.
    pub(crate) fn observe(&self, seconds: u32) -> Result<Usage> {
        let before = self.usage()?;
        thread::sleep(Duration::from_secs(seconds.into()));
        Ok(self.usage()?.since(before))
    }

    fn usage(&self) -> Result<Usage> {
        let pid = self.server.pid();
        Ok(Usage {
            seconds: self.server.started.elapsed().as_secs_f64(),
            cpu_milliseconds: usage::cpu_microseconds(pid)? / 1e3,
            children_milliseconds: usage::children_cpu_microseconds(pid)? / 1e3,
            lists: self.engine.lists() as f64,
            log_reads: self.engine.log_reads() as f64,
            checks: self.target.answered() as f64,
        })
    }
}

/// Writes a docker client that finds nothing, and whose `docker logs` blocks while the file `hold` exists.
pub(crate) fn write_client(folder: &Path) -> Result<()> {
    let (file, hold) = (folder.join("docker"), folder.join(HOLD));
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = logs ] && while [ -e '{}' ]; do sleep 1; done\nexit 0\n",
        hold.display()
    );
    fs::write(&file, script)?;
    Ok(fs::set_permissions(&file, Permissions::from_mode(0o755))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_costs_what_more_of_them_cost_more() {
        let idle = Usage { seconds: 60.0, cpu_milliseconds: 600.0, lists: 12.0, ..Usage::default() };
        let busy = Usage { seconds: 30.0, cpu_milliseconds: 1_200.0, lists: 36.0, ..Usage::default() };
        // One list a second more, and 30 ms of CPU.
        assert!((busy.milliseconds_of_a_look(&idle) - 30.0).abs() < 1e-9);
        assert!((idle.percent() - 1.0).abs() < 1e-9);
    }
}
