//! The server under measurement, and its first user.

use std::{path::Path, process::Command};

use crate::{
    bench::{http, server::Server},
    failure::{Failure, Outcome},
    workspace::release,
};

const REGISTRATION: &str =
    r#"{"email":"bench@example.com","password":"a long bench passphrase","username":"bench"}"#;

/// Starts the server on a data folder.
pub(crate) fn serve(data: &Path) -> Outcome<Server> {
    Server::start(
        Command::new(release("launchway"))
            .arg("serve")
            .env("LAUNCHWAY_DATA_DIR", data)
            .env("LAUNCHWAY_BIND", "127.0.0.1:0")
            // A process of its own, which would outlive this one; it is measured by itself.
            .env("LAUNCHWAY_PROXY_BIND", "off"),
    )
}

/// Registers the first administrator; gives their token and the id of their organization.
pub(crate) fn register(server: &Server) -> Outcome<(String, String)> {
    let what = "POST /api/v1/auth/register";
    let answer = http::expect_success(what, http::post(server.port, "/api/v1/auth/register", REGISTRATION))?;
    let field = |name| http::text_field(&answer.body, name).map(str::to_owned);
    field("access_token")
        .zip(field("organization_id"))
        .ok_or_else(|| Failure::new(format!("{what} answered without a token or an organization")))
}
