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
    git_remote::GitRemote,
    init::Init,
    invitations::Invitations,
    keys::{DeployKey, WebhookSecret},
    login::Login,
    logs::Logs,
    members::MembersVerb,
    notifications::NotificationsVerb,
    org::OrgVerb,
    previews::PreviewsVerb,
    register::{Join, Register},
    run::Which,
    tokens::TokensVerb,
    two_factor::TwoFactorVerb,
};

/// The options of every verb of the client.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Client options")]
pub struct Options {
    /// Context that selects the server; see `launchway context list`
    #[arg(long, global = true, value_name = "NAME", env = "LAUNCHWAY_CONTEXT")]
    pub context: Option<String>,
    /// Organization, by name or id
    #[arg(long, global = true, value_name = "NAME", env = "LAUNCHWAY_ORGANIZATION")]
    pub organization: Option<String>,
    /// Output format
    #[arg(long, short, global = true, value_enum, default_value_t)]
    pub output: Format,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables and messages
    #[default]
    Text,
    /// The data of the API response as JSON
    Json,
}

/// Returns the name of a value on the command line, which is its name in the API, too.
pub(crate) fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The verbs of the client.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Log in to a server, and save it as a context
    Login(Login),
    /// Register the first administrator of a new server, and log in
    Register(Register),
    /// Set your first password with a setup token, and log in
    Join(Join),
    /// Manage contexts, the saved servers
    #[command(subcommand)]
    Context(ContextVerb),
    /// Create launchway.toml for this repository
    Init(Init),
    /// A verb that needs a session or a token.
    #[command(flatten)]
    Session(SessionVerb),
}

/// The verbs of a user who is logged in.
#[derive(Debug, Subcommand)]
pub enum SessionVerb {
    /// Log out, and delete the saved token
    Logout,
    /// Show the current user, organization and server
    Whoami,
    /// List applications
    Apps(Apps),
    /// Deploy this folder, or an application by name
    Deploy(Deploy),
    /// Show the logs of an application
    Logs(Logs),
    /// Show, edit or delete an application
    #[command(subcommand)]
    App(AppVerb),
    /// List the deployments of an application
    Deployments(List),
    /// Roll back to the previous version, or to another deployment
    Rollback(Rollback),
    /// Cancel a running deployment
    Cancel(Cancel),
    /// Restart an application
    Restart(Which),
    /// Stop an application
    Stop(Which),
    /// Open an application in a browser
    Open(Which),
    /// Manage the variables of an application
    #[command(subcommand)]
    Env(EnvVerb),
    /// Manage the domains of an application
    #[command(subcommand)]
    Domains(DomainsVerb),
    /// Manage the previews of pull and merge requests
    #[command(subcommand)]
    Previews(PreviewsVerb),
    /// Print the webhook secret of an application
    WebhookSecret(WebhookSecret),
    /// Add a git remote for this repository, to deploy by `git push`
    GitRemote(GitRemote),
    /// Print the public SSH key of the organization for private repositories
    DeployKey(DeployKey),
    /// Manage extensions and their runs
    Extensions(Extensions),
    /// Run an extension, such as postgres
    Run(Run),
    /// Manage organizations
    #[command(subcommand)]
    Org(OrgVerb),
    /// Manage the members of the organization
    #[command(subcommand)]
    Members(MembersVerb),
    /// List, accept or decline your invitations to organizations
    Invitations(Invitations),
    /// Manage API tokens
    #[command(subcommand)]
    Tokens(TokensVerb),
    /// Show and test notification channels and deliveries
    #[command(subcommand)]
    Notifications(NotificationsVerb),
    /// List the servers of the installation
    Cluster,
    /// Change your password
    Password,
    /// Enable or disable two-factor authentication
    #[command(subcommand)]
    TwoFactor(TwoFactorVerb),
}

impl SessionVerb {
    /// Returns whether the command needs no organization, so that it works when the remembered one no
    /// longer exists.
    pub(crate) fn is_of_oneself(&self) -> bool {
        match self {
            Self::Logout | Self::Password | Self::TwoFactor(_) | Self::Invitations(_) | Self::Cluster => true,
            Self::Org(verb) => verb.is_of_oneself(),
            _ => false,
        }
    }
}
