//! Releases as compressed tar files.

use std::{
    fs::{self, File, FileTimes},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, symlink},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use launchway_system::files::{entries, make_private_folder};
use tar::{Archive, Builder, EntryType, Header};

use super::copy::{CopyError, check_link, mode_of};

/// Writes everything in `folder` to `writer`, and returns it. Blocks.
pub(super) fn pack<W: Write>(folder: &Path, writer: W, is_unwanted: &AtomicBool) -> io::Result<W> {
    let mut archive = Builder::new(GzEncoder::new(writer, Compression::fast()));
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let mut found = entries(&folder.join(&inner))?;
        found.sort();
        for path in found {
            if is_unwanted.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let name = inner.join(path.file_name().unwrap_or_default());
            let metadata = fs::symlink_metadata(&path)?;
            let mut header = Header::new_gnu();
            header.set_mode(metadata.mode() & 0o777);
            header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or_default());
            header.set_size(0);
            if metadata.is_symlink() {
                header.set_entry_type(EntryType::Symlink);
                archive.append_link(&mut header, &name, fs::read_link(&path)?)?;
            } else if metadata.is_dir() {
                header.set_entry_type(EntryType::Directory);
                archive.append_data(&mut header, &name, io::empty())?;
                folders.push(name);
            } else {
                header.set_size(metadata.len());
                archive.append_data(&mut header, &name, File::open(&path)?.take(metadata.len()))?;
            }
        }
    }
    archive.into_inner()?.finish()
}

/// Unpacks an archive into `target`, which does not exist yet, and reads it to its end. The rules about links and modes
/// are those of a publication. Blocks.
pub(super) fn unpack(
    reader: &mut impl Read,
    target: &Path,
    is_unwanted: &AtomicBool,
) -> Result<(), CopyError> {
    make_private_folder(target)?;
    let target = target.canonicalize()?;
    let mut archive = Archive::new(GzDecoder::new(reader));
    // Links are made at the end, so that nothing is written through one.
    let mut links = Vec::new();
    for entry in archive.entries()? {
        if is_unwanted.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        if name.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(CopyError::Refused("A path points outside the folder.".to_owned()));
        }
        let place = target.join(&name);
        match entry.header().entry_type() {
            EntryType::Directory => make_private_folder(&place)?,
            EntryType::Symlink => {
                let to = entry.link_name()?.unwrap_or_default().into_owned();
                links.push((name, to));
            }
            EntryType::Regular => {
                let (mode, modified) = (mode_of(entry.header().mode()?), entry.header().mtime()?);
                let mut file = File::options().write(true).create_new(true).mode(mode).open(&place)?;
                io::copy(&mut entry, &mut file)?;
                let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(modified));
                let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
                file.set_times(FileTimes::new().set_modified(modified))?;
            }
            _ => return Err(CopyError::Refused("An entry is neither a file nor a folder.".to_owned())),
        }
    }
    let mut packed = archive.into_inner();
    io::copy(&mut packed, &mut io::sink())?;
    io::copy(packed.get_mut(), &mut io::sink())?;
    for (name, to) in &links {
        symlink(to, target.join(name))?;
    }
    links.iter().try_for_each(|(name, _)| check_link(&target, name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn tar_of(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, kind, content) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o7777);
            header.set_mtime(0);
            // The setters of the library refuse such names.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            let mut data = content.as_bytes();
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
                data = b"";
            }
            header.set_size(data.len() as u64);
            header.set_cksum();
            archive.append(&header, data).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    fn unpacked(archive: &[u8], target: &Path) -> Result<(), CopyError> {
        unpack(&mut &*archive, target, &AtomicBool::new(false))
    }

    #[test]
    fn what_is_packed_is_unpacked_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        let deep = source.join("deep".repeat(40)).join("x".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        fs::write(source.join("index.html"), "a page").unwrap();
        fs::write(deep.join("für"), vec![7; 3_000_000]).unwrap();
        fs::set_permissions(source.join("index.html"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(format!("{}/../index.html", "deep".repeat(40)), source.join("link")).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        File::open(source.join("index.html")).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
        let packed = pack(&source, Vec::new(), &AtomicBool::new(false)).unwrap();
        unpacked(&packed, &target).unwrap();
        assert_eq!(fs::read_to_string(target.join("link")).unwrap(), "a page");
        assert!(target.join("link").is_symlink());
        let page = fs::metadata(target.join("index.html")).unwrap();
        assert_eq!((page.modified().unwrap(), page.mode() & 0o7777), (old, 0o755));
        let deep = target.join(deep.strip_prefix(&source).unwrap());
        assert_eq!(fs::read(deep.join("für")).unwrap(), vec![7; 3_000_000]);
        assert_eq!(fs::metadata(deep).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn nothing_is_unpacked_outside_of_the_folder() {
        use EntryType::{Directory, Fifo, Link, Regular, Symlink};
        let cases: [&[(&str, EntryType, &str)]; 9] = [
            &[("../out", Regular, "x")],
            &[("/tmp/launchway-out", Regular, "x")],
            &[("d/../../out", Regular, "x")],
            &[("link", Symlink, "/etc")],
            &[("link", Symlink, "../out")],
            &[("link", Symlink, ".."), ("link/out", Regular, "x")],
            &[("a", Regular, "x"), ("a", Regular, "y")],
            &[("hard", Link, "/etc/passwd")],
            &[("d", Directory, ""), ("d/pipe", Fifo, "")],
        ];
        for case in cases {
            let folder = tempfile::tempdir().unwrap();
            assert!(unpacked(&tar_of(case), &folder.path().join("target")).is_err(), "{case:?}");
            assert!(!folder.path().join("out").exists() && !Path::new("/tmp/launchway-out").exists());
        }
    }

    #[test]
    fn modes_are_those_of_a_publication() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        unpacked(&tar_of(&[("a", EntryType::Regular, "x")]), &target).unwrap();
        assert_eq!(fs::metadata(target.join("a")).unwrap().mode() & 0o7777, 0o755);
    }

    #[test]
    fn a_truncated_archive_is_refused() {
        let whole = tar_of(&[("a", EntryType::Regular, "a text")]);
        for length in [0, 5, whole.len() / 2, whole.len() - 1] {
            let folder = tempfile::tempdir().unwrap();
            assert!(unpacked(&whole[..length], &folder.path().join("target")).is_err(), "{length}");
        }
    }
}
