#![doc = include_str!("../README.md")]

mod admin;
mod assembly;
mod audit;
mod background;
mod backup;
mod cli;
mod config;
mod database;
mod doctor;
mod engine;
mod front_proxy;
mod help;
mod installation;
mod key;
mod manual;
mod node;
mod proxy;
mod replicas;
mod serve;
mod setup_token;
mod telemetry;
mod upgrade;

use std::{error::Error, path::Path, process::ExitCode};

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};
use launchway_domain::error_chain::ErrorChain;

use self::{
    cli::{
        AdminVerb, Arguments, Audit, AuditVerb, BackupVerb, DatabaseVerb, KeyVerb, NodeVerb, ProxyVerb,
        ServerVerb, UpgradeVerb, Verb,
    },
    config::{Config, Problems},
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let file = arguments.config.as_deref();
    let is_serving = matches!(arguments.verb, None | Some(Verb::Server(ServerVerb::Serve(_))));
    if arguments.adopt && !is_serving {
        Arguments::command()
            .error(ErrorKind::ArgumentConflict, "--adopt can be used only with `launchway serve`")
            .exit();
    }
    match arguments.verb {
        Some(Verb::Client(verb)) => launchway_client::run(verb, &arguments.client),
        Some(Verb::Audit(Audit { verb: None, filter })) => {
            launchway_client::show_audit_trail(filter, &arguments.client)
        }
        Some(Verb::Audit(Audit { verb: Some(AuditVerb::Verify), .. })) => configured(file, audit::verify),
        Some(Verb::Server(ServerVerb::Proxy(
            verb @ (ProxyVerb::Run | ProxyVerb::Status | ProxyVerb::Stop),
        ))) => configured_by(Config::load_for_proxy(file, matches!(verb, ProxyVerb::Run)), |config| {
            run(ServerVerb::Proxy(verb), config, arguments.adopt)
        }),
        // A worker has no server, and so no configuration.
        Some(Verb::Server(ServerVerb::Node(NodeVerb::Prepare(prepare)))) => ended(node::prepare(&prepare)),
        Some(Verb::Server(verb)) => configured(file, |config| run(verb, config, arguments.adopt)),
        Some(Verb::Manual(verb)) => ended(manual::run(verb)),
        None => configured(file, |config| serve::run(config, arguments.adopt)),
    }
}

/// Runs a command with the configuration of the server.
fn configured(file: Option<&Path>, act: impl FnOnce(&Config) -> Result<(), Box<dyn Error>>) -> ExitCode {
    configured_by(Config::load(file), act)
}

fn configured_by(
    loaded: Result<Config, Problems>,
    act: impl FnOnce(&Config) -> Result<(), Box<dyn Error>>,
) -> ExitCode {
    match loaded {
        Ok(config) => ended(act(&config)),
        Err(problems) => {
            print_line(&format!("error: the configuration is invalid\n{problems}"));
            ExitCode::from(2)
        }
    }
}

fn run(verb: ServerVerb, config: &Config, adopt: bool) -> Result<(), Box<dyn Error>> {
    match verb {
        ServerVerb::Serve(serve) => serve::run(config, adopt || serve.adopt),
        ServerVerb::Doctor => doctor::run(config),
        ServerVerb::Migrate => assembly::migrate(config),
        ServerVerb::Config => cli::print(&config.to_string()),
        ServerVerb::Openapi => cli::print(&format!("{:#}\n", serde_json::json!(launchway_api::document()))),
        ServerVerb::Proxy(ProxyVerb::Run) => proxy::run(config),
        ServerVerb::Proxy(ProxyVerb::Status) => proxy::status(config),
        ServerVerb::Proxy(ProxyVerb::Stop) => proxy::stop(config),
        ServerVerb::Proxy(ProxyVerb::Caddyfile) => proxy::caddyfile(config),
        ServerVerb::Nodes => node::list(config),
        ServerVerb::Node(NodeVerb::Prepare(prepare)) => node::prepare(&prepare),
        ServerVerb::Node(NodeVerb::Drain(node)) => node::drain(config, &node.name),
        ServerVerb::Node(NodeVerb::Activate(node)) => node::activate(config, &node.name),
        ServerVerb::Node(NodeVerb::Forget(node)) => node::forget(config, &node.name),
        ServerVerb::Admin(AdminVerb::Create(admin)) => admin::create(config, admin),
        ServerVerb::Admin(AdminVerb::ResetPassword(reset)) => admin::reset_password(config, reset),
        ServerVerb::Backup(BackupVerb::Create(create)) => backup::create(config, &create),
        ServerVerb::Backup(BackupVerb::Verify(verify)) => backup::verify(&verify),
        ServerVerb::Backup(BackupVerb::Restore(restore)) => backup::restore(config, &restore),
        ServerVerb::Database(DatabaseVerb::Move(to)) => database::move_to(config, &to),
        ServerVerb::Key(KeyVerb::Rotate) => key::rotate(config),
        ServerVerb::Upgrade(UpgradeVerb::Check) => upgrade::check(config),
    }
}

fn ended(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(&format!("error: {}", ErrorChain(&*error)));
            ExitCode::FAILURE
        }
    }
}

/// Prints a message for the user to standard error; data goes to standard output instead.
#[expect(clippy::print_stderr, reason = "this is the one place that speaks to the terminal")]
fn print_line(words: &str) {
    eprintln!("{words}");
}
