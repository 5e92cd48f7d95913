//! The project's own commands: `cargo xtask test`, `bench`, `fuzz`, `chaos` and `package`.
//!
//! **Invariant:** xtask has few and small dependencies, so that it builds in seconds on a fresh machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on both")]

mod bench;
mod chaos;
mod command;
mod engine;
mod fuzz;
mod install;
mod invariants;
mod machine;
mod needs;
mod network;
mod package;
mod postgres;
mod scratch;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

use crate::command::Command;

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Test(options) => test::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Chaos(options) => chaos::run(&options),
        Command::Package => package::run(),
        Command::Invariants => invariants::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
