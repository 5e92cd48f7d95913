//! Runs the verifier, which is a separate program.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use launchway_verifier::{
    figures::Figures,
    ledger::{Fact, Ledger},
};

use crate::{cluster::is_root, harness::Harness, section::Section};

/// A question to the verifier.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) verifier: PathBuf,
    pub(crate) ledger: PathBuf,
    pub(crate) database: String,
    pub(crate) instance: Option<String>,
    pub(crate) until: Option<u128>,
    /// The number of seconds within which everything must finish.
    pub(crate) at_rest: Option<u64>,
    /// A process whose mounts the verifier has to see.
    pub(crate) beside: Option<u32>,
}

impl Question {
    /// Runs the verifier; the error names what it could not read.
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
}

/// Returns a command that runs another one in the mount namespace of a process.
fn entering(process: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &process.to_string(), "--mount"]);
    if !is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command
}

/// Reports the figures that every campaign has.
pub(crate) fn add_figures(section: &mut Section, figures: &Figures) {
    section.note("deployments accepted", figures.accepted);
    section.note("deployments in the database: succeeded", figures.succeeded);
    section.note("deployments in the database: failed", figures.failed);
    section.note("log lines shown", figures.lines_shown);
    section.never("accepted deployments lost", figures.lost);
    section.never("deployments and jobs not at their end", figures.not_terminal);
    section.never("shown log lines lost or changed", figures.lines_lost);
    section.never("logs with a gap", figures.gaps);
    for damage in &figures.damage {
        eprintln!("  damage: {damage}");
    }
    section.never("integrity errors of the database", figures.damage.len());
}

/// Reports the figures about the engine.
pub(crate) fn report_engine(section: &mut Section, figures: &Figures) {
    section.note("containers at the end", figures.containers);
    section.never("containers leaked", figures.leaked);
    section.never("live versions without a running container", figures.missing);
}

/// Adds an acknowledgement and a log line that never existed: each must be found as lost.
pub(crate) fn add_false_records(section: &mut Section, harness: &Harness) {
    add_false_records_to(section, &harness.question(), harness.folder(), &harness.applications[0]);
}

/// The same for an installation by its question, with `folder` for a second ledger.
pub(crate) fn add_false_records_to(
    section: &mut Section,
    question: &Question,
    folder: &Path,
    application: &str,
) {
    let ledger = folder.join("invented");
    fs::copy(&question.ledger, &ledger).unwrap();
    let book = Ledger::open(&ledger).unwrap();
    let application = application.to_owned();
    let line = "01980000-0000-7000-8000-00ffffffffff".to_owned();
    book.note(Fact::Accepted { deployment: line.clone() }).unwrap();
    book.note(Fact::Shown { application, line, text: "never shown".to_owned() }).unwrap();
    let question = Question { ledger, ..question.clone() };
    let figures = question.ask().expect("the verifier can read everything");
    section.control("one invented acknowledgement, found as lost", usize::from(figures.lost == 1));
    section.control("one invented log line, found as lost", usize::from(figures.lines_lost == 1));
}
