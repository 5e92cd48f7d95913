//! A server with many applications, whose containers are on a fake engine.

use std::{
    env, fs,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::{
    bench::{
        http, launch,
        reconciler::{
            check_target::CheckTarget,
            containers::{ContainerState, Fleet},
            fake_engine::FakeEngine,
        },
        repository::Repository,
        server::Server,
        usage,
    },
    failure::{Failure, Outcome},
    workspace::{self, dist},
};

/// The timeout of the start of the server and the proxy.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The file beside the client of docker that keeps `docker logs` from ending.
const HOLD: &str = "hold";

/// The server, the engine and the proxy of one measurement.
pub(crate) struct Installation {
    server: Server,
    engine: FakeEngine,
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
    pub(crate) fn prepare(folder: &Path, size: u32, state: ContainerState) -> Outcome<Self> {
        let client = folder.join("client");
        fs::create_dir_all(&client).map_err(unprepared)?;
        write_client(&client)?;
        let (engine, target) = (FakeEngine::listen(folder)?, CheckTarget::listen()?);
        let repository = Repository::create(&folder.join("repository"), &[])?;
        let data = folder.join("data");
        let place =
            Place { data: &data, client: &client, host: engine.host(), repository: repository.path() };

        let server = place.serve("off")?;
        let token = launch::register(&server)?;
        let site = launch::static_site("template", &repository.path().display().to_string());
        let application = launch::create(&server, &token, &site)?;
        launch::wait_until_deployed(server.port, &token, &application)?;
        let organization = organization(&server, &token, &application)?;
        drop(server);
        let url = format!("sqlite://{}", data.join("launchway.db").display());
        let arguments = [url, size.to_string(), state.as_str().to_owned(), target.port().to_string()];
        workspace::output(Command::new(dist("examples/rows")).args(arguments))?;

        engine.set_fleet(Fleet { organization, size, state, port: target.port() });
        // The server would start a proxy that outlives it.
        let (proxy, bind) = place.start_proxy()?;
        let server = place.serve(&bind)?;
        let installation = Self { server, engine, target, client, _proxy: proxy };
        installation.wait_for("a list of containers", |engine| engine.lists() > 0)?;
        Ok(installation)
    }

    /// Turns a steady stream of events on or off.
    pub(crate) fn send_events(&self, is_on: bool) {
        self.engine.send_events(is_on);
    }

    /// Blocks the collection of logs at its next container, or continues it.
    pub(crate) fn hold_logs(&self, is_on: bool) -> Outcome {
        self.engine.hold_logs(is_on);
        let file = self.client.join(HOLD);
        match is_on {
            true => fs::write(file, "").map_err(unprepared),
            false => fs::remove_file(file).map_err(unprepared),
        }
    }

    /// Measures for this many seconds.
    pub(crate) fn observe(&self, seconds: u32) -> Outcome<Usage> {
        let before = self.usage()?;
        thread::sleep(Duration::from_secs(seconds.into()));
        Ok(self.usage()?.since(before))
    }

    fn usage(&self) -> Outcome<Usage> {
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

    fn wait_for(&self, what: &str, is_there: impl Fn(&FakeEngine) -> bool) -> Outcome {
        wait_for(what, || is_there(&self.engine))
    }
}

/// The environment of a server.
struct Place<'a> {
    data: &'a Path,
    /// The folder of the docker client.
    client: &'a Path,
    host: String,
    repository: &'a Path,
}

impl Place<'_> {
    fn serve(&self, proxy: &str) -> Outcome<Server> {
        let path = env::var("PATH").unwrap_or_default();
        launch::serve_with(
            self.data,
            &[
                ("DOCKER_HOST", self.host.clone()),
                ("PATH", format!("{}:{path}", self.client.display())),
                ("LAUNCHWAY_LOG", "warn".to_owned()),
                ("LAUNCHWAY_PROXY_BIND", proxy.to_owned()),
                ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", self.repository.display().to_string()),
            ],
        )
    }

    /// Starts the front proxy; returns the address that it listens on, too.
    fn start_proxy(&self) -> Outcome<(Server, String)> {
        let port = free_port()?;
        let bind = format!("127.0.0.1:{port}");
        let mut command = Command::new(dist("launchway"));
        command
            .args(["proxy", "run"])
            .env("LAUNCHWAY_DATA_DIR", self.data)
            .env("LAUNCHWAY_PROXY_BIND", &bind)
            .env("LAUNCHWAY_LOG", "warn");
        let proxy = Server::start_at(&mut command, port)?;
        let socket = self.data.join("proxy/control.sock");
        wait_for("the control socket of the proxy", || UnixStream::connect(&socket).is_ok())?;
        Ok((proxy, bind))
    }
}

/// Writes a docker client that finds nothing, and whose `docker logs` blocks while the file `hold` exists.
fn write_client(folder: &Path) -> Outcome {
    let (file, hold) = (folder.join("docker"), folder.join(HOLD));
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = logs ] && while [ -e '{}' ]; do sleep 1; done\nexit 0\n",
        hold.display()
    );
    fs::write(&file, script)
        .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)))
        .map_err(unprepared)
}

fn organization(server: &Server, token: &str, application: &str) -> Outcome<String> {
    let path = format!("{}?id={application}", launch::APPLICATIONS);
    let answer = http::expect_success(&path, http::get(server.port, &path, Some(token)))?;
    http::text_field(&answer.body, "organization_id")
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(format!("{path} answered without an organization")))
}

fn free_port() -> Outcome<u16> {
    let bound = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|error| Failure::because("there is no free port", error))
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) -> Outcome {
    let deadline = Instant::now() + TIMEOUT;
    while !is_there() {
        if Instant::now() > deadline {
            return Err(Failure::new(format!("{what} did not come within {TIMEOUT:?}")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn unprepared(error: std::io::Error) -> Failure {
    Failure::because("the installation cannot be prepared", error)
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
