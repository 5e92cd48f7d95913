use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use launchway_testkit::ids::id_of;

use super::*;

const LIMITS: StoreLimits = StoreLimits { bytes: 10_000, blocks: 20, parts: 5 };

fn store(folder: &Path, limits: StoreLimits) -> BlockStore {
    BlockStore { folder: folder.join("blocks"), limits }
}

fn organization(name: &str) -> OrganizationId {
    id_of(name).into()
}

/// Stores blocks as a part, and returns its path.
fn add(store: &BlockStore, blocks: &[&[u8]]) -> PathBuf {
    let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
    for block in blocks {
        writer.write_all(&(block.len() as u32).to_be_bytes()).unwrap();
        writer.write_all(block).unwrap();
    }
    let body = writer.finish().unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&body).unwrap();
    file.rewind().unwrap();
    let before = parts(store);
    let stored = store.store(organization("one"), (file, body.len() as u64)).unwrap();
    assert_eq!(stored.blocks, blocks.len());
    parts(store).into_iter().find(|path| !before.contains(path)).unwrap()
}

fn parts(store: &BlockStore) -> Vec<PathBuf> {
    let found = parts_in(&store.folder_of(organization("one"))).unwrap();
    found.into_iter().map(|part| part.path).collect()
}

/// Makes a part appear to be unused for this many days.
fn age(path: &Path, days: u64) {
    let time = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn has(store: &BlockStore, block: &[u8]) -> bool {
    store.open(organization("one")).unwrap().has(&BlockId::of(block))
}

#[test]
fn blocks_are_read_back_by_their_digests() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), LIMITS);
    add(&store, &[b"one", b"two"]);
    add(&store, &[b"three"]);
    let mut blocks = store.open(organization("one")).unwrap();
    for block in [&b"two"[..], b"three", b"one"] {
        let id = BlockId::of(block);
        assert_eq!(blocks.read(&id).unwrap().as_deref(), Some(block));
        assert_eq!(blocks.size(&id).unwrap().0, block.len() as u64);
    }
    assert_eq!(blocks.read(&BlockId::of(b"none")).unwrap(), None);
    assert!(!store.open(organization("two")).unwrap().has(&BlockId::of(b"one")));
}

#[test]
fn those_used_the_longest_time_ago_make_room() {
    for (limits, block) in [
        (StoreLimits { parts: 3, ..LIMITS }, 10),
        (StoreLimits { blocks: 3, ..LIMITS }, 10),
        (StoreLimits { bytes: 3 * 1056 + 10, ..LIMITS }, 1000),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), limits);
        let content = |number: u8| vec![number; block];
        let paths: Vec<PathBuf> = (1..=3).map(|number| add(&store, &[&content(number)])).collect();
        for (path, days) in paths.iter().zip([3, 2, 1]) {
            age(path, days);
        }
        // The first one is in use again.
        let used = [BlockId::of(&content(1))];
        store.open(organization("one")).unwrap().mark_used(used.into_iter()).unwrap();
        add(&store, &[&content(4)]);
        let there: Vec<bool> = (1..=4).map(|number| has(&store, &content(number))).collect();
        assert_eq!(there, [true, false, true, true], "{limits:?}");
    }
}

#[test]
fn unused_parts_and_old_drafts_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), LIMITS);
    store.remove_unused().unwrap();
    let (old, new) = (add(&store, &[b"old"]), add(&store, &[b"new"]));
    age(&old, 15);
    age(&new, 13);
    let place = store.folder_of(organization("one"));
    let (left, written) = (place.join(".draft-1"), place.join(".draft-2"));
    fs::write(&left, "x").unwrap();
    fs::write(&written, "x").unwrap();
    age(&left, 1);
    store.remove_unused().unwrap();
    assert!(!has(&store, b"old") && has(&store, b"new"));
    assert!(!left.exists() && written.exists());
    age(&new, 15);
    age(&written, 1);
    store.remove_unused().unwrap();
    store.remove_unused().unwrap();
    assert!(!place.exists());
}

#[test]
fn damaged_parts_are_removed_and_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), LIMITS);
    // Its content, its index, its end.
    for (position, is_listed) in [(0, true), (60, false), (99, false)] {
        let path = add(&store, &[&[b'x'; 50]]);
        let mut bytes = fs::read(&path).unwrap();
        let position = if position == 60 { 50 + 33 } else { position.min(bytes.len() - 1) };
        bytes[position] ^= 1;
        fs::write(&path, bytes).unwrap();
        let mut blocks = store.open(organization("one")).unwrap();
        let id = BlockId::of(&[b'x'; 50]);
        assert_eq!(blocks.has(&id), is_listed, "{position}");
        assert_eq!(blocks.read(&id).unwrap(), None, "{position}");
        assert!(!path.exists(), "{position}");
    }
    let short = store.folder_of(organization("one")).join("1.part");
    fs::write(&short, "short").unwrap();
    assert!(!has(&store, b"x") && !short.exists());
}

#[test]
fn a_refused_part_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), LIMITS);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"not gzipped").unwrap();
    file.rewind().unwrap();
    let refused = store.store(organization("one"), (file, 11));
    assert!(matches!(refused, Err(Refusal::Sentence(_))), "{refused:?}");
    assert_eq!(fs::read_dir(store.folder_of(organization("one"))).unwrap().count(), 0);
}
