//! The git repository around the current folder, read with `git`.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use url::Url;

use crate::failure::{Outcome, failed};

/// A repository on this machine.
pub(crate) struct Repository {
    root: PathBuf,
}

/// The URL from which the server clones a repository, and a remark about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) address: String,
    pub(crate) remark: Option<String>,
}

impl Repository {
    /// Returns the repository around the current folder, if there is one and git is installed.
    pub(crate) fn here() -> Outcome<Option<Self>> {
        let folder = env::current_dir().map_err(failed("the current folder cannot be read"))?;
        let root = ask(&folder, &["rev-parse", "--show-toplevel"]);
        Ok(root.map(|root| Self { root: root.into() }))
    }

    /// Returns the root folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the branch that is checked out, also before its first commit.
    pub(crate) fn branch(&self) -> Option<String> {
        self.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])
    }

    /// Returns the URL of a remote.
    pub(crate) fn remote(&self, name: &str) -> Option<String> {
        self.ask(&["remote", "get-url", name])
    }

    /// Returns the URL from which a server clones it; `None` without a remote but `launchway`, to which it is pushed.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let remote = self.ask(&["remote", "get-url", "origin"]).or_else(|| {
            let remotes = self.ask(&["remote"])?;
            let other = remotes.lines().find(|name| *name != "launchway")?.to_owned();
            self.ask(&["remote", "get-url", &other])
        });
        remote.map(|address| origin(&address, &self.root))
    }

    /// Returns the number of files with uncommitted changes, except `launchway.toml`, which the server does
    /// not need.
    pub(crate) fn uncommitted(&self) -> usize {
        let changes = self.ask(&["status", "--porcelain", "--", ".", ":(exclude)launchway.toml"]);
        changes.map_or(0, |changes| changes.lines().count())
    }

    /// Returns the number of commits of `branch` that are not pushed; `None` if the remote has no such
    /// branch.
    pub(crate) fn unpushed(&self, branch: &str) -> Option<usize> {
        let own = format!("refs/heads/{branch}");
        let behind =
            |upstream: &str| self.ask(&["rev-list", "--count", &format!("{upstream}..{own}")])?.parse().ok();
        behind(&format!("{branch}@{{upstream}}")).or_else(|| behind(&format!("refs/remotes/origin/{branch}")))
    }

    /// Runs git and returns its output; `None` if it fails.
    fn ask(&self, arguments: &[&str]) -> Option<String> {
        ask(&self.root, arguments)
    }
}

fn ask(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        // Reading must not take git's locks.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

/// Converts the URL of a remote to the form that the server accepts.
fn origin(address: &str, root: &Path) -> Origin {
    let Some((scheme, rest)) = address.split_once("://") else {
        // `user@host:path` has its colon before the first slash.
        let is_elsewhere = address.split('/').next().is_some_and(|first| first.contains(':'));
        return if is_elsewhere { by_key(address) } else { local(&root.join(address)) };
    };
    match scheme {
        "file" => local(Path::new(rest)),
        "ssh" => by_key(address),
        "https" => without_credentials(address, None),
        scheme => {
            let remark = format!("the server accepts {scheme}:// only for hosts in its LAUNCHWAY_GIT_ALLOW");
            without_credentials(address, Some(remark))
        }
    }
}

fn by_key(address: &str) -> Origin {
    let remark = "if the repository is private, add the key that `launchway deploy-key` prints to it";
    Origin { address: address.to_owned(), remark: Some(remark.to_owned()) }
}

/// A folder on this machine, which may be the server's machine.
fn local(folder: &Path) -> Origin {
    let folder = folder.canonicalize().unwrap_or_else(|_missing| folder.to_owned());
    let remark = "the repository is a local folder: the server must run on this machine and allow it in \
                  LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES";
    Origin { address: folder.display().to_string(), remark: Some(remark.to_owned()) }
}

/// Removes the credentials of a URL: it is written to a file that others read.
fn without_credentials(address: &str, remark: Option<String>) -> Origin {
    let Ok(mut url) = Url::parse(address) else { return Origin { address: address.to_owned(), remark } };
    if url.username().is_empty() && url.password().is_none() {
        return Origin { address: address.to_owned(), remark };
    }
    let cut = url.set_username("").and_then(|()| url.set_password(None));
    let address = if cut.is_ok() { url.to_string() } else { String::new() };
    let remark = "the password in the URL of the remote is omitted: pass it to the server once with \
                  `launchway app edit NAME --repository https://token@…`";
    Origin { address, remark: Some(remark.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_written_as_a_server_takes_them() {
        let address = |text: &str| origin(text, Path::new("/srv/shop")).address;
        for kept in [
            "https://github.com/ada/shop.git",
            "git@github.com:ada/shop.git",
            "ssh://git@example.com:2222/ada/shop.git",
            "git://example.com/shop.git",
        ] {
            assert_eq!(address(kept), kept);
        }
        assert_eq!(address("/srv/git/shop.git"), "/srv/git/shop.git");
        assert_eq!(address("file:///srv/git/shop.git"), "/srv/git/shop.git");
        assert_eq!(address("../shop.git"), "/srv/shop/../shop.git");
    }

    #[test]
    fn a_password_is_never_proposed() {
        for address in ["https://ada:geheim@example.com/shop.git", "https://geheim@example.com/shop.git"] {
            let found = origin(address, Path::new("/srv"));
            assert_eq!(found.address, "https://example.com/shop.git");
            assert!(found.remark.is_some_and(|remark| !remark.contains("geheim")));
        }
    }

    #[test]
    fn what_a_server_may_refuse_is_remarked() {
        let remark = |text: &str| origin(text, Path::new("/srv")).remark.unwrap_or_default();
        assert!(remark("http://example.com/shop.git").contains("LAUNCHWAY_GIT_ALLOW"));
        assert!(remark("/srv/git/shop.git").contains("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES"));
        assert!(remark("git@github.com:ada/shop.git").contains("deploy-key"));
        assert_eq!(remark("https://github.com/ada/shop.git"), "");
    }
}
