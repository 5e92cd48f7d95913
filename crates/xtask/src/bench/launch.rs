//! The server under test, its front proxy, its first user, and their applications.

use std::{
    fmt::Display,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};

use crate::{
    bench::{Connection, Server, http},
    network::free_port,
    workspace::{self, dist},
};

const REGISTRATION: &str =
    r#"{"email":"bench@example.com","password":"a long bench passphrase","username":"bench"}"#;
const TIMEOUT: Duration = Duration::from_secs(120);
/// The pause between two attempts of something that is quick to try.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);
/// The endpoint that creates applications.
pub(crate) const APPLICATIONS: &str = "/api/v1/deploy/application";

/// Starts the server on a data folder, with further settings.
pub(crate) fn serve(data: &Path, settings: &[(&str, String)]) -> Result<Server> {
    Server::start(
        Command::new(dist("launchway"))
            .arg("serve")
            .env("LAUNCHWAY_DATA_DIR", data)
            .env("LAUNCHWAY_BIND", "127.0.0.1:0")
            // A separate process, which would outlive this one; it is measured separately.
            .env("LAUNCHWAY_PROXY_BIND", "off")
            // One organization may use the whole machine.
            .env("LAUNCHWAY_QUOTA_APPLICATIONS", "0")
            .env("LAUNCHWAY_QUOTA_BUILDS", "0")
            .envs(settings.iter().map(|(name, value)| (name, value))),
    )
}

/// Starts the front proxy without a server; returns its control socket, too.
pub(crate) fn run_proxy(data: &Path) -> Result<(Server, PathBuf)> {
    let port = free_port()?;
    let mut command = Command::new(dist("launchway"));
    command
        .args(["proxy", "run"])
        .env("LAUNCHWAY_DATA_DIR", data)
        .env("LAUNCHWAY_PROXY_BIND", format!("127.0.0.1:{port}"))
        .env("LAUNCHWAY_LOG", "warn");
    let proxy = Server::start_at(&mut command, port)?;
    let socket = data.join("proxy/control.sock");
    wait_for("the control socket of the proxy", PAUSE, || Ok(UnixStream::connect(&socket).is_ok()))?;
    Ok((proxy, socket))
}

/// Stops a server and the front proxy that it started. Errors are ignored: nothing depends on leftovers.
pub(crate) fn stop(server: &mut Server, data: &Path) {
    // It would start another front proxy.
    server.end();
    let mut stop = Command::new(dist("launchway"));
    let _gone = workspace::output(stop.args(["proxy", "stop"]).env("LAUNCHWAY_DATA_DIR", data));
}

/// Registers the first administrator; returns their token.
pub(crate) fn register(server: &Server) -> Result<String> {
    http::text_field(&http::post(server.port, "/api/v1/auth/register", None, REGISTRATION)?, "access_token")
}

/// Returns the body of a request for an application that publishes the files of a repository.
pub(crate) fn static_site(name: &str, repository: impl Display) -> String {
    format!(
        r#"{{"name":"{name}","repository":"{repository}","branch":"main","port":8080,"environment":"production","build_pack":"static","auto_deploy":false}}"#
    )
}

/// Creates an application; returns its id.
pub(crate) fn create(server: &Server, token: &str, application: &str) -> Result<String> {
    http::text_field(&http::post(server.port, APPLICATIONS, Some(token), application)?, "id")
}

/// Waits until the newest deployment of an application is live; returns it as JSON.
pub(crate) fn wait_until_deployed(port: u16, token: &str, application: &str) -> Result<String> {
    let path = format!("/api/v1/deploy/application/deployments?id={application}&page_size=1");
    let mut connection = Connection::open(port, Some(token))?;
    let mut answer = String::new();
    wait_for("the end of a deployment", PAUSE, || {
        answer = connection.get(&path)?;
        ensure!(!answer.contains(r#""status":"failed""#), "a deployment failed");
        Ok(answer.contains(r#""status":"deployed""#))
    })?;
    Ok(answer)
}

/// Tries until something is there.
pub(crate) fn wait_for(
    what: &str,
    pause: Duration,
    mut is_there: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while !is_there()? {
        if Instant::now() > deadline {
            bail!("{what} did not come within {TIMEOUT:?}");
        }
        thread::sleep(pause);
    }
    Ok(())
}
