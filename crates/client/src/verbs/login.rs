//! Login and logout.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use crate::{
    cli::Options,
    contexts::{Context, Contexts},
    failure::{Failure, Kind, Outcome},
    prompt,
    records::{Organization, User, read},
    screen::Screen,
    server::Server,
    session::Session,
};

/// The default URL of a server on this machine.
const HERE: &str = "http://127.0.0.1:8080";
/// The default name of a context.
const UNNAMED: &str = "default";

#[derive(Args, Debug)]
pub struct Login {
    /// URL of the server; by default that of the context, or http://127.0.0.1:8080
    url: Option<String>,
    /// Your e-mail address; asked for if it is not given
    #[arg(long)]
    email: Option<String>,
    /// Code from your authenticator, or a recovery code
    #[arg(long)]
    code: Option<String>,
    /// Log in with an API token from standard input instead of a password
    #[arg(long, conflicts_with_all = ["email", "code"])]
    with_token: bool,
}

#[derive(Deserialize)]
pub(crate) struct LoggedIn {
    pub(crate) access_token: String,
}

/// Logs in, and remembers the server and the token. The password comes from the terminal or from standard
/// input.
pub(crate) fn log_in(login: Login, options: &Options, screen: &Screen) -> Outcome {
    let target = LoginTarget::find(login.url.as_deref(), options, screen)?;
    let token = if login.with_token {
        prompt::secret("API token")?
    } else {
        expect_somebody(&target.server)?;
        session_of(login, &target.server, screen)?
    };
    target.enter(token, options.organization.clone(), screen)
}

/// A server before the login, and the name of its context.
pub(crate) struct LoginTarget {
    pub(crate) server: Server,
    name: String,
}

impl LoginTarget {
    /// Finds the server by its URL; without one, that of the context, or on this machine.
    pub(crate) fn find(url: Option<&str>, options: &Options, screen: &Screen) -> Outcome<Self> {
        let contexts = Contexts::load()?;
        let name = options.context.clone().or(contexts.current).unwrap_or_else(|| UNNAMED.to_owned());
        let known = contexts.contexts.get(&name).map(|context| context.url.as_str());
        let server = Server::at(url.or(known).unwrap_or(HERE))?;
        if server.is_in_the_open() {
            screen.warn(&format!("the connection to {} is not encrypted: use https", server.url()));
        }
        Ok(Self { server, name })
    }

    /// Checks the token, and remembers it with the server.
    pub(crate) fn enter(self, token: String, organization: Option<String>, screen: &Screen) -> Outcome {
        let Self { server, name } = self;
        let server = server.with_token(Some(token.clone()));
        let user: User = server.get("/user").receive()?;
        let mut contexts = Contexts::load()?;
        let context = Context { url: server.url().to_owned(), token: Some(token), organization };
        contexts.contexts.insert(name.clone(), context);
        contexts.current = Some(name.clone());
        contexts.save()?;
        screen.remark(&format!("Logged in to {} as {} ({name})", server.url(), user.username));
        Ok(())
    }
}

#[derive(Deserialize)]
struct Registered {
    admin_registered: bool,
}

/// Fails if no user has registered on the server yet.
fn expect_somebody(server: &Server) -> Outcome {
    let Registered { admin_registered } = server.get("/auth/is-admin-registered").receive()?;
    if admin_registered {
        return Ok(());
    }
    let url = server.url();
    Err(Failure::new(Kind::Denied, format!("the server at {url} has no users yet"))
        .hint(format!("`launchway register {url}` registers the first administrator")))
}

fn session_of(login: Login, server: &Server, screen: &Screen) -> Outcome<String> {
    let email = match login.email {
        Some(email) => email,
        None => prompt::text(screen, "E-mail address", None)?,
    };
    let password = prompt::secret("Password")?;
    let ask = |code: Option<String>| {
        let body = json!({"email": email, "password": password, "totp_code": code});
        server.post("/auth/login").body(body).receive::<LoggedIn>()
    };
    let answer = match ask(login.code.clone()) {
        // Only asked for if the user has a second factor.
        Err(failure)
            if login.code.is_none() && failure.is("two_factor_required") && screen.is_interactive() =>
        {
            ask(Some(prompt::text(screen, "Authenticator code", None)?))
        }
        answer => answer,
    };
    Ok(answer?.access_token)
}

/// Ends the session on the server, and forgets its token.
pub(crate) fn log_out(session: &Session<'_>) -> Outcome {
    let Some(name) = &session.context else {
        return Err(Failure::new(Kind::Usage, "cannot log out: the token comes from LAUNCHWAY_TOKEN")
            .hint("unset LAUNCHWAY_TOKEN; revoke the token with `launchway tokens revoke`"));
    };
    match session.server.post("/auth/logout").send() {
        // An invalid token, or one without a session, only has to be forgotten.
        Err(failure) if failure.kind != Kind::Denied => return Err(failure),
        _ => {}
    }
    let mut contexts = Contexts::load()?;
    if let Some(context) = contexts.contexts.get_mut(name) {
        context.token = None;
    }
    contexts.save()?;
    session.screen.remark(&format!("Logged out of {}", session.server.url()));
    Ok(())
}

/// Prints the user, the server and the organization.
pub(crate) fn who_am_i(session: &Session<'_>) -> Outcome {
    let user = session.server.get("/user").send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&user);
    }
    let organization = match session.server.get("/organizations").send() {
        Ok(organization) => read::<Organization>(organization)?.name,
        Err(failure) if failure.kind == Kind::Denied => "no organization".to_owned(),
        Err(failure) => return Err(failure),
    };
    session.screen.show(user, |user: User| {
        let role = if user.kind == "admin" { ", administrator of the installation" } else { "" };
        let (name, email, url) = (user.username, user.email, session.server.url());
        format!("{name} <{email}>{role}\nin {organization}, at {url}\n")
    })
}
