//! The server under test, its first user, and their applications.

use std::{
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::{
    bench::{
        http::{self, Connection},
        server::Server,
    },
    failure::{Failure, Outcome},
    workspace::dist,
};

const REGISTRATION: &str =
    r#"{"email":"bench@example.com","password":"a long bench passphrase","username":"bench"}"#;
const TIMEOUT: Duration = Duration::from_secs(120);
/// The endpoint that creates applications.
pub(crate) const APPLICATIONS: &str = "/api/v1/deploy/application";

/// Starts the server on a data folder.
pub(crate) fn serve(data: &Path) -> Outcome<Server> {
    serve_with(data, &[])
}

/// Starts the server on a data folder, with further settings.
pub(crate) fn serve_with(data: &Path, settings: &[(&str, String)]) -> Outcome<Server> {
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

/// Registers the first administrator; returns their token.
pub(crate) fn register(server: &Server) -> Outcome<String> {
    let what = "POST /api/v1/auth/register";
    let answer = http::expect_success(what, http::post(server.port, "/api/v1/auth/register", REGISTRATION))?;
    http::text_field(&answer.body, "access_token")
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(format!("{what} answered without a token")))
}

/// Returns the body of a request for an application that publishes the files of a repository.
pub(crate) fn static_site(name: &str, repository: &str) -> String {
    format!(
        r#"{{"name":"{name}","repository":"{repository}","branch":"main","port":8080,"environment":"production","build_pack":"static","auto_deploy":false}}"#
    )
}

/// Creates an application; returns its id.
pub(crate) fn create(server: &Server, token: &str, wish: &str) -> Outcome<String> {
    let made = http::post_as(server.port, APPLICATIONS, token, wish);
    let made = http::expect_success(&format!("POST {APPLICATIONS}"), made)?;
    Ok(http::text_field(&made.body, "id").unwrap_or_default().to_owned())
}

/// Waits until the newest deployment of an application is live; returns it as JSON.
pub(crate) fn wait_until_deployed(port: u16, token: &str, application: &str) -> Outcome<String> {
    let path = format!("/api/v1/deploy/application/deployments?id={application}&page_size=1");
    let mut connection = Connection::open(port, token)
        .map_err(|error| Failure::because("cannot connect to the server", error))?;
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        let answer = http::expect_success(&path, connection.get(&path))?;
        if answer.body.contains(r#""status":"deployed""#) {
            return Ok(answer.body);
        }
        if answer.body.contains(r#""status":"failed""#) {
            return Err(Failure::new("a deployment failed"));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(Failure::new("a deployment did not come to its end"))
}
