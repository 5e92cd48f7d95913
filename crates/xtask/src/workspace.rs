//! The location of the workspace, and its commands.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// Returns the folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own)
}

/// Returns a file of the build for packages, by its path below `target/dist`.
pub(crate) fn dist(file: &str) -> PathBuf {
    target().join("dist").join(file)
}

/// Returns a file of the debug build, by its path below `target/debug`.
pub(crate) fn debug(file: &str) -> PathBuf {
    target().join("debug").join(file)
}

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    root().join(target)
}

/// Returns a command of the cargo that runs us, with these words as arguments, in the workspace's root.
pub(crate) fn cargo(arguments: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments.split_whitespace()).current_dir(root());
    // The variables that cargo set for our own package: build scripts that depend on them (ring's does)
    // would run again, and most of the tree with them, whenever cargo is called without xtask in between.
    let about_us =
        |name: &OsStr| name.to_str().is_some_and(|name| OWN.iter().any(|own| name.starts_with(own)));
    for (name, _) in env::vars_os().filter(|(name, _)| about_us(name)) {
        command.env_remove(name);
    }
    command
}

/// The prefixes of the names of those variables.
const OWN: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Runs a command on our own terminal, to its end.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = shown(command);
    let status = command.status().with_context(|| format!("`{line}` did not start"))?;
    ensure!(status.success(), "`{line}` failed ({status})");
    Ok(())
}

/// Runs a command quietly and returns its stdout.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().with_context(|| format!("`{line}` did not start"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    ensure!(status.success(), "`{line}` failed ({status}):\n{}", text(&[stdout, stderr].concat()));
    Ok(text(&stdout))
}

/// Formats the command as it would be typed.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_the_folder_of_its_program() {
        let mut command = Command::new("/opt/rust/bin/cargo");
        command.args(["fmt", "--all"]);
        assert_eq!(shown(&command), "cargo fmt --all");
    }

    #[test]
    fn a_failing_command_is_named_with_what_it_said() {
        let failure = output(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"])).unwrap_err();
        assert!(failure.to_string().contains("exit status: 3"), "{failure}");
        assert!(failure.to_string().contains("no such luck"), "{failure}");
    }
}
