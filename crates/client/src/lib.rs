#![doc = include_str!("../README.md")]
//!
//! **Invariant:** the client knows only the HTTP API, and no code of the server. Every program can do what
//! it can.

mod addresses;
mod cli;
mod contexts;
mod dotenv;
mod failure;
mod follow;
mod manifest;
mod names;
mod progress;
mod prompt;
mod proposal;
mod records;
mod repository;
mod screen;
mod server;
mod session;
mod table;
#[cfg(test)]
mod test_folder;
mod upload;
mod verbs;
mod watch;
mod when;

use std::process::ExitCode;

pub use self::cli::{Options, SessionVerb, Verb};
pub use self::verbs::audit::AuditFilter;
use self::{failure::Outcome, screen::Screen, session::Session};

/// The environment variables that the client reads; a server ignores them.
pub const VARIABLES: &[&str] = &[
    "LAUNCHWAY_CONTEXT",
    "LAUNCHWAY_CONTEXTS_FILE",
    "LAUNCHWAY_ORGANIZATION",
    "LAUNCHWAY_TOKEN",
    "LAUNCHWAY_URL",
];

/// Runs a command, and prints the error if it fails.
pub fn run(verb: Verb, options: &Options) -> ExitCode {
    speaking(options, |screen| carry_out(verb, options, screen))
}

/// Shows the audit log of an organization. A function of its own, because the server's command line has a
/// command of the same name.
pub fn show_audit_trail(filter: AuditFilter, options: &Options) -> ExitCode {
    speaking(options, |screen| verbs::audit::list(filter, &Session::open(options, screen)?))
}

fn speaking(options: &Options, act: impl FnOnce(&Screen) -> Outcome) -> ExitCode {
    let screen = Screen::new(options.output);
    match act(&screen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.print_failure(&failure);
            failure.exit_code()
        }
    }
}

fn carry_out(verb: Verb, options: &Options, screen: &Screen) -> Outcome {
    match verb {
        Verb::Login(login) => verbs::login::log_in(login, options, screen),
        Verb::Context(verb) => verbs::context::run(verb, screen),
        Verb::Init(init) => verbs::init::init(&init, screen),
        Verb::Register(register) => verbs::register::register(register, options, screen),
        Verb::Join(join) => verbs::register::join(join, options, screen),
        Verb::Session(verb) if verb.is_of_oneself() => {
            in_session(verb, &Session::of_oneself(options, screen)?)
        }
        Verb::Session(verb) => in_session(verb, &Session::open(options, screen)?),
    }
}

fn in_session(verb: SessionVerb, session: &Session<'_>) -> Outcome {
    match verb {
        SessionVerb::Logout => verbs::login::log_out(session),
        SessionVerb::Whoami => verbs::login::who_am_i(session),
        SessionVerb::Apps(apps) => verbs::apps::list(apps, session),
        SessionVerb::Deploy(deploy) => verbs::deploy::deploy(&deploy, session),
        SessionVerb::Logs(logs) => verbs::logs::show(&logs, session),
        SessionVerb::App(verb) => verbs::app::run(verb, session),
        SessionVerb::Deployments(list) => verbs::deployments::list(&list, session),
        SessionVerb::Rollback(rollback) => verbs::deployments::roll_back(&rollback, session),
        SessionVerb::Cancel(cancel) => verbs::deployments::cancel(&cancel, session),
        SessionVerb::Restart(which) => verbs::run::restart(&which, session),
        SessionVerb::Stop(which) => verbs::run::stop(&which, session),
        SessionVerb::Open(which) => verbs::run::open(&which, session),
        SessionVerb::Env(verb) => verbs::env::run(verb, session),
        SessionVerb::Domains(verb) => verbs::domains::run(verb, session),
        SessionVerb::Previews(verb) => verbs::previews::run(verb, session),
        SessionVerb::WebhookSecret(arguments) => verbs::keys::webhook_secret(arguments, session),
        SessionVerb::GitRemote(arguments) => verbs::git_remote::run(&arguments, session),
        SessionVerb::DeployKey(arguments) => verbs::keys::deploy_key(arguments, session),
        SessionVerb::Extensions(extensions) => verbs::extensions::run(extensions, session),
        SessionVerb::Run(run) => verbs::extensions::run::run(run, session),
        SessionVerb::Org(verb) => verbs::org::run(verb, session),
        SessionVerb::Members(verb) => verbs::members::run(verb, session),
        SessionVerb::Invitations(invitations) => verbs::invitations::run(invitations.verb, session),
        SessionVerb::Tokens(verb) => verbs::tokens::run(verb, session),
        SessionVerb::Notifications(verb) => verbs::notifications::run(verb, session),
        SessionVerb::Cluster => verbs::cluster::show(session),
        SessionVerb::Password => verbs::password::change(session),
        SessionVerb::TwoFactor(verb) => verbs::two_factor::run(verb, session),
    }
}
