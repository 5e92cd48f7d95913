#![doc = include_str!("../README.md")]

mod admin;
mod audit;
mod background;
mod cli;
mod config;
mod front_proxy;
mod help;
mod key;
mod manual;
mod proxy;
mod serve;
mod telemetry;
mod wiring;

use std::{error::Error, path::Path, process::ExitCode};

use clap::Parser as _;

use self::{
    cli::{AdminVerb, Arguments, Audit, AuditVerb, ProxyVerb, ServerVerb, Verb},
    config::Config,
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let file = arguments.config.as_deref();
    match arguments.verb {
        Some(Verb::Client(verb)) => launchway_client::run(verb, &arguments.client),
        Some(Verb::Audit(Audit { verb: None, filter })) => {
            launchway_client::show_audit_trail(filter, &arguments.client)
        }
        Some(Verb::Audit(Audit { verb: Some(AuditVerb::Verify), .. })) => configured(file, audit::verify),
        Some(Verb::Server(verb)) => configured(file, |config| run(verb, config)),
        Some(Verb::Manual(verb)) => ended(manual::run(verb)),
        None => configured(file, serve::run),
    }
}

/// Does what needs the server's configuration.
fn configured(file: Option<&Path>, act: impl FnOnce(&Config) -> Result<(), Box<dyn Error>>) -> ExitCode {
    match Config::load(file) {
        Ok(config) => ended(act(&config)),
        Err(problems) => {
            say(&format!("error: the configuration cannot be used\n{problems}"));
            ExitCode::from(2)
        }
    }
}

fn run(verb: ServerVerb, config: &Config) -> Result<(), Box<dyn Error>> {
    match verb {
        ServerVerb::Serve => serve::run(config),
        ServerVerb::Migrate => wiring::migrate(config),
        ServerVerb::Config => cli::print(&config.to_string()),
        ServerVerb::Openapi => cli::print(&format!("{:#}\n", serde_json::json!(launchway_api::document()))),
        ServerVerb::Proxy(ProxyVerb::Run) => proxy::run(config),
        ServerVerb::Proxy(ProxyVerb::Status) => proxy::status(config),
        ServerVerb::Proxy(ProxyVerb::Stop) => proxy::stop(config),
        ServerVerb::Proxy(ProxyVerb::Caddyfile) => proxy::caddyfile(config),
        ServerVerb::Admin(AdminVerb::Create(admin)) => admin::create(config, admin),
        ServerVerb::Admin(AdminVerb::ResetPassword(reset)) => admin::reset_password(config, reset),
    }
}

fn ended(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {}", chain(&*error)));
            ExitCode::FAILURE
        }
    }
}

/// An error and what caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Words for the person at the terminal; data goes to standard output instead.
#[expect(clippy::print_stderr, reason = "this is the one place that speaks to the terminal")]
fn say(words: &str) {
    eprintln!("{words}");
}
