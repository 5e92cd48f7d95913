//! Completions and manual pages, generated from the command line.

use std::{error::Error, fs, path::Path};

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::cli::{Arguments, ManualVerb, print};

/// Prints completions for a shell, or manual pages.
pub(crate) fn run(verb: ManualVerb) -> Result<(), Box<dyn Error>> {
    match verb {
        ManualVerb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "launchway", &mut script);
            print(&String::from_utf8(script)?)
        }
        ManualVerb::Man { dir: None } => {
            let mut page = Vec::new();
            Man::new(Arguments::command()).render(&mut page)?;
            print(&String::from_utf8(page)?)
        }
        ManualVerb::Man { dir: Some(dir) } => write_pages(&dir),
    }
}

/// Writes one page for every command: `launchway-env-set.1`.
fn write_pages(dir: &Path) -> Result<(), Box<dyn Error>> {
    let cannot = |error| format!("{} cannot be written: {error}", dir.display());
    fs::create_dir_all(dir).map_err(cannot)?;
    clap_mangen::generate_to(Arguments::command(), dir).map_err(cannot)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        io::Write as _,
        process::{Command, Stdio},
    };

    use clap::ValueEnum as _;
    use clap_complete::Shell;

    use super::*;

    /// Returns every command with its full name: `launchway-env-set`.
    fn commands() -> Vec<(String, clap::Command)> {
        fn below(name: &str, command: &clap::Command, all: &mut Vec<(String, clap::Command)>) {
            for sub in command.get_subcommands() {
                below(&format!("{name}-{}", sub.get_name()), sub, all);
            }
            all.push((name.to_owned(), command.clone()));
        }
        let mut all = Vec::new();
        below("launchway", &Arguments::command(), &mut all);
        all
    }

    #[test]
    fn the_command_line_makes_sense() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_and_argument_has_help_without_full_stop() {
        let mut problems = Vec::new();
        let mut check = |what: String, help: Option<String>| match help {
            None => problems.push(format!("{what} has no help")),
            Some(help) if help.ends_with('.') => problems.push(format!("{what} ends with a full stop")),
            Some(_) => {}
        };
        for (name, command) in commands() {
            if name != "launchway" {
                check(name.clone(), command.get_about().map(ToString::to_string));
            }
            for argument in command.get_arguments() {
                check(format!("{name} {}", argument.get_id()), argument.get_help().map(ToString::to_string));
            }
        }
        assert!(problems.is_empty(), "{problems:#?}");
    }

    #[test]
    fn completions_exist_for_every_shell_and_parse_in_bash() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "launchway", &mut script);
            let text = String::from_utf8(script).unwrap();
            assert!(text.contains("two-factor") && text.contains("import"), "{shell}");
            if *shell == Shell::Bash {
                let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
                bash.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
                assert!(bash.wait().unwrap().success());
            }
        }
    }

    #[test]
    fn there_is_a_page_for_every_verb() {
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join("man1");
        write_pages(&pages).unwrap();
        let written: BTreeSet<String> = fs::read_dir(&pages)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let expected: BTreeSet<String> =
            commands().into_iter().map(|(name, _)| format!("{name}.1")).collect();
        assert_eq!(written, expected);
        let page = fs::read_to_string(pages.join("launchway-env-set.1")).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains("no\\-deploy"), "{page}");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(write_pages(&file).unwrap_err().to_string().contains("cannot be written"));
    }
}
