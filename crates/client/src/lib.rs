#![doc = include_str!("../README.md")]

mod addresses;
mod cli;
mod contexts;
mod failure;
mod following;
mod manifest;
mod naming;
mod progress;
mod prompt;
mod proposal;
mod records;
mod repository;
mod screen;
mod server;
mod session;
mod table;
mod verbs;
mod watching;
mod when;

use std::process::ExitCode;

pub use self::cli::{Options, SessionVerb, Verb};
use self::{failure::Outcome, screen::Screen, session::Session};

/// The environment variables that the client reads; a server ignores them.
pub const VARIABLES: &[&str] = &[
    "LAUNCHWAY_CONTEXT",
    "LAUNCHWAY_CONTEXTS_FILE",
    "LAUNCHWAY_ORGANIZATION",
    "LAUNCHWAY_TOKEN",
    "LAUNCHWAY_URL",
];

/// Carries a verb out, and says what went wrong if something did.
pub fn run(verb: Verb, options: &Options) -> ExitCode {
    let screen = Screen::new(options.output);
    match carry_out(verb, options, &screen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.complain(&failure);
            failure.exit_code()
        }
    }
}

fn carry_out(verb: Verb, options: &Options, screen: &Screen) -> Outcome {
    match verb {
        Verb::Login(login) => verbs::login::log_in(login, options, screen),
        Verb::Context(verb) => verbs::context::run(verb, screen),
        Verb::Init(init) => verbs::init::init(&init, screen),
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
        SessionVerb::Restart(which) => verbs::running::restart(&which, session),
        SessionVerb::Stop(which) => verbs::running::stop(&which, session),
        SessionVerb::Open(which) => verbs::running::open(&which, session),
    }
}
