//! The project's own commands: `cargo xtask test`, `bench`, `fuzz`, `chaos` and `package`.
//!
//! **Invariant:** xtask has no dependencies, so that it builds quickly on a fresh machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on both")]

mod bench;
mod chaos;
mod command;
mod engine;
mod failure;
mod fuzz;
mod install;
mod invariants;
mod needs;
mod package;
mod postgres;
mod scratch;
mod test;
mod workspace;

use std::process::ExitCode;

use crate::command::{Command, USAGE};

fn main() -> ExitCode {
    let outcome = match Command::parse(std::env::args().skip(1)) {
        Ok(Command::Test(options)) => test::run(&options),
        Ok(Command::Bench(options)) => bench::run(&options),
        Ok(Command::Fuzz(options)) => fuzz::run(&options),
        Ok(Command::Chaos(options)) => chaos::run(&options),
        Ok(Command::Package) => package::run(),
        Ok(Command::Invariants) => invariants::run(),
        Ok(Command::Help) => {
            println!("{USAGE}");
            Ok(())
        }
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
