//! A disk that is rebuilt from the file operations of a process, as a power cut could have left it.
//!
//! Everything written before a file's last `fsync` is there. Each later write may be there, or not,
//! or in part, by sectors; and so may each truncation of the file. Files as a whole neither appear
//! nor disappear: a trace in which one does is rejected.

mod trace;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

pub(crate) use self::trace::{Call, Event, read};
use crate::rng::Rng;

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;

/// The fate of changes that were not synchronised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// None of it reached the disk.
    Nothing,
    /// Some changes did, whole.
    Some,
    /// Some sectors of some changes did.
    Torn,
    /// All of it did up to a point, where one change is torn.
    UpTo,
}

impl Cut {
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::Some, Self::Torn, Self::UpTo];
}

/// Files, each with its durable content and its pending changes.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    files: HashMap<PathBuf, Content>,
}

#[derive(Debug, Default, Clone)]
struct Content {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Cut { length: usize },
}

impl Disk {
    /// A disk with this durable file.
    pub(crate) fn with(path: &Path) -> Self {
        let durable = fs::read(path).unwrap();
        let files = HashMap::from([(path.to_owned(), Content { durable, pending: Vec::new() })]);
        Self { files }
    }

    /// Applies an operation of a process.
    pub(crate) fn apply(&mut self, event: &Event) {
        let content = self.files.entry(event.path.clone()).or_default();
        match &event.call {
            Call::Write { at, bytes } => {
                content.pending.push(Change::Write { at: *at, bytes: bytes.clone() });
            }
            Call::Cut { length } => content.pending.push(Change::Cut { length: *length }),
            Call::Sync => {
                for change in std::mem::take(&mut content.pending) {
                    change.apply(&mut content.durable);
                }
            }
        }
    }

    /// Writes the files into `folder` as they could be found after a power cut now.
    pub(crate) fn after_a_cut(&self, cut: Cut, rng: &mut Rng, folder: &Path) {
        for (path, content) in &self.files {
            let mut bytes = content.durable.clone();
            let last = rng.below(content.pending.len() + 1);
            for (number, change) in content.pending.iter().enumerate() {
                match cut {
                    Cut::Nothing => {}
                    Cut::Some if rng.is_hit(50) => change.apply(&mut bytes),
                    Cut::Torn => change.apply_torn(&mut bytes, rng),
                    Cut::UpTo if number < last => change.apply(&mut bytes),
                    Cut::UpTo if number == last => change.apply_torn(&mut bytes, rng),
                    Cut::Some | Cut::UpTo => {}
                }
            }
            fs::write(folder.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes: new } => put(bytes, *at, new),
            Self::Cut { length } => bytes.resize(*length, 0),
        }
    }

    /// Applies each sector independently or not.
    fn apply_torn(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        match self {
            Self::Write { at, bytes: new } => {
                let mut start = 0;
                while start < new.len() {
                    // Sectors are aligned to the disk, not to the write.
                    let end = new.len().min(start + SECTOR - (at + start) % SECTOR);
                    if rng.is_hit(50) {
                        put(bytes, at + start, &new[start..end]);
                    }
                    start = end;
                }
            }
            Self::Cut { .. } if rng.is_hit(50) => self.apply(bytes),
            Self::Cut { .. } => {}
        }
    }
}

fn put(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    if bytes.len() < at + new.len() {
        bytes.resize(at + new.len(), 0);
    }
    bytes[at..at + new.len()].copy_from_slice(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(call: Call) -> Event {
        Event { at: 0, path: "/data/file".into(), call }
    }

    fn write(at: usize, byte: u8, length: usize) -> Event {
        event(Call::Write { at, bytes: vec![byte; length] })
    }

    fn after(events: &[Event], cut: Cut, seed: u64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::default();
        for event in events {
            disk.apply(event);
        }
        disk.after_a_cut(cut, &mut Rng::seeded(seed), folder.path());
        fs::read(folder.path().join("file")).unwrap()
    }

    #[test]
    fn what_was_synchronised_is_there_and_the_rest_need_not_be() {
        let events = [write(0, 1, 600), event(Call::Sync), write(100, 2, 600)];
        assert_eq!(after(&events, Cut::Nothing, 1), [1; 600]);
        assert!((0..20).any(|seed| after(&events, Cut::Some, seed) == after(&events, Cut::Nothing, 1)));
        assert!((0..20).any(|seed| after(&events, Cut::Some, seed).len() == 700));
    }

    #[test]
    fn a_torn_write_is_torn_where_sectors_begin() {
        let events = [write(0, 1, 2048), event(Call::Sync), write(100, 2, 1500)];
        let torn = (0..50).map(|seed| after(&events, Cut::Torn, seed));
        let boundaries = |bytes: &[u8]| -> Vec<usize> {
            (1..bytes.len()).filter(|at| bytes[*at] != bytes[at - 1]).collect()
        };
        let mut seen = Vec::new();
        for bytes in torn {
            seen.extend(boundaries(&bytes));
        }
        assert!(seen.iter().all(|at| at % SECTOR == 0 || [100, 1600].contains(at)), "{seen:?}");
        assert!(seen.contains(&512) && seen.contains(&1024));
    }

    #[test]
    fn a_file_that_was_cut_may_have_its_old_length() {
        let events = [write(0, 1, 600), event(Call::Sync), event(Call::Cut { length: 0 })];
        assert_eq!(after(&events, Cut::Nothing, 1).len(), 600);
        assert!((0..20).any(|seed| after(&events, Cut::Some, seed).is_empty()));
    }

    #[test]
    fn what_is_kept_up_to_a_point_has_no_hole_before_it() {
        let events = [write(0, 1, 512), write(512, 2, 512), write(1024, 3, 512)];
        for seed in 0..50 {
            let bytes = after(&events, Cut::UpTo, seed);
            assert!(bytes.len() <= 512 || bytes[0] == 1, "{seed}");
            assert!(bytes.len() <= 1024 || bytes[512] == 2, "{seed}");
        }
    }
}
