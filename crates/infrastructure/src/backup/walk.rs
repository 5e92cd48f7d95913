//! Adds the files of a folder of the data directory to a backup.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use launchway_system::files::entries;
use rustix::fs::OFlags;

use super::{
    BackupError,
    archive::Writer,
    at,
    manifest::{FileRecord, LinkRecord, Manifest},
    names::name_of,
};

/// Adds `name` in the data directory, with everything in it. Temporary files have a name that begins with a
/// dot, and are skipped; files that vanish meanwhile are skipped as well.
pub(super) fn everything_in(
    data_dir: &Path,
    name: &str,
    writer: &mut Writer<'_>,
    manifest: &mut Manifest,
) -> Result<(), BackupError> {
    let mut found = vec![PathBuf::from(name)];
    while let Some(path) = found.pop() {
        let place = data_dir.join(&path);
        let Some(metadata) = unless_gone(&place, fs::symlink_metadata(&place))? else { continue };
        if metadata.is_dir() {
            let Some(mut inside) = unless_gone(&place, entries(&place))? else { continue };
            // A reference is read before the objects that it leads to: a push in between adds to both.
            inside.sort_by_cached_key(|path| (!is_of_references(path), path.clone()));
            manifest.folders.push(name_of(&path));
            let is_release = path.components().count() > 2;
            let names = inside.iter().rev().filter_map(|place| place.file_name());
            let names = names.filter(|name| is_release || !is_draft(name.to_string_lossy().as_ref()));
            found.extend(names.map(|name| path.join(name)));
        } else if metadata.is_symlink() {
            let Some(target) = unless_gone(&place, fs::read_link(&place))? else { continue };
            manifest.links.push(LinkRecord { path: name_of(&path), target: name_of(&target) });
        } else if metadata.is_file() {
            file(&place, name_of(&path), writer, manifest)?;
        }
    }
    Ok(())
}

fn is_of_references(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "refs" || name == "packed-refs")
}

fn is_draft(name: &str) -> bool {
    name.starts_with('.') || Path::new(name).extension().is_some_and(|extension| extension == "draft")
}

fn file(
    place: &Path,
    name: String,
    writer: &mut Writer<'_>,
    manifest: &mut Manifest,
) -> Result<(), BackupError> {
    // A link that replaced the file meanwhile is not followed.
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(place);
    let Some(file) = unless_gone(place, opened)? else { return Ok(()) };
    let metadata = file.metadata().map_err(at(place))?;
    let sha256 = writer.file(&name, &file, metadata.len())?;
    manifest.files.push(FileRecord {
        path: name,
        size: metadata.len(),
        mode: metadata.mode() & 0o777,
        modified: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
        sha256,
    });
    Ok(())
}

/// Returns the text of a file, or `None` if there is no such file.
pub(super) fn text_of(path: &Path) -> Result<Option<String>, BackupError> {
    Ok(unless_gone(path, fs::read_to_string(path))?.map(|text| text.trim().to_owned()))
}

fn unless_gone<T>(path: &Path, outcome: io::Result<T>) -> Result<Option<T>, BackupError> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some).map_err(at(path)),
    }
}
