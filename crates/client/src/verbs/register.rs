//! Registration: the first administrator of a new server, and users whom others added.

use clap::Args;
use serde_json::json;

use crate::{
    cli::Options,
    failure::{Failure, Outcome},
    prompt,
    screen::Screen,
    verbs::login::{LoggedIn, LoginTarget},
};

#[derive(Args, Debug)]
pub struct Register {
    /// URL of the server; by default that of the context, or http://127.0.0.1:8080
    url: Option<String>,
    /// Your e-mail address; asked for if it is not given
    #[arg(long)]
    email: Option<String>,
    /// Your name; asked for if it is not given
    #[arg(long)]
    username: Option<String>,
    /// Name of your organization; by default your name and "'s Team"
    #[arg(long, value_name = "NAME")]
    team: Option<String>,
    /// Ask for the setup token that the server printed, or read it from standard input, in the line before
    /// the password; required unless you register on the server's machine
    #[arg(long)]
    setup_token: bool,
}

#[derive(Args, Debug)]
pub struct Join {
    /// URL of the server; by default that of the context, or http://127.0.0.1:8080
    url: Option<String>,
    /// Your e-mail address; asked for if it is not given
    #[arg(long)]
    email: Option<String>,
}

/// Creates the first administrator of a server, and logs them in. The password comes from the terminal or
/// from standard input.
pub(crate) fn register(arguments: Register, options: &Options, screen: &Screen) -> Outcome {
    let target = LoginTarget::find(arguments.url.as_deref(), options, screen)?;
    let asked =
        |given: Option<String>, question| given.map_or_else(|| prompt::text(screen, question, None), Ok);
    let email = asked(arguments.email, "E-mail address")?;
    let username = asked(arguments.username, "Name")?;
    let token = arguments.setup_token.then(|| prompt::secret("Setup token")).transpose()?;
    let password = prompt::new_secret(screen, "Password")?;
    let ask = |token: Option<String>| {
        let body = json!({"email": email, "username": username, "password": password,
            "organization": arguments.team, "setup_token": token});
        target.server.post("/auth/register").body(body).receive::<LoggedIn>()
    };
    let answer = match ask(token) {
        // Only asked for on a remote machine.
        Err(failure) if is_token_needed(&failure) && !arguments.setup_token && screen.is_interactive() => {
            screen.remark(
                "Registration from another machine requires the setup token that the server printed at start",
            );
            ask(Some(prompt::secret("Setup token")?))
        }
        answer => answer,
    };
    let logged_in = answer.map_err(|failure| match failure {
        failure if failure.is("registration_closed") => failure.hint(
            "log in with `launchway login`, or, if somebody added you, run `launchway join`",
        ),
        failure if is_token_needed(&failure) => {
            failure.hint("use --setup-token to enter it; it is also in the file `setup-token` of the server's data directory")
        }
        failure => failure,
    })?;
    target.enter(logged_in.access_token, None, screen)
}

fn is_token_needed(failure: &Failure) -> bool {
    failure.is("forbidden")
}

/// Sets the first password of a user whom others added, and logs them in. In a pipe the token is the first
/// line, and the password the second.
pub(crate) fn join(arguments: Join, options: &Options, screen: &Screen) -> Outcome {
    let target = LoginTarget::find(arguments.url.as_deref(), options, screen)?;
    let email = arguments.email.map_or_else(|| prompt::text(screen, "E-mail address", None), Ok)?;
    let token = prompt::secret("Setup token")?;
    let password = prompt::new_secret(screen, "Password")?;
    let body = json!({"token": token, "password": password});
    target.server.post("/auth/password/setup").body(body).send()?;
    let body = json!({"email": email, "password": password});
    let logged_in: LoggedIn = target.server.post("/auth/login").body(body).receive().map_err(|failure| {
        failure.hint(
            "the password is set: run `launchway login` with the e-mail address that you were added with",
        )
    })?;
    target.enter(logged_in.access_token, None, screen)
}
