//! A local repository from which applications are deployed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Failure, Outcome},
    workspace,
};

/// A repository with one page.
pub(crate) struct Repository(PathBuf);

impl Repository {
    /// Creates a repository with a page and these files.
    pub(crate) fn create(folder: &Path, files: &[(&str, &str)]) -> Outcome<Self> {
        let prepared = fs::create_dir_all(folder)
            .and_then(|()| files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text)));
        prepared.map_err(unprepared)?;
        let repository = Self(folder.to_owned());
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        repository.commit("the first")?;
        Ok(repository)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Changes the page; returns the commit.
    pub(crate) fn commit(&self, page: &str) -> Outcome<String> {
        fs::write(self.0.join("index.html"), page).map_err(unprepared)?;
        self.git(&["add", "."])?;
        self.git(&["commit", "--quiet", "--message", page])?;
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, arguments: &[&str]) -> Outcome<String> {
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
        workspace::output(Command::new("git").arg("-C").arg(&self.0).args(who).args(arguments))
    }
}

fn unprepared(error: std::io::Error) -> Failure {
    Failure::because("the repository cannot be prepared", error)
}
