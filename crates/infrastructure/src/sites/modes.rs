//! The modes of published files.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use launchway_system::files::entries;

/// The mode of a folder that the group may read.
const SHARED: u32 = 0o750;

/// The users who may read published files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The server's own user, which the front proxy has too.
    Owner,
    /// The server's group as well: that of a front proxy with a user of its own.
    Group,
}

impl Readers {
    /// Gives `folder` and everything in it the modes. The mode of `folder` itself is changed last, and says whether the
    /// rest has been done; a closed folder closes what is in it.
    pub(super) fn apply(self, folder: &Path) -> io::Result<()> {
        let is_shared = fs::symlink_metadata(folder)?.permissions().mode() & 0o777 == SHARED;
        match self {
            Self::Owner if is_shared => fs::set_permissions(folder, Permissions::from_mode(0o700)),
            Self::Group if !is_shared => {
                share_content(folder)?;
                share(folder)
            }
            _ => Ok(()),
        }
    }
}

/// Lets the group read a file or enter a folder, and others nothing.
pub(super) fn share(path: &Path) -> io::Result<()> {
    let owner = fs::symlink_metadata(path)?.permissions().mode() & 0o700;
    // Published files are never written to.
    fs::set_permissions(path, Permissions::from_mode(owner | ((owner >> 3) & 0o050))).map_err(|error| {
        let text = format!("cannot let the group read `{}`: {error}", path.display());
        io::Error::new(error.kind(), text)
    })
}

fn share_content(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            let kind = fs::symlink_metadata(&path)?;
            if kind.is_symlink() {
                // A link has no mode of its own.
                continue;
            }
            share(&path)?;
            if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn releases_are_shared_with_the_group_and_closed_again() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("sites");
        let release = root.join("application/release");
        fs::create_dir_all(&release).unwrap();
        let (page, outside) = (release.join("index.html"), parent.path().join("outside"));
        for (file, own) in [(&page, 0o604), (&outside, 0o600)] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, Permissions::from_mode(own)).unwrap();
        }
        symlink(&outside, release.join("link")).unwrap();
        symlink("nowhere", release.join("dangling")).unwrap();
        for folder in [&release, &root.join("application"), &root] {
            fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
        }

        Readers::Group.apply(&root).unwrap();
        for folder in [&root, &root.join("application"), &release] {
            assert_eq!(mode(folder), 0o750, "{}", folder.display());
        }
        assert_eq!((mode(&page), mode(&outside)), (0o640, 0o600), "no link is followed");

        Readers::Owner.apply(&root).unwrap();
        assert_eq!(mode(&root), 0o700);
        Readers::Group.apply(&root).unwrap();
        assert_eq!((mode(&root), mode(&page)), (0o750, 0o640));
    }
}
