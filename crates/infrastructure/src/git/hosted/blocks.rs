//! The blocks that organizations have sent, before and after they are deployed.
//!
//! **Invariant:** an organization finds only blocks that it has sent itself: each has a folder of its own. A block has the
//! digest that this server computed when it arrived, and again when it is read.
//!
//! A part is one file, which never changes. The time of its last use is that of its last modification.

mod part;

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Seek as _, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use launchway_domain::{
    ids::OrganizationId,
    sources::{BlockId, StoredPart},
};
use launchway_system::files;

use super::commit_stream::Refusal;

/// The time after the last use of a part at which it is removed.
const UNUSED: Duration = Duration::from_secs(14 * 24 * 3600);
/// The time after which nobody writes to a draft any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The limits of the blocks of one organization. Those that were used the longest time ago make room for new ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreLimits {
    pub(super) bytes: u64,
    pub(super) blocks: usize,
    pub(super) parts: usize,
}

/// The folder with a folder for each organization.
#[derive(Debug, Clone)]
pub(super) struct BlockStore {
    pub(super) folder: PathBuf,
    pub(super) limits: StoreLimits,
}

impl BlockStore {
    fn folder_of(&self, organization: OrganizationId) -> PathBuf {
        self.folder.join(organization.to_string())
    }

    /// Returns the blocks of an organization. Blocks the thread.
    pub(super) fn open(&self, organization: OrganizationId) -> io::Result<Blocks> {
        let mut blocks = Blocks::default();
        for part in parts_in(&self.folder_of(organization))? {
            let index = match part::Index::read(&part.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    tracing::warn!(part = %part.path.display(), "damaged blocks of an upload removed");
                    files::remove(&part.path)?;
                    continue;
                }
                index => index?,
            };
            let (number, mut offset) = (blocks.parts.len(), 0);
            for (id, length) in index.blocks {
                blocks.places.insert(id, Place { part: number, offset, length });
                offset += u64::from(length);
            }
            blocks.parts.push(Part { path: part.path, bytes: offset, received: index.received });
        }
        Ok(blocks)
    }

    /// Stores the blocks of a part durably. Blocks the thread.
    pub(super) fn store(
        &self,
        organization: OrganizationId,
        (received, bytes): (File, u64),
    ) -> Result<StoredPart, Refusal> {
        static STORED: AtomicU64 = AtomicU64::new(0);
        let folder = self.folder_of(organization);
        let number = STORED.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{time}-{}-{number}", std::process::id());
        let draft = folder.join(format!(".draft-{name}"));
        let stored = self.write(&folder, &draft, (received, bytes)).and_then(|stored| {
            let made = || {
                self.make_room(&folder, stored)?;
                fs::rename(&draft, folder.join(format!("{name}.part")))?;
                File::open(&folder)?.sync_all()
            };
            made().map(|()| stored).map_err(Refusal::Io)
        });
        if stored.is_err() {
            files::remove(&draft).map_err(Refusal::Io)?;
        }
        stored
    }

    fn write(
        &self,
        folder: &Path,
        draft: &Path,
        (received, bytes): (File, u64),
    ) -> Result<StoredPart, Refusal> {
        let open = || {
            files::make_private_folders(folder)?;
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)
        };
        let mut file = open().map_err(Refusal::Io)?;
        let stored = part::write(received, bytes, &mut file)?;
        file.sync_all().map_err(Refusal::Io)?;
        Ok(stored)
    }

    /// Removes the parts that were used the longest time ago, until a new one fits.
    fn make_room(&self, folder: &Path, new: StoredPart) -> io::Result<()> {
        let mut parts = parts_in(folder)?;
        parts.sort_by_key(|part| part.used);
        let mut known = Vec::new();
        for part in parts {
            match part::Index::count(&part.path) {
                Ok(blocks) => known.push((part, blocks)),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {}
                Err(error) => return Err(error),
            }
        }
        let mut bytes = new.bytes + known.iter().map(|(part, _)| part.bytes).sum::<u64>();
        let mut blocks = new.blocks + known.iter().map(|(_, blocks)| blocks).sum::<usize>();
        let mut left = known.len() + 1;
        for (part, count) in known {
            if bytes <= self.limits.bytes && blocks <= self.limits.blocks && left <= self.limits.parts {
                break;
            }
            files::remove(&part.path)?;
            (bytes, blocks, left) = (bytes - part.bytes, blocks - count, left - 1);
        }
        Ok(())
    }

    /// Removes parts that were not used for long, and what killed servers left. Blocks the thread.
    pub(super) fn remove_unused(&self) -> io::Result<()> {
        for folder in unless_missing(files::entries(&self.folder))?.unwrap_or_default() {
            for part in parts_in(&folder)? {
                if part.used.elapsed().is_ok_and(|age| age > UNUSED) {
                    files::remove(&part.path)?;
                }
            }
            let drafts = unless_missing(files::entries(&folder))?.unwrap_or_default();
            for path in drafts.into_iter().filter(|path| !is_part(path)) {
                let modified = unless_missing(fs::metadata(&path).and_then(|found| found.modified()))?;
                if modified.is_some_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED)) {
                    files::remove(&path)?;
                }
            }
            // Fails unless it is empty.
            let _ = fs::remove_dir(&folder);
        }
        Ok(())
    }
}

/// A part in its folder.
struct PartFile {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn parts_in(folder: &Path) -> io::Result<Vec<PartFile>> {
    let mut parts = Vec::new();
    for path in unless_missing(files::entries(folder))?.unwrap_or_default() {
        if let Some(metadata) = unless_missing(fs::metadata(&path))?.filter(|_| is_part(&path)) {
            parts.push(PartFile { bytes: metadata.len(), used: metadata.modified()?, path });
        }
    }
    Ok(parts)
}

fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "part")
}

fn unless_missing<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    bytes: u64,
    /// The compressed bytes that the client sent.
    received: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    part: usize,
    offset: u64,
    length: u32,
}

/// The blocks of one organization.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    parts: Vec<Part>,
    places: HashMap<BlockId, Place>,
    /// The part that was read last.
    open: Option<(usize, File)>,
}

impl Blocks {
    pub(super) fn has(&self, id: &BlockId) -> bool {
        self.places.contains_key(id)
    }

    /// Returns the length of a block, and its share of the compressed bytes of its part.
    pub(super) fn size(&self, id: &BlockId) -> Option<(u64, u64)> {
        let place = self.places.get(id)?;
        let part = self.parts.get(place.part)?;
        let length = u64::from(place.length);
        Some((length, length.saturating_mul(part.received) / part.bytes.max(1)))
    }

    /// Returns the content of a block; `None` if there is no such block.
    pub(super) fn read(&mut self, id: &BlockId) -> io::Result<Option<Vec<u8>>> {
        let Some(place) = self.places.get(id).copied() else { return Ok(None) };
        let path = self.parts.get(place.part).map(|part| part.path.clone()).unwrap_or_default();
        if self.open.as_ref().is_none_or(|(open, _)| *open != place.part) {
            let Some(file) = unless_missing(File::open(&path))? else { return Ok(None) };
            self.open = Some((place.part, file));
        }
        let Some((_, file)) = &mut self.open else { return Ok(None) };
        let mut content = vec![0; place.length as usize];
        file.seek(SeekFrom::Start(place.offset))?;
        file.read_exact(&mut content)?;
        if BlockId::of(&content) == *id {
            return Ok(Some(content));
        }
        // The client is asked for it again.
        tracing::warn!(part = %path.display(), block = %id, "damaged blocks of an upload removed");
        files::remove(&path)?;
        Ok(None)
    }

    /// Records that the blocks are used now.
    pub(super) fn mark_used(&self, ids: impl Iterator<Item = BlockId>) -> io::Result<()> {
        let used: std::collections::HashSet<usize> =
            ids.filter_map(|id| self.places.get(&id)).map(|place| place.part).collect();
        for part in used.into_iter().filter_map(|number| self.parts.get(number)) {
            let opened = File::options().append(true).open(&part.path);
            if let Some(file) = unless_missing(opened)? {
                file.set_modified(SystemTime::now())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
