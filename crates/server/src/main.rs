#![doc = include_str!("../README.md")]

mod admin;
mod audit;
mod background;
mod backup;
mod cli;
mod config;
mod database;
mod front_proxy;
mod key;
mod proxy;
mod serve;
mod telemetry;
mod upgrade;
mod wiring;

use std::{error::Error, process::ExitCode};

use clap::Parser as _;

use self::{
    cli::{AdminVerb, Arguments, AuditVerb, BackupVerb, DatabaseVerb, KeyVerb, ProxyVerb, UpgradeVerb, Verb},
    config::Config,
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match Config::load(arguments.config.as_deref()) {
        Ok(config) => config,
        Err(problems) => {
            say(&format!("error: the configuration cannot be used\n{problems}"));
            return ExitCode::from(2);
        }
    };
    let outcome = match arguments.verb.unwrap_or(Verb::Serve) {
        Verb::Serve => serve::run(&config),
        Verb::Migrate => wiring::migrate(&config),
        Verb::Config => cli::print(&config.to_string()),
        Verb::Openapi => cli::print(&format!("{:#}\n", serde_json::json!(launchway_api::document()))),
        Verb::Proxy(ProxyVerb::Run) => proxy::run(&config),
        Verb::Proxy(ProxyVerb::Status) => proxy::status(&config),
        Verb::Proxy(ProxyVerb::Stop) => proxy::stop(&config),
        Verb::Proxy(ProxyVerb::Caddyfile) => proxy::caddyfile(&config),
        Verb::Audit(AuditVerb::Verify) => audit::verify(&config),
        Verb::Admin(AdminVerb::Create(admin)) => admin::create(&config, admin),
        Verb::Admin(AdminVerb::ResetPassword(reset)) => admin::reset_password(&config, reset),
        Verb::Backup(BackupVerb::Create(create)) => backup::create(&config, &create),
        Verb::Backup(BackupVerb::Verify(verify)) => backup::verify(&verify),
        Verb::Backup(BackupVerb::Restore(restore)) => backup::restore(&config, &restore),
        Verb::Database(DatabaseVerb::Move(to)) => database::move_to(&config, &to),
        Verb::Key(KeyVerb::Rotate) => key::rotate(&config),
        Verb::Upgrade(UpgradeVerb::Check) => upgrade::check(&config),
    };
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
