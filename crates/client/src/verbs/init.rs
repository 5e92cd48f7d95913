//! Creates the `launchway.toml` of a repository.

use std::{env, path::Path};

use clap::Args;
use serde_json::{Value, json};

use crate::{
    failure::{Failure, Kind, Outcome, failed},
    manifest::{self, Manifest},
    prompt,
    proposal::{self, Proposal},
    repository::Repository,
    screen::Screen,
};

const BUILD_PACKS: &[&str] = &["dockerfile", "docker-compose", "image", "static", "nixpacks"];

#[derive(Args, Debug)]
pub struct Init {
    /// Accept the detected values without asking
    #[arg(long, short)]
    yes: bool,
    /// Overwrite an existing launchway.toml
    #[arg(long)]
    force: bool,
}

/// Writes `launchway.toml` from the content of the repository and the user's answers.
pub(crate) fn init(init: &Init, screen: &Screen) -> Outcome {
    let repository = Repository::here()?;
    let path = manifest::path(repository.as_ref());
    // Before the user answers questions for nothing.
    if path.exists() && !init.force {
        return Err(manifest::is_there(&path));
    }
    let made = propose(repository.as_ref(), screen, init.yes)?;
    made.write(repository.as_ref(), init.force)?;
    if screen.is_for_programs() {
        return screen.json(&made.json());
    }
    screen.remark(&format!("Created {}. `launchway deploy` deploys it", path.display()));
    Ok(())
}

/// Returns the manifest from the content of the repository or the current folder, and the user's answers. Without a remote
/// it names no repository, so that the files are uploaded.
pub(crate) fn propose(repository: Option<&Repository>, screen: &Screen, yes: bool) -> Outcome<Manifest> {
    let place = env::current_dir().map_err(failed("the current folder cannot be read"))?;
    let root = repository.map_or(place.as_path(), Repository::root);
    let found = proposal::of(root, &place);
    let asked = Asked { screen, yes };
    if found.is_none() && (yes || !screen.is_interactive()) {
        return Err(Failure::new(Kind::Failed, "cannot detect how to build the application")
            .hint("add a Dockerfile, a compose file, an index.html, or the files of a supported language"));
    }
    let name = asked.checked("Name", &name_of(root), name)?;
    let pack = found.as_ref().map_or("dockerfile", |found| found.build_pack);
    let pack = asked.checked("Build pack", pack, build_pack)?;
    let origin = repository.and_then(Repository::origin);
    let address = match (&origin, pack.as_str()) {
        (Some(origin), _) => asked.checked("Repository", &origin.address, something)?,
        (None, "image") => asked.checked("Repository", "", something)?,
        (None, _) => String::new(),
    };
    if let Some(remark) = origin.filter(|origin| address == origin.address).and_then(|origin| origin.remark) {
        screen.remark(&format!("  {remark}"));
    }
    let branch = match pack.as_str() {
        "image" => String::new(),
        _ if address.is_empty() => String::new(),
        _ => {
            let branch = repository.and_then(Repository::branch);
            asked.checked("Branch", &branch.unwrap_or("main".to_owned()), something)?
        }
    };
    let port = found.as_ref().map_or(8080, |found| found.port);
    let port = match pack.as_str() {
        "static" => port,
        _ => asked.checked("Port", &port.to_string(), port_number)?,
    };
    let environment = asked.checked("Environment", "production", something)?;
    let health = match pack.as_str() {
        "static" => String::new(),
        _ => asked.checked("Health check path, or - for none", "-", health_check)?,
    };
    Ok(Manifest::of([
        ("name", json!(name)),
        ("environment", json!(environment)),
        ("repository", json!(address)),
        ("branch", json!(branch)),
        ("build_pack", json!(pack)),
        ("base_path", base_path(found)),
        ("port", json!(port)),
        ("health_check_path", json!(health)),
    ]))
}

/// Prompts, unless defaults are to be used.
struct Asked<'a> {
    screen: &'a Screen,
    yes: bool,
}

impl Asked<'_> {
    fn checked<T>(
        &self,
        question: &str,
        proposal: &str,
        check: impl Fn(&str) -> Result<T, String>,
    ) -> Outcome<T> {
        if self.yes {
            return check(proposal).map_err(|wrong| Failure::new(Kind::Usage, wrong));
        }
        let proposal = Some(proposal).filter(|proposal| !proposal.is_empty());
        prompt::checked(self.screen, question, proposal, check)
    }
}

/// Returns the name of the folder, without characters that are invalid in names of applications.
pub(crate) fn name_of(root: &Path) -> String {
    let folder = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    cleaned(&folder)
}

fn cleaned(folder: &str) -> String {
    let kept: String = folder.chars().map(|c| if is_in_names(c) { c } else { '-' }).collect();
    let name: String = kept.trim_matches([' ', '_', '-']).chars().take(63).collect();
    if name.is_empty() { "app".to_owned() } else { name }
}

fn is_in_names(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-')
}

fn base_path(found: Option<Proposal>) -> Value {
    found.map(|found| found.base_path).filter(|path| path != "/").unwrap_or_default().into()
}

fn name(answer: &str) -> Result<String, String> {
    let begins_well = answer.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && answer.chars().all(is_in_names) && answer.len() <= 63 {
        return Ok(answer.to_owned());
    }
    Err("a name has 1 to 63 letters, digits, spaces, `_` or `-`, the first a letter or a digit".to_owned())
}

fn build_pack(answer: &str) -> Result<String, String> {
    let wanted = answer.to_ascii_lowercase();
    match BUILD_PACKS.contains(&wanted.as_str()) {
        true => Ok(wanted),
        false => Err(format!("the build packs are {}", BUILD_PACKS.join(", "))),
    }
}

fn port_number(answer: &str) -> Result<u16, String> {
    let port = answer.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "a port is a number from 1 to 65535".to_owned())
}

fn health_check(answer: &str) -> Result<String, String> {
    match answer {
        "-" => Ok(String::new()),
        path if path.starts_with('/') => Ok(path.to_owned()),
        _ => Err("a path starts with `/`, such as /health; use - for none".to_owned()),
    }
}

fn something(answer: &str) -> Result<String, String> {
    match answer {
        "" => Err("this must not be empty".to_owned()),
        answer => Ok(answer.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_become_names_of_applications() {
        for (folder, expected) in [
            ("shop", "shop"),
            ("My Shop_2", "My Shop_2"),
            (".dotfiles", "dotfiles"),
            ("a.b/c", "a-b-c"),
            ("früh", "fr-h"),
            ("...", "app"),
        ] {
            assert_eq!(cleaned(folder), expected);
            assert_eq!(name(expected), Ok(expected.to_owned()));
        }
        assert_eq!(cleaned(&"x".repeat(100)).len(), 63);
    }

    #[test]
    fn answers_are_checked_on_both_sides_of_their_limits() {
        assert!(name(&"x".repeat(63)).is_ok() && name(&"x".repeat(64)).is_err());
        assert!(name("").is_err() && name("-x").is_err() && name("a.b").is_err());
        assert_eq!((port_number("1"), port_number("65535")), (Ok(1), Ok(65535)));
        assert!(port_number("0").is_err() && port_number("65536").is_err() && port_number("http").is_err());
        assert_eq!(build_pack("Static"), Ok("static".to_owned()));
        assert!(build_pack("heroku").is_err());
        assert_eq!((health_check("-"), health_check("/up")), (Ok(String::new()), Ok("/up".to_owned())));
        assert!(health_check("up").is_err());
    }
}
