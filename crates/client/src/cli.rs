//! What can be written on the command line.

use clap::{Args, Subcommand, ValueEnum};

use crate::verbs::{apps::Apps, context::ContextVerb, login::Login};

/// What every verb of the client takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of the client")]
pub struct Options {
    /// The server to talk to, by the name of its context; see `launchway context list`
    #[arg(long, global = true, value_name = "NAME", env = "LAUNCHWAY_CONTEXT")]
    pub context: Option<String>,
    /// The organization to act in, by its name or id
    #[arg(long, global = true, value_name = "NAME", env = "LAUNCHWAY_ORGANIZATION")]
    pub organization: Option<String>,
    /// Tables for people, or what the API answers for programs
    #[arg(long, short, global = true, value_enum, default_value_t)]
    pub output: Format,
}

/// For whom answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: the data of the API's answer
    Json,
}

/// What the client can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Log in to a server and remember it
    Login(Login),
    /// List, choose and forget servers
    #[command(subcommand)]
    Context(ContextVerb),
    /// What needs a session, or a token.
    #[command(flatten)]
    Session(SessionVerb),
}

/// What somebody does who is logged in.
#[derive(Debug, Subcommand)]
pub enum SessionVerb {
    /// End the session and forget its token
    Logout,
    /// Say who is logged in, and where
    Whoami,
    /// List applications
    Apps(Apps),
}
