//! The command line.

use clap::{Args, Subcommand, ValueEnum};

use crate::verbs::{
    app::AppVerb,
    apps::Apps,
    context::ContextVerb,
    deploy::Deploy,
    deployments::{Cancel, List, Rollback},
    domains::DomainsVerb,
    env::EnvVerb,
    extensions::{Extensions, run::Run},
    init::Init,
    invitations::Invitations,
    keys::{DeployKey, WebhookSecret},
    login::Login,
    logs::Logs,
    members::MembersVerb,
    notifications::NotificationsVerb,
    org::OrgVerb,
    register::{Join, Register},
    run::Which,
    tokens::TokensVerb,
    two_factor::TwoFactorVerb,
};

/// The options of every verb of the client.
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

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: the data of the API's answer
    Json,
}

/// The verbs of the client.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Log in to a server and remember it
    Login(Login),
    /// Become the first administrator of a new server, and log in
    Register(Register),
    /// Set your first password with the token that you were given, and log in
    Join(Join),
    /// List, choose and forget servers
    #[command(subcommand)]
    Context(ContextVerb),
    /// Say what the repository that you are in is deployed as, in launchway.toml
    Init(Init),
    /// A verb that needs a session or a token.
    #[command(flatten)]
    Session(SessionVerb),
}

/// The verbs of a user who is logged in.
#[derive(Debug, Subcommand)]
pub enum SessionVerb {
    /// End the session and forget its token
    Logout,
    /// Say who is logged in, and where
    Whoami,
    /// List applications
    Apps(Apps),
    /// Deploy the repository that you are in, or an application by its name
    Deploy(Deploy),
    /// Show what an application printed, and go on with what it prints
    Logs(Logs),
    /// Show, change and delete an application
    #[command(subcommand)]
    App(AppVerb),
    /// List the deployments of an application
    Deployments(List),
    /// Go back to the version that was live before, or to another one
    Rollback(Rollback),
    /// End a deployment that is under way
    Cancel(Cancel),
    /// Start what is live again
    Restart(Which),
    /// Stop an application
    Stop(Which),
    /// Show an application in a browser
    Open(Which),
    /// List and change the variables of an application
    #[command(subcommand)]
    Env(EnvVerb),
    /// List and change the names that an application is reached by
    #[command(subcommand)]
    Domains(DomainsVerb),
    /// Print the secret by which a code host signs pushes of an application
    WebhookSecret(WebhookSecret),
    /// Print the key by which private repositories let the organization in
    DeployKey(DeployKey),
    /// List, show and fork extensions, and see what became of their runs
    Extensions(Extensions),
    /// Run an extension, such as postgres
    Run(Run),
    /// List, choose, make and delete organizations
    #[command(subcommand)]
    Org(OrgVerb),
    /// List, add and remove members of the organization
    #[command(subcommand)]
    Members(MembersVerb),
    /// List, accept and decline your invitations to organizations
    Invitations(Invitations),
    /// List, issue and revoke API tokens, for programs
    #[command(subcommand)]
    Tokens(TokensVerb),
    /// See where messages go, and what became of them
    #[command(subcommand)]
    Notifications(NotificationsVerb),
    /// Change your password
    Password,
    /// Let logins need a code of your authenticator, or not
    #[command(subcommand)]
    TwoFactor(TwoFactorVerb),
}

impl SessionVerb {
    /// Returns whether the command needs no organization, so that it works when the remembered one no
    /// longer exists.
    pub(crate) fn is_of_oneself(&self) -> bool {
        match self {
            Self::Logout | Self::Password | Self::TwoFactor(_) | Self::Invitations(_) => true,
            Self::Org(verb) => verb.is_of_oneself(),
            _ => false,
        }
    }
}
