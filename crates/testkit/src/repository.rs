//! A git repository with an application in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::docker::base_image;

/// A repository on this machine, with the branch `main`.
pub struct Repository {
    folder: PathBuf,
}

impl Repository {
    /// Creates an empty repository.
    pub fn empty(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let repository = Self { folder };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Writes a file, without a commit.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Commits all changes, and returns the hash of the commit.
    pub fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits a web server on port 8080 whose page is `text`.
    pub fn commit_page(&self, text: &str) -> String {
        self.write("Dockerfile", web_server("")).write("index.html", format!("{text}\n")).commit()
    }

    /// Runs git and returns its output.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .current_dir(&self.folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Returns a Dockerfile of a web server on port 8080 that serves `index.html`, with more lines before the
/// last. It exits at once on a stop signal.
pub fn web_server(more: &str) -> String {
    web_server_by(more, r#"["httpd", "-f", "-p", "8080", "-h", "/www"]"#)
}

/// The same, started by a line of shell.
pub fn web_server_by(more: &str, line: &str) -> String {
    let base = base_image();
    format!("FROM {base}\nSTOPSIGNAL SIGKILL\nCOPY index.html /www/index.html\n{more}\nCMD {line}\n")
}

/// Returns a Dockerfile whose container runs a line of shell.
pub fn running(line: &str) -> String {
    format!("FROM {}\nSTOPSIGNAL SIGKILL\nCMD {line}\n", base_image())
}
