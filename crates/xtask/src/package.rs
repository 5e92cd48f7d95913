//! `cargo xtask package`: a Debian package of the `dist` build, with its manual and completions.

use std::{io::ErrorKind, path::Path, process::Command};

use anyhow::Result;
use fs_err::{self as fs, File};

use crate::{
    install,
    workspace::{self, cargo},
};

/// The version of `cargo deb` for which the package's table was written.
const VERSION: &str = "3.8.0";

/// The file of each shell's completions. The package's table names them, too.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "launchway"), ("zsh", "_launchway"), ("fish", "launchway.fish")];

/// Builds, generates the manual and the completions, and packs everything.
pub(crate) fn run() -> Result<()> {
    install::ensure_subcommand("deb", VERSION)?;
    workspace::run(&mut cargo("build --profile dist -p launchway"))?;
    let folder = workspace::dist("about");
    fs::remove_dir_all(&folder).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    write_about(&workspace::dist("launchway"), &folder)?;
    workspace::run(&mut cargo("deb -p launchway --no-build --profile dist"))
}

/// Runs `program` to write its manual and completions into `folder`.
fn write_about(program: &Path, folder: &Path) -> Result<()> {
    for (shell, name) in COMPLETIONS {
        let folder = folder.join(shell);
        fs::create_dir_all(&folder)?;
        let (file, _) = File::create(folder.join(name))?.into_parts();
        workspace::run(Command::new(program).args(["completions", shell]).stdout(file))?;
    }
    workspace::run(Command::new(program).args(["man", "--dir"]).arg(folder.join("man")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn everything_that_the_program_writes_is_in_the_package() {
        let table = fs::read_to_string(root().join("crates/server/Cargo.toml")).unwrap();
        let completions = COMPLETIONS.map(|(shell, name)| format!("{shell}/{name}"));
        for file in completions.iter().map(String::as_str).chain(["man/*.1"]) {
            assert!(table.contains(&format!("\"target/release/about/{file}\"")), "{file}");
        }
    }
}
