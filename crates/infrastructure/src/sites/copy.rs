//! Self-contained copies of folders.

use std::{
    fs::{self, File, FileTimes, Metadata},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, symlink},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use launchway_system::files::{entries, make_private_folder};

/// An error of copying a folder.
#[derive(Debug)]
pub(super) enum CopyError {
    /// It contains something that must not be published. The message is meant for the user.
    Refused(String),
    Io(io::Error),
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Copies `source` to `target`, which does not exist yet, with the modification times of its files:
/// browsers revalidate by them. Links stay links, so that no file is duplicated.
pub(super) fn copy(source: &Path, target: &Path, is_unwanted: &AtomicBool) -> Result<(), CopyError> {
    make_private_folder(target)?;
    let target = target.canonicalize()?;
    let mut links = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for path in entries(&source.join(&folder))? {
            if is_unwanted.load(Ordering::Relaxed) {
                return Err(io::Error::from(io::ErrorKind::Interrupted).into());
            }
            let name = folder.join(path.file_name().unwrap_or_default());
            let (metadata, new) = (fs::symlink_metadata(&path)?, target.join(&name));
            if metadata.is_dir() {
                make_private_folder(&new)?;
                folders.push(name);
            } else if metadata.is_file() {
                copy_file(&path, &new, &metadata)?;
            } else if metadata.is_symlink() {
                symlink(fs::read_link(&path)?, &new)?;
                links.push(name);
            } else {
                return Err(CopyError::Refused(format!(
                    "`/{}` is neither a file nor a folder.",
                    shown(&name)
                )));
            }
        }
    }
    links.iter().try_for_each(|link| check_link(&target, link))
}

fn copy_file(source: &Path, target: &Path, metadata: &Metadata) -> io::Result<()> {
    let mode = mode_of(metadata.mode());
    let mut file = File::options().write(true).create_new(true).mode(mode).open(target)?;
    io::copy(&mut File::open(source)?, &mut file)?;
    file.set_times(FileTimes::new().set_modified(metadata.modified()?))
}

/// Returns the mode of a published file.
pub(super) fn mode_of(mode: u32) -> u32 {
    0o600 | (mode & 0o755)
}

/// Checks a link at its published path: one that reaches its target only through the checkout's own path
/// points out of the release.
pub(super) fn check_link(root: &Path, link: &Path) -> Result<(), CopyError> {
    let place = root.join(link);
    let leads_out = match place.canonicalize() {
        Ok(target) => !target.starts_with(root),
        // A dangling link is removed, or rejected if it points out of the folder.
        Err(_) => {
            let leads_out = climbs_out(link, &fs::read_link(&place)?);
            if !leads_out {
                fs::remove_file(&place)?;
            }
            leads_out
        }
    };
    if leads_out {
        Err(CopyError::Refused(format!("The link `/{}` points outside the published folder.", shown(link))))
    } else {
        Ok(())
    }
}

/// Returns whether a path, resolved from beside `link`, ever leaves the root.
fn climbs_out(link: &Path, target: &Path) -> bool {
    let depth = i64::try_from(link.components().count()).unwrap_or(i64::MAX) - 1;
    let depths = target.components().scan(depth, |depth, component| {
        *depth = match component {
            Component::ParentDir => *depth - 1,
            Component::Normal(_) => *depth + 1,
            Component::CurDir => *depth,
            Component::RootDir | Component::Prefix(_) => i64::MIN / 2,
        };
        Some(*depth)
    });
    depths.min().is_some_and(|lowest| lowest < 0)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_ever_leaves_the_root_climbs_out() {
        for (link, target, out) in [
            ("a", "b", false),
            ("a", "./b", false),
            ("a", "../b", true),
            ("d/a", "../b", false),
            ("d/a", "../../b", true),
            ("d/a", "../../root/d/b", true),
            ("d/a", "x/../../b", false),
            ("a", "/etc/passwd", true),
            ("a", "/", true),
        ] {
            assert_eq!(climbs_out(Path::new(link), Path::new(target)), out, "{link} -> {target}");
        }
    }
}
