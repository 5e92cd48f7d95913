//! The files of a commit.

use std::path::Path;

use launchway_system::process::ProcessError;

use super::{
    FetchRequest,
    command::{Git, succeeded},
    errors::GitError,
};

/// The contents of a commit that users should know about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// The paths of the submodules, which are not fetched.
    pub(super) submodules: Vec<String>,
}

/// Checks the contents of a commit before any of it is written: a small commit can contain the same folder
/// a million times.
pub(super) async fn list(
    git: &Git<'_>,
    repository: &Path,
    request: &FetchRequest<'_>,
) -> Result<Contents, GitError> {
    let asked = git
        .local(repository, git.limits.answer)
        .args(["ls-tree", "-r", "-t", "-l", "-z", "--full-tree", "--end-of-options"])
        .arg(request.commit.as_str());
    let listed = match asked.run().await {
        Err(ProcessError::AnsweredTooMuch(_)) => return Err(too_many(request)),
        listed => succeeded(listed, request.source)?,
    };
    let (mut contents, mut bytes, mut entries) = (Contents::default(), 0_u64, 0_usize);
    for line in listed.answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        let (attributes, path) = line.split_once('\t').unwrap_or_default();
        let mut attributes = attributes.split_ascii_whitespace();
        if attributes.next() == Some("160000") {
            contents.submodules.push(path.replace(char::is_control, "?"));
        }
        // Folders and submodules have `-` for their size.
        bytes = bytes.saturating_add(attributes.nth(2).and_then(|size| size.parse().ok()).unwrap_or(0));
        entries += 1;
        if entries > request.limits.tree_entries {
            return Err(too_many(request));
        }
    }
    if bytes > request.limits.tree_bytes {
        let (url, limit) = (request.source.url.as_str(), size(request.limits.tree_bytes));
        return Err(GitError::refused(format!("{url} is too large: its files are more than {limit}.")));
    }
    Ok(contents)
}

/// Writes the files of a commit as a clone would: links stay links, and no filter runs, because none is
/// configured.
pub(super) async fn check_out(
    git: &Git<'_>,
    repository: &Path,
    request: &FetchRequest<'_>,
) -> Result<(), GitError> {
    let mut tree = std::ffi::OsString::from("--work-tree=");
    tree.push(git.scratch.tree());
    let written = git
        .local(repository, git.limits.fetch)
        .env("GIT_INDEX_FILE", git.scratch.index())
        .arg(tree)
        .args(["read-tree", "--reset", "-u", "--no-recurse-submodules"])
        .arg(request.commit.as_str())
        .run()
        .await;
    succeeded(written, request.source).map(drop)
}

fn too_many(request: &FetchRequest<'_>) -> GitError {
    let (url, limit) = (request.source.url.as_str(), request.limits.tree_entries);
    GitError::refused(format!("{url} is too large: it has more than {limit} files and folders."))
}

/// Formats a limit for users.
pub(super) fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}
