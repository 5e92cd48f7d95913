//! Schemathesis, which reads the document and calls its operations.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// The version that is installed if there is none.
const VERSION: &str = "schemathesis==4.32.5";
/// The program, and a folder for its files.
pub(crate) struct Tool {
    program: PathBuf,
    folder: PathBuf,
}

/// The results of a run.
pub(crate) struct Report {
    pub(crate) version: String,
    pub(crate) cases: u64,
    /// The failed checks, with the number of responses and the operations.
    pub(crate) failures: Vec<(String, u64)>,
    /// The operations, and the number of responses with each status.
    pub(crate) answers: BTreeMap<String, BTreeMap<u16, u64>>,
}

/// A run: the document, the base URL, the duration, and a filter of paths.
pub(crate) struct RunOptions<'a> {
    pub(crate) document: &'a str,
    pub(crate) base: &'a str,
    pub(crate) seconds: usize,
    pub(crate) examples: usize,
    pub(crate) only: &'a [&'a str],
}

impl Tool {
    /// Returns the program on the path, or installs one with `pip` into a folder of its own.
    pub(crate) fn find(folder: &Path) -> Self {
        fs::write(folder.join("launchway_hooks.py"), include_str!("hooks.py")).unwrap();
        let folder = folder.to_owned();
        if Command::new("schemathesis").arg("--version").output().is_ok_and(|output| output.status.success())
        {
            return Self { program: "schemathesis".into(), folder };
        }
        let environment = folder.join("environment");
        let run = |program: &Path, arguments: &[&str]| {
            let status =
                Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
            assert!(status.is_ok_and(|status| status.success()), "{} {arguments:?}", program.display());
        };
        run(Path::new("python3"), &["-m", "venv", environment.to_str().unwrap()]);
        run(&environment.join("bin/pip"), &["install", "--quiet", VERSION]);
        Self { program: environment.join("bin/schemathesis"), folder }
    }

    /// Runs it with these real values.
    pub(crate) fn run(&self, options: &RunOptions<'_>, real: &Value) -> Report {
        let [real_file, answers, report] =
            ["real.json", "answers.json", "report.json"].map(|name| self.folder.join(name));
        fs::write(&real_file, real.to_string()).unwrap();
        for file in [&answers, &report] {
            let _absent = fs::remove_file(file);
        }
        let path = env::join_paths([&self.folder]).unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(["run", options.document, "--url", options.base, "--checks", "all", "--no-color"])
            .args(["--phases", "examples,coverage,fuzzing,stateful"])
            // No text may contain a NUL character: `docs/api.md`.
            .args(["--generation-allow-x00", "false"])
            .args(["--mode", "all", "--max-examples", &options.examples.to_string()])
            .args(["--max-time", &options.seconds.to_string(), "--request-timeout", "30"])
            .args([
                "--generation-database",
                "none",
                "--suppress-health-check",
                "all",
                "--continue-on-failure",
            ])
            .args(["--output-truncate", "false", "--report-json-path"])
            .arg(&report)
            .args(options.only.iter().flat_map(|path| ["--include-path", path]))
            .current_dir(&self.folder)
            .env("PYTHONPATH", path)
            .env("SCHEMATHESIS_HOOKS", "launchway_hooks")
            .env("LAUNCHWAY_REAL", &real_file)
            .env("LAUNCHWAY_ANSWERS", &answers)
            .stdin(Stdio::null());
        let output = command.output().expect("schemathesis can be started");
        let reported = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            eprintln!("{reported}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let read = |file: &Path| -> Value {
            let text = fs::read_to_string(file)
                .unwrap_or_else(|error| panic!("{}: {error}\n{reported}", file.display()));
            serde_json::from_str(&text).unwrap()
        };
        Report::of(&read(&report), &read(&answers))
    }
}

impl Report {
    fn of(report: &Value, answers: &Value) -> Self {
        let count = |value: &Value| value.as_u64().unwrap_or_default();
        let groups = |name: &str| {
            let groups = report[name].as_array().into_iter().flatten();
            groups.map(|group| {
                let what = format!("{} {} {}", group["type"], group["title"], group["operations"]);
                (what, count(&group["count"]))
            })
        };
        let statuses = |statuses: &Value| {
            let statuses = statuses.as_object().into_iter().flatten();
            statuses.filter_map(|(status, times)| Some((status.parse().ok()?, count(times)))).collect()
        };
        let answers = answers.as_object().into_iter().flatten();
        Self {
            version: report["schemathesis_version"].as_str().unwrap_or("unknown").to_owned(),
            cases: count(&report["test_cases"]["generated"]),
            failures: groups("failures").chain(groups("errors")).collect(),
            answers: answers.map(|(operation, counts)| (operation.clone(), statuses(counts))).collect(),
        }
    }

    /// Returns the number of failed responses of a check whose name contains these words.
    pub(crate) fn wrong(&self, words: &str) -> u64 {
        self.failures.iter().filter(|(what, _)| what.contains(words)).map(|(_, count)| count).sum()
    }

    /// Returns the number of responses with these statuses.
    pub(crate) fn answered(&self, statuses: std::ops::Range<u16>) -> u64 {
        self.answers.values().flat_map(|counts| counts.range(statuses.clone())).map(|(_, count)| count).sum()
    }

    /// Returns whether an operation succeeded at least once.
    pub(crate) fn has_succeeded(&self, operation: &str) -> bool {
        self.answers.get(operation).is_some_and(|counts| counts.contains_key(&200))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_read() {
        let report = json!({
            "schemathesis_version": "4", "test_cases": {"generated": 7},
            "failures": [{"type": "ServerError", "title": "Server error", "count": 3, "operations": ["GET /a"]}],
            "errors": [{"title": "Network Error", "count": 1}],
        });
        let report = Report::of(&report, &json!({"GET /a": {"200": 4, "500": 3}, "GET /b": {"404": 1}}));
        assert_eq!((report.cases, report.wrong(""), report.wrong("Server")), (7, 4, 3));
        assert_eq!(report.answered(500..600), 3);
        assert!(report.has_succeeded("GET /a") && !report.has_succeeded("GET /b"));
    }
}
