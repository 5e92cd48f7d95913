//! Git repositories with deployable content.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use launchway_testkit::docker::base_image;

/// Creates a repository with a static site.
pub(crate) fn site(folder: &Path) -> PathBuf {
    make(folder, &[("index.html", "a page\n")])
}

/// Creates a repository with a web server in a container, which exits at once on a stop signal.
pub(crate) fn container(folder: &Path) -> PathBuf {
    let base = base_image();
    let dockerfile = format!(
        "FROM {base}\nSTOPSIGNAL SIGKILL\nCOPY index.html /www/index.html\n\
         CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n"
    );
    make(folder, &[("index.html", "a page\n"), ("Dockerfile", &dockerfile)])
}

/// Creates a repository with these files, or commits them to the existing one.
pub(crate) fn make(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    if !folder.join(".git").exists() {
        git(folder, &["init", "--quiet", "--initial-branch", "main"]);
    }
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message", "a version"]);
    folder.to_owned()
}

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stdin(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "git {arguments:?}");
}
