//! A session: a server, the credentials for it, and the output.

use std::env;

use crate::{
    cli::Options,
    contexts::Contexts,
    failure::{Failure, Kind, Outcome},
    names,
    screen::Screen,
    server::Server,
};

/// The environment of a command.
pub(crate) struct Session<'a> {
    pub(crate) server: Server,
    pub(crate) screen: &'a Screen,
    /// The name of the context; `None` if the environment variables name the server and the token.
    pub(crate) context: Option<String>,
    /// The requested organization, by its name or id.
    pub(crate) wanted: Option<String>,
}

impl<'a> Session<'a> {
    /// Opens a session by environment variables, or else by the selected context, in the selected
    /// organization.
    pub(crate) fn open(options: &Options, screen: &'a Screen) -> Outcome<Self> {
        let Self { server, screen, context, wanted } = Self::of_oneself(options, screen)?;
        let organization = wanted.as_deref().map(|name| names::organization(&server, name)).transpose()?;
        Ok(Self { server: server.in_organization(organization), screen, context, wanted })
    }

    /// Opens a session for commands that need no organization: it works also when the remembered one no
    /// longer exists.
    pub(crate) fn of_oneself(options: &Options, screen: &'a Screen) -> Outcome<Self> {
        let (server, context, remembered) = match (set("LAUNCHWAY_URL"), set("LAUNCHWAY_TOKEN")) {
            (Some(url), Some(token)) => (Server::at(&url)?.with_token(Some(token)), None, None),
            (Some(_), None) => return Err(half("LAUNCHWAY_URL", "LAUNCHWAY_TOKEN")),
            (None, Some(_)) => return Err(half("LAUNCHWAY_TOKEN", "LAUNCHWAY_URL")),
            (None, None) => {
                let contexts = Contexts::load()?;
                let name = options.context.clone().or_else(|| contexts.current.clone());
                let name = name.ok_or_else(not_logged_in)?;
                let context =
                    contexts.contexts.get(&name).ok_or_else(|| names::no_context(&name, &contexts))?;
                let server = Server::at(&context.url)?.with_token(context.token.clone());
                (server, Some(name), context.organization.clone())
            }
        };
        let wanted = options.organization.clone().or(remembered);
        Ok(Self { server, screen, context, wanted })
    }
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn half(one: &str, other: &str) -> Failure {
    Failure::new(Kind::Usage, format!("{one} is set, but {other} is not"))
        .hint("set both, or unset both and log in")
}

fn not_logged_in() -> Failure {
    Failure::new(Kind::Denied, "you are not logged in")
        .hint("run `launchway login https://your.server`, or set LAUNCHWAY_URL and LAUNCHWAY_TOKEN")
}
