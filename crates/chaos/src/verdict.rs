//! Asking the verifier, which is a program of its own.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use launchway_verifier::figures::Figures;

use crate::{cluster::is_root, section::Section};

/// What the verifier is asked about.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) verifier: PathBuf,
    pub(crate) ledger: PathBuf,
    pub(crate) database: String,
    pub(crate) instance: Option<String>,
    pub(crate) until: Option<u128>,
    /// For how many seconds everything may still be coming to its end.
    pub(crate) at_rest: Option<u64>,
    /// A process whose mounts the verifier has to see.
    pub(crate) beside: Option<u32>,
}

impl Question {
    /// What the verifier found; an error is what it could not read.
    pub(crate) fn ask(&self) -> Result<Figures, String> {
        let mut options: Vec<(&str, OsString)> =
            vec![("--ledger", self.ledger.clone().into()), ("--database", self.database.clone().into())];
        options.extend(self.instance.iter().map(|instance| ("--instance", instance.into())));
        options.extend(self.until.iter().map(|until| ("--until", until.to_string().into())));
        options.extend(self.at_rest.iter().map(|seconds| ("--at-rest", seconds.to_string().into())));
        let mut command = match self.beside {
            Some(process) => entering(process),
            None => Command::new(&self.verifier),
        };
        if self.beside.is_some() {
            command.arg(&self.verifier);
        }
        for (name, value) in options {
            command.arg(name).arg(value);
        }
        let output = command.stdin(Stdio::null()).output().expect("the verifier can be started");
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{} ({error})", String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// The same about another ledger.
    pub(crate) fn with_ledger(&self, ledger: &Path) -> Self {
        Self { ledger: ledger.to_owned(), ..self.clone() }
    }
}

/// A command that runs another one where a process's mounts are.
fn entering(process: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &process.to_string(), "--mount"]);
    if !is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command
}

/// Tells the figures that every campaign has.
pub(crate) fn tell(section: &mut Section, figures: &Figures) {
    section.told("deployments accepted", figures.accepted);
    section.told("deployments in the database: succeeded", figures.succeeded);
    section.told("deployments in the database: failed", figures.failed);
    section.told("log lines shown", figures.lines_shown);
    section.never("accepted deployments lost", figures.lost);
    section.never("deployments and jobs not at their end", figures.not_terminal);
    section.never("shown log lines lost or changed", figures.lines_lost);
    section.never("logs with a gap", figures.gaps);
    for damage in &figures.damage {
        eprintln!("  damage: {damage}");
    }
    section.never("complaints of the database about itself", figures.damage.len());
}

/// Tells the figures about the engine.
pub(crate) fn tell_engine(section: &mut Section, figures: &Figures) {
    section.told("containers at the end", figures.containers);
    section.never("containers leaked", figures.leaked);
    section.never("live versions without a running container", figures.missing);
}
