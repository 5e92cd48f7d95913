//! Polls the command line of every process of the machine.

use std::{
    collections::HashSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::Duration,
};

/// The polling interval: shorter than the life of a child process.
const PAUSE: Duration = Duration::from_millis(3);

/// A thread that polls.
pub(crate) struct Watch {
    is_over: Arc<AtomicBool>,
    watching: JoinHandle<Seen>,
}

/// The observed command lines.
pub(crate) struct Seen {
    pub(crate) looks: usize,
    /// Every command line, once.
    pub(crate) lines: HashSet<Vec<u8>>,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::default());
        let end = Arc::clone(&is_over);
        let watching = spawn(move || {
            let mut seen = Seen { looks: 0, lines: HashSet::new() };
            while !end.load(Ordering::Relaxed) {
                seen.lines.extend(lines());
                seen.looks += 1;
                sleep(PAUSE);
            }
            seen
        });
        Self { is_over, watching }
    }

    pub(crate) fn end(self) -> Seen {
        self.is_over.store(true, Ordering::Relaxed);
        self.watching.join().expect("somebody who only looks")
    }
}

/// Returns the current command lines. Processes may end meanwhile.
fn lines() -> impl Iterator<Item = Vec<u8>> {
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten();
    entries
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| !line.is_empty())
}
