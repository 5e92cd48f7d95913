//! `cargo xtask fuzz`: tries the language of extensions with inputs that nobody would write.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    command::FuzzOptions,
    failure::{Failure, Outcome},
    needs,
    workspace::{self, cargo, root},
};

/// What drives the targets, and the version that they were written for.
const DRIVER: &str = "cargo-fuzz";
const VERSION: &str = "0.13.1";
/// What is fuzzed, with the folders of examples to begin with.
const TARGETS: [(&str, &[&str]); 2] = [("definitions", &["catalog"]), ("templates", &[])];
/// As large as a definition may be, and a little more.
const LONGEST: u32 = 300_000;
/// How many seconds one input may take, in a build that watches every step. The limit of the
/// release build is a matter of `cargo xtask bench --only definitions`.
const SLOWEST: u32 = 10;

/// Runs each target for a while; fails when one finds something.
pub(crate) fn run(options: &FuzzOptions) -> Outcome {
    install()?;
    for (target, examples) in TARGETS {
        let corpus = root().join("fuzz/corpus").join(target);
        fs::create_dir_all(&corpus)
            .map_err(|error| Failure::because(format_args!("cannot make {}", corpus.display()), error))?;
        let mut folders = vec![corpus];
        folders.extend(examples.iter().map(|folder| root().join(folder)));
        workspace::run(&mut fuzz(target, &folders, options.seconds))?;
    }
    Ok(())
}

fn install() -> Outcome {
    // Finds an installation of another version, too, and leaves one of this version as it is.
    if needs::has_program(DRIVER) && version_of_driver()? == VERSION {
        return Ok(());
    }
    workspace::run(&mut cargo(&["install", DRIVER, "--version", VERSION, "--locked"]))
}

fn version_of_driver() -> Outcome<String> {
    let told = workspace::output(&mut cargo(&["fuzz", "--version"]))?;
    Ok(told.split_whitespace().last().unwrap_or_default().to_owned())
}

fn fuzz(target: &str, folders: &[PathBuf], seconds: u32) -> Command {
    let dictionary = root().join("fuzz").join(format!("{target}.dict"));
    let mut command = cargo(&["fuzz", "run", target]);
    command
        .args(folders.iter().map(PathBuf::as_path).map(Path::as_os_str))
        .arg("--")
        .args([
            format!("-max_total_time={seconds}"),
            format!("-timeout={SLOWEST}"),
            format!("-max_len={LONGEST}"),
            format!("-dict={}", dictionary.display()),
        ])
        // What watches the program is not part of the stable compiler, but works with it.
        .env("RUSTC_BOOTSTRAP", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_runs_for_as_long_as_was_asked_for() {
        let command = fuzz("templates", &[], 7);
        let line = workspace::shown(&command);
        assert!(line.starts_with("cargo fuzz run templates -- -max_total_time=7 "), "{line}");
    }

    #[test]
    fn every_target_is_there_with_its_words_and_its_examples() {
        for (target, examples) in TARGETS {
            assert!(root().join(format!("fuzz/fuzz_targets/{target}.rs")).is_file());
            assert!(root().join(format!("fuzz/{target}.dict")).is_file());
            assert!(examples.iter().all(|folder| root().join(folder).is_dir()));
        }
    }
}
