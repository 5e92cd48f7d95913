//! A local repository from which applications are deployed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use fs_err as fs;

use crate::workspace;

/// A repository with one page.
pub(crate) struct Repository(PathBuf);

impl Repository {
    /// Creates a repository with a page and these files.
    pub(crate) fn create(folder: &Path, files: &[(&str, &str)]) -> Result<Self> {
        fs::create_dir_all(folder)?;
        files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))?;
        let repository = Self(folder.to_owned());
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        repository.commit("the first")?;
        Ok(repository)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Changes the page; returns the commit.
    pub(crate) fn commit(&self, page: &str) -> Result<String> {
        fs::write(self.0.join("index.html"), page)?;
        self.git(&["add", "."])?;
        self.git(&["commit", "--quiet", "--message", page])?;
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
        workspace::output(Command::new("git").arg("-C").arg(&self.0).args(who).args(arguments))
    }
}
