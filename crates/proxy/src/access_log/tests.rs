//! Lost lines, torn lines and rotation.

use std::{
    fs,
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::PathBuf,
    sync::{
        LazyLock,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use http::{Method, Uri};
use serde_json::Value;

use super::*;

fn entry(number: u64) -> Entry<'static> {
    static URI: LazyLock<Uri> = LazyLock::new(|| Uri::from_static("/"));
    Entry {
        time: SystemTime::UNIX_EPOCH,
        application: Some("shop"),
        host: b"shop.example",
        method: &Method::GET,
        uri: &URI,
        status: 200,
        bytes_in: number,
        bytes_out: 0,
        duration: Duration::ZERO,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
    }
}

/// The size of the longest line of these tests.
fn line_bytes() -> usize {
    let mut bytes = 0;
    entry(99).with_line(|line| bytes = line.len());
    bytes
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(path: &Path) -> Vec<u64> {
    lines(path).iter().map(|line| line["bytes_in"].as_u64().unwrap()).collect()
}

fn aside(path: &Path, number: u32) -> PathBuf {
    PathBuf::from(format!("{}.{number}", path.display()))
}

fn log_of(path: &Path, most_bytes: u64) -> AccessLog {
    AccessLog::start(MOST_WAITING, RotatedFile::open(path, most_bytes).unwrap()).unwrap()
}

#[test]
fn every_request_is_a_line_of_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = AccessLog::open(&path).unwrap();
    (0..1000).for_each(|number| log.note(&entry(number)));
    drop(log);
    assert_eq!(numbers(&path), (0..1000).collect::<Vec<_>>());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_others_could_read_becomes_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(AccessLog::open(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_link_or_a_folder_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    symlink(folder.path().join("elsewhere"), folder.path().join("link")).unwrap();
    assert!(AccessLog::open(&folder.path().join("link")).is_err());
    assert!(AccessLog::open(folder.path()).is_err());
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn a_log_that_is_off_notes_nothing() {
    AccessLog::off().note(&entry(1));
}

#[test]
fn a_full_file_is_put_aside_and_three_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    for number in 0..5 {
        // Each is written alone and fills its file.
        let log = log_of(&path, 10);
        log.note(&entry(number));
    }
    assert_eq!(numbers(&path), Vec::<u64>::new());
    assert_eq!(numbers(&aside(&path, 1)), [4]);
    assert_eq!(numbers(&aside(&path, 2)), [3]);
    assert!(!aside(&path, 3).exists());
    assert_eq!(fs::metadata(aside(&path, 1)).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_file_is_full_at_its_size_and_not_a_byte_before() {
    let folder = tempfile::tempdir().unwrap();
    for (name, most_bytes, is_put_aside) in [("below", 11, false), ("at", 10, true), ("above", 9, true)] {
        let path = folder.path().join(name);
        let mut file = RotatedFile::open(&path, most_bytes).unwrap();
        file.append(b"123456789\n").unwrap();
        assert_eq!(aside(&path, 1).exists(), is_put_aside, "{name}");
    }
}

#[test]
fn two_processes_append_to_one_file_across_a_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let mut old = RotatedFile::open(&path, 20).unwrap();
    let mut new = RotatedFile::open(&path, 20).unwrap();
    old.append(b"old 1\n").unwrap();
    new.append(b"new 1\n").unwrap();
    old.append(b"old 2 fills\n").unwrap();
    new.append(b"new 2\n").unwrap();
    old.append(b"old 3\n").unwrap();
    assert_eq!(fs::read_to_string(aside(&path, 1)).unwrap(), "old 1\nnew 1\nold 2 fills\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new 2\nold 3\n");
    assert!(!aside(&path, 2).exists());
}

#[test]
fn two_that_write_at_once_lose_and_tear_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    thread::scope(|scope| {
        for writer in 0..2 {
            let path = &path;
            scope.spawn(move || {
                let mut file = RotatedFile::open(path, 40_000).unwrap();
                (0..500).for_each(|number| {
                    file.append(format!("{writer} {number:0>60}\n").as_bytes()).unwrap();
                });
            });
        }
    });
    let all: String = [aside(&path, 2), aside(&path, 1), path.clone()]
        .iter()
        .map(|path| fs::read_to_string(path).unwrap_or_default())
        .collect();
    assert!(aside(&path, 1).exists());
    assert_eq!(all.lines().count(), 1000);
    assert!(all.lines().all(|line| line.len() == 62));
}

#[test]
fn nobody_waits_for_a_process_that_is_putting_the_file_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let mut file = RotatedFile::open(&path, 3).unwrap();
    let other = fs::File::open(&path).unwrap();
    other.lock().unwrap();
    file.append(b"one\n").unwrap();
    file.append(b"two\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    drop(other);
    file.append(b"three\n").unwrap();
    assert_eq!(fs::read_to_string(aside(&path, 1)).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn a_file_that_was_removed_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let mut file = RotatedFile::open(&path, 1000).unwrap();
    file.append(b"1\n").unwrap();
    fs::remove_file(&path).unwrap();
    file.append(b"2\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
}

#[test]
fn a_line_that_was_torn_spoils_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    fs::write(&path, "whole\ntor").unwrap();
    RotatedFile::open(&path, 1000).unwrap().append(b"next\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole\ntor\nnext\n");
}

/// A disk that accepts lines only when the test allows it.
struct SlowDisk {
    permits: Receiver<io::Result<()>>,
    written: Sender<Vec<u8>>,
}

impl Lines for SlowDisk {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.permits.recv().unwrap_or(Ok(()))?;
        self.written.send(lines.to_vec()).map_err(io::Error::other)
    }
}

/// The number of requests that were logged, and the number that were reported as lost.
fn noted(written: &Receiver<Vec<u8>>) -> (u64, u64) {
    let text = String::from_utf8(written.iter().flatten().collect()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lost = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
    (lines.iter().filter(|line| line.get("lost").is_none()).count() as u64, lost)
}

#[test]
fn requests_do_not_wait_for_a_slow_disk_and_losses_are_counted() {
    let ((permit, permits), (sender, written)) = (channel(), channel());
    let log = AccessLog::start(10 * line_bytes(), SlowDisk { permits, written: sender }).unwrap();
    // Nothing can be written yet, so all but a few are lost, and none of these calls waits.
    (0..100).for_each(|number| log.note(&entry(number)));
    drop(permit);
    drop(log);
    let (requests, lost) = noted(&written);
    assert_eq!(requests + lost, 100);
    assert!((10..=30).contains(&requests), "{requests}");
}

#[test]
fn what_a_full_disk_refused_is_counted_too() {
    let ((permit, permits), (sender, written)) = (channel(), channel());
    let log = AccessLog::start(100 * line_bytes(), SlowDisk { permits, written: sender }).unwrap();
    permit.send(Err(io::Error::from(ErrorKind::StorageFull))).unwrap();
    (0..50).for_each(|number| log.note(&entry(number)));
    drop(permit);
    drop(log);
    let (requests, lost) = noted(&written);
    assert_eq!(requests + lost, 50);
    assert!(lost > 0);
}
