//! Entity tags: they let a client check whether its copy of a file is current.
//!
//! A tag is derived from the content, so a file that a deployment did not change keeps its tag, and
//! one that it did change never does, whatever its time and size.

use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use data_encoding::BASE64URL_NOPAD;
use http::HeaderValue;
use moka::sync::Cache;
use sha2::{Digest as _, Sha256};

/// The largest file that is hashed. Reading a larger one before the first byte is sent takes too long.
const MOST_HASHED: u64 = 32 * 1024 * 1024;

/// The number of cached tags: with their keys, a few megabytes.
const MOST_REMEMBERED: u64 = 32 * 1024;

/// The time after which a file counts as settled. One that changed more recently may change again and look
/// the same, because the clocks of file systems are coarse.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// Half of a SHA-256, which is still collision-resistant.
const TAG_BYTES: usize = 16;

static REMEMBERED: LazyLock<Cache<Version, Tag>> = LazyLock::new(|| Cache::new(MOST_REMEMBERED));

/// A strong entity tag, in its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag(Arc<str>);

/// One state of one file. It includes the time of the last status change (`ctime`), because publishing
/// preserves the modification time, which builds like to set to a fixed one, and the inode number of a
/// removed file is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Version {
    device: u64,
    inode: u64,
    changed: (i64, i64),
    modified: (i64, i64),
    size: u64,
}

impl Tag {
    /// Returns the tag of an open file in `folder`. Reads the whole file, unless the tag is cached or the
    /// file is too large.
    pub(super) fn of(folder: &Path, file: &File, metadata: &Metadata) -> io::Result<Self> {
        let version = Version::of(metadata);
        if version.size > MOST_HASHED {
            return Ok(version.tag(folder));
        }
        if !version.is_settled(SystemTime::now()) {
            return hashed(folder, file, version);
        }
        // Concurrent requests wait for the first of them.
        let found = REMEMBERED.try_get_with(version, || hashed(folder, file, version));
        found.map_err(|error: Arc<io::Error>| io::Error::new(error.kind(), error))
    }

    /// Returns the tag of a file in `folder` if it is known without reading the file.
    pub(super) fn cached(folder: &Path, metadata: &Metadata) -> Option<Self> {
        let version = Version::of(metadata);
        if version.size > MOST_HASHED {
            return Some(version.tag(folder));
        }
        version.is_settled(SystemTime::now()).then(|| REMEMBERED.get(&version)).flatten()
    }

    fn from_digest(digest: impl AsRef<[u8]>) -> Self {
        let (half, _) = digest.as_ref().split_at(TAG_BYTES);
        Self(format!("\"{}\"", BASE64URL_NOPAD.encode(half)).into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            size: metadata.size(),
        }
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let seconds = u64::try_from(self.changed.0).unwrap_or(0);
        let nanoseconds = u32::try_from(self.changed.1).unwrap_or(0);
        let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        now.duration_since(changed).is_ok_and(|age| age >= SETTLED_AFTER)
    }

    /// Returns a tag of this state of this file in this release, without its content. Hashed, because the
    /// numbers of this machine must not be disclosed.
    fn tag(&self, folder: &Path) -> Tag {
        let told = format!("{}\0{self:?}", folder.display());
        Tag::from_digest(Sha256::digest(told))
    }
}

/// Returns the tag of the content, or of the state if the file was written meanwhile. The `ctime` does not
/// prove that: it also changes when the file is removed.
fn hashed(folder: &Path, file: &File, version: Version) -> io::Result<Tag> {
    let digest = digest(file, version.size)?;
    let after = Version::of(&file.metadata()?);
    let is_written = (after.modified, after.size) != (version.modified, version.size);
    if is_written { Ok(version.tag(folder)) } else { Ok(Tag::from_digest(digest)) }
}

fn digest(file: &File, size: u64) -> io::Result<impl AsRef<[u8]> + use<>> {
    let mut hash = Sha256::new();
    io::copy(&mut file.take(size), &mut hash)?;
    Ok(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_stays_as_it_is_is_read_once() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = File::open(folder.join("Cargo.toml")).unwrap();
        let metadata = file.metadata().unwrap();
        let tag = Tag::of(folder, &file, &metadata).unwrap();
        // A second read would read this file instead.
        let other = File::open(folder.join("src/lib.rs")).unwrap();
        assert_eq!(Tag::of(folder, &other, &metadata).unwrap(), tag);
    }

    #[test]
    fn a_file_that_changed_a_moment_ago_is_not_remembered() {
        let version = Version { device: 1, inode: 2, changed: (1000, 500), modified: (0, 0), size: 3 };
        let changed = SystemTime::UNIX_EPOCH + Duration::new(1000, 500);
        let nanosecond = Duration::from_nanos(1);
        assert!(!version.is_settled(changed - SETTLED_AFTER));
        assert!(!version.is_settled(changed + SETTLED_AFTER - nanosecond));
        assert!(version.is_settled(changed + SETTLED_AFTER));
    }

    #[test]
    fn a_file_that_changes_during_a_read_is_known_by_its_state() {
        let file = tempfile::tempfile().unwrap();
        let before = Version::of(&file.metadata().unwrap());
        file.set_len(1).unwrap();
        assert_eq!(hashed(Path::new("/site"), &file, before).unwrap(), before.tag(Path::new("/site")));
        assert_ne!(before.tag(Path::new("/site")), before.tag(Path::new("/other")));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_version() {
        let file = tempfile::tempfile().unwrap();
        let version = Version::of(&file.metadata().unwrap());
        let reused = Version { changed: (version.changed.0, version.changed.1 ^ 1), ..version };
        assert_ne!(version.tag(Path::new("/site")), reused.tag(Path::new("/site")));
    }
}
