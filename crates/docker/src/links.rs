//! Resolves paths in a checkout, whatever its symbolic links point to.
//!
//! **Invariant:** nothing outside the checkout is opened or even looked up, so that an error does not
//! reveal what exists there.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

use launchway_domain::deployments::StepError;

/// The number of links that Linux follows.
const MOST_LINKS: usize = 40;

/// An error of resolving a path.
#[derive(Debug)]
pub(crate) enum Lost {
    NotThere,
    LeadsOut,
    Io(io::Error),
}

impl Lost {
    pub(crate) fn into_step_error(self, not_there: &str, subject: &str) -> StepError {
        match self {
            Self::NotThere => StepError::Rejected(not_there.to_owned()),
            Self::LeadsOut => {
                StepError::Rejected(format!("{subject} is a link to a path outside the repository"))
            }
            Self::Io(error) => StepError::failed("the checkout cannot be read", error),
        }
    }
}

/// Resolves `path` from `start`, which is `root` or below it, one component at a time.
pub(crate) fn beneath(root: &Path, start: &Path, path: impl AsRef<Path>) -> Result<PathBuf, Lost> {
    let mut place = start.to_owned();
    let mut ahead: VecDeque<OsString> = path.as_ref().iter().map(OsString::from).collect();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        match Path::new(&name).components().next() {
            None | Some(Component::CurDir) => continue,
            Some(Component::ParentDir) if place == root => return Err(Lost::LeadsOut),
            Some(Component::ParentDir) => {
                place.pop();
                continue;
            }
            Some(Component::RootDir | Component::Prefix(_)) => return Err(Lost::LeadsOut),
            Some(Component::Normal(_)) => {}
        }
        let next = place.join(&name);
        let metadata = fs::symlink_metadata(&next).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Lost::NotThere,
            _ => Lost::Io(error),
        })?;
        if !metadata.is_symlink() {
            place = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(Lost::NotThere);
        }
        let target = fs::read_link(&next).map_err(Lost::Io)?;
        for part in target.iter().rev() {
            ahead.push_front(part.to_owned());
        }
    }
    Ok(place)
}

/// Rejects a checkout with a link that points out of it. Blocks.
pub(crate) fn check_all(root: &Path) -> Result<(), StepError> {
    let broken = |error| StepError::failed("the checkout cannot be read", error);
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let kind = entry.file_type().map_err(broken)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_symlink() {
                let path = entry.path();
                let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                match beneath(root, &folder, entry.file_name()) {
                    Ok(_) | Err(Lost::NotThere) => {}
                    Err(lost) => return Err(lost.into_step_error("", &format!("`{shown}`"))),
                }
            }
        }
    }
    Ok(())
}
