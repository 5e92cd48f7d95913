//! A service with a store and a host of its own, which crashes in the middle of every step.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// The program, and its folder.
struct Outsider(TempDir);

impl Outsider {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn command(&self, action: &str) -> Command {
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().and_then(Path::parent).unwrap().join("examples/outsider");
        let mut command = Command::new(program);
        command.arg(self.0.path()).arg(action);
        command
    }

    /// Carries out an action, and returns the recorded states of the application and of its newest deployment.
    fn run(&self, action: &str) -> String {
        let output = self.command(action).output().unwrap();
        assert!(output.status.success(), "{action}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Carries out an action that crashes at `step`. On a busy machine, the program may end before it gets there; the
    /// next run goes on.
    fn crash(&self, action: &str, step: &str) {
        let crashes =
            |action| self.command(action).env("ABORT_AT", step).status().unwrap().signal() == Some(6);
        let has_crashed = crashes(action) || (0..20).any(|_| crashes("settle"));
        assert!(has_crashed, "{action} did not reach {step}: {}", self.records());
    }

    /// Carries out an action, and lets the program go on until the states and the number of processes are as expected.
    fn expect(&self, action: &str, expected: (&str, usize), case: &str) {
        let mut found = (self.run(action), self.processes().len());
        for _ in 0..20 {
            if (found.0.as_str(), found.1) == expected {
                return;
            }
            found = (self.run("settle"), self.processes().len());
        }
        panic!("{case} ended as {found:?}: {}", self.records());
    }

    /// Returns the newest records, for the message of a test that fails.
    fn records(&self) -> String {
        let records = fs::read_to_string(self.0.path().join("records")).unwrap_or_default();
        records.lines().rev().take(12).collect::<Vec<_>>().join("\n")
    }

    /// Returns the processes that were started in the folder and still run.
    fn processes(&self) -> Vec<PathBuf> {
        let folder = self.0.path().display().to_string();
        let is_ours = |process: &PathBuf| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&folder)
        };
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        all.filter(|path| path.file_name().unwrap().to_string_lossy().parse::<u32>().is_ok())
            .filter(is_ours)
            .collect()
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        for process in self.processes() {
            let pid = process.file_name().unwrap().to_owned();
            Command::new("kill").arg("-9").arg(pid).status().unwrap();
        }
    }
}

#[test]
fn the_program_has_at_most_150_lines_of_its_own() {
    let source = include_str!("../examples/outsider/main.rs");
    let is_own = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//") && !line.contains("crash")
    };
    let own = source.lines().filter(is_own).count();
    assert!(own <= 150, "{own} lines");
}

#[test]
fn versions_are_deployed_rolled_back_restarted_and_stopped() {
    let service = Outsider::new();
    for (action, states, processes) in [
        ("settle", "running deployed", 1),
        ("web:2", "running deployed", 1),
        // The version before stays live.
        ("broken:1", "running failed", 1),
        ("cancel", "running cancelled", 1),
        ("rollback", "running deployed", 1),
        ("restart", "running deployed", 1),
        ("stop", "stopped deployed", 0),
        ("restart", "running deployed", 1),
    ] {
        service.expect(action, (states, processes), action);
    }
}

/// Lets the program deploy, crash in the middle of an action, and start again; one case for each thread, because
/// they mostly wait. Afterwards, the states and the number of processes are as expected.
fn crashes(cases: &[(&str, &str)], expected: (&str, usize)) {
    std::thread::scope(|scope| {
        for (action, step) in cases {
            scope.spawn(move || {
                let service = Outsider::new();
                for action in ["settle", "web:2"] {
                    service.expect(action, ("running deployed", 1), action);
                }
                service.crash(action, step);
                service.expect("settle", expected, &format!("{action}, {step}"));
            });
        }
    });
}

#[test]
fn a_crash_in_any_step_of_a_deployment_leaves_one_version() {
    let steps = ["store", "stored", "start", "started", "route", "end", "ended"];
    crashes(&steps.map(|step| ("web:3", step)), ("running deployed", 1));
}

#[test]
fn a_crash_in_any_step_of_a_rollback_leaves_one_version() {
    let steps = ["start", "started", "route", "end", "ended"];
    crashes(&steps.map(|step| ("rollback", step)), ("running deployed", 1));
}

#[test]
fn a_crash_in_any_step_of_a_restart_leaves_one_version() {
    let steps = ["start", "started", "route", "end", "ended"];
    crashes(&steps.map(|step| ("restart", step)), ("running deployed", 1));
}

#[test]
fn a_crash_in_any_step_of_a_stop_leaves_no_version() {
    crashes(&["route to nothing", "end", "ended"].map(|step| ("stop", step)), ("stopped deployed", 0));
}
