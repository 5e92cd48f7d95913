//! `cargo xtask fuzz`: fuzzes the parsers of untrusted input.
//!
//! It runs the targets of `fuzz/fuzz_targets` one after the other, a minute each;
//! `cargo xtask fuzz logs --seconds 300` runs one for longer. Each target checks properties that hold for
//! any input:
//!
//! | target | input | property |
//! |---|---|---|
//! | `definitions` | definitions of extensions | problems are in order; no step leaves its workspace; a shell script does not depend on values |
//! | `templates` | templates of steps | each placeholder is filled once, and no value is parsed again |
//! | `sources` | repositories, branches, images, hosts, paths | an accepted value parses to itself, is no option, has no control characters, and names nothing else |
//! | `receivers` | addresses of webhooks, mail servers and people | the same; an IP address is never accepted as a name, in any spelling |
//! | `webhooks` | deliveries of every code host | a valid signature is accepted, a changed byte is detected, a form equals its text |
//! | `logs` | output of programs, with secrets | lines are bounded, contain no secret and nothing invisible, and do not depend on how the output was split |
//! | `dockerfiles` | Dockerfiles and triggers of base images | a rendered tree parses to itself; an accepted one has plain options, local sources and no image id |
//! | `line_ids` | ids of log lines | an id names a position only in its own log |
//!
//! A target is a file there, a `[[bin]]` in `fuzz/Cargo.toml`, words in `fuzz/<target>.dict`, optional
//! examples in `fuzz/examples/<target>`, and a row in `TARGETS`. Interesting inputs stay in `fuzz/corpus`,
//! which is not part of the repository. A finding becomes a test beside the code that it concerns.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use fs_err as fs;

use crate::{
    command::FuzzOptions,
    install,
    workspace::{self, cargo, root},
};

/// The version of `cargo fuzz` that the targets were written for.
const VERSION: &str = "0.13.1";
/// The fuzz targets.
pub(crate) const TARGETS: [Target; 8] = [
    Target { name: "definitions", examples: &["catalog"], longest: 300_000 },
    Target { name: "templates", examples: &[], longest: 300_000 },
    Target { name: "sources", examples: &["fuzz/examples/sources"], longest: 4096 },
    Target { name: "receivers", examples: &["fuzz/examples/receivers"], longest: 4096 },
    Target { name: "webhooks", examples: &["fuzz/examples/webhooks"], longest: 16_384 },
    Target { name: "logs", examples: &["fuzz/examples/logs"], longest: 4096 },
    Target { name: "dockerfiles", examples: &["fuzz/examples/dockerfiles"], longest: 4096 },
    Target { name: "line_ids", examples: &[], longest: 256 },
];

/// A parser of untrusted input.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Folders with the initial corpus.
    examples: &'static [&'static str],
    /// The largest input in bytes: slightly more than it accepts.
    longest: u32,
}

/// The timeout of one input in seconds, in an instrumented build. The limit of the release build is checked
/// by `cargo xtask bench --only definitions`.
const SLOWEST: u32 = 10;

/// Runs the targets one after the other, for a given time; fails when one finds something.
pub(crate) fn run(options: &FuzzOptions) -> Result<()> {
    install::ensure_subcommand("fuzz", VERSION)?;
    let is_wanted = |target: &&Target| {
        options.targets.is_empty() || options.targets.iter().any(|name| name == target.name)
    };
    for target in TARGETS.iter().filter(is_wanted) {
        let corpus = root().join("fuzz/corpus").join(target.name);
        fs::create_dir_all(&corpus)?;
        let mut folders = vec![corpus];
        folders.extend(target.examples.iter().map(|folder| root().join(folder)));
        workspace::run(&mut fuzz(target, &folders, options.seconds))?;
    }
    Ok(())
}

fn fuzz(target: &Target, folders: &[PathBuf], seconds: u32) -> Command {
    let dictionary = root().join("fuzz").join(format!("{}.dict", target.name));
    let mut command = cargo(&format!("fuzz run {}", target.name));
    command
        .args(folders)
        .arg("--")
        .args([
            format!("-max_total_time={seconds}"),
            format!("-timeout={SLOWEST}"),
            format!("-max_len={}", target.longest),
            format!("-dict={}", dictionary.display()),
        ])
        // The sanitizer is not part of the stable compiler, but works with it.
        .env("RUSTC_BOOTSTRAP", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_runs_for_as_long_as_was_asked_for() {
        let command = fuzz(&TARGETS[1], &[], 7);
        let line = workspace::shown(&command);
        assert!(line.starts_with("cargo fuzz run templates -- -max_total_time=7 "), "{line}");
        assert!(line.contains(" -max_len=300000 "), "{line}");
    }

    #[test]
    fn every_target_is_there_with_its_words_and_its_examples() {
        for Target { name, examples, .. } in TARGETS {
            assert!(root().join(format!("fuzz/{name}.dict")).is_file());
            assert!(examples.iter().all(|folder| root().join(folder).is_dir()));
        }
        let files = fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
        let mut there: Vec<_> =
            files.map(|file| file.unwrap().path().file_stem().unwrap().to_owned()).collect();
        let mut named: Vec<std::ffi::OsString> = TARGETS.iter().map(|target| target.name.into()).collect();
        there.sort();
        named.sort();
        assert_eq!(there, named);
    }
}
