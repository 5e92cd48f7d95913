//! The clock of the machine jumps while the server runs.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use super::kills::seconds;
use crate::{
    harness::{Harness, Plan},
    load::{Load, STEADY},
    options::Options,
    section::Section,
    verdict,
};

const METHOD: &str = "\
The server runs on SQLite with `libfaketime`, which reads its offset from a file: the wall clock of the server jumps, \
its monotonic clock does not. Under load, the clock jumps a day ahead, back, a day back, and ahead again, each time \
while deployments are queued and running. After each jump the clients pause, and everything must finish within 60 s \
of real time. A session lasts seven days, so it must stay valid through all of these jumps. Eight days ahead it must \
be refused.";

/// The offsets from the real time, one after the other.
const DAYS: [&str; 4] = ["+1d", "+0", "-1d", "+0"];
/// The time within which everything must finish after a jump: twice the lease of a job.
const REST: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Clock jumps of a day", METHOD);
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    jump(&offset, "+0");
    let settings = [
        ("LD_PRELOAD", library().expect("`libfaketime` is installed").display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", offset.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let plan = Plan { sites: 3, containers: 1, settings, ..Plan::default() };
    let mut harness = Harness::set(options, &plan);
    let rounds = options.count(1, 8);
    let (mut slowest, mut not_at_their_end, mut unexpected, mut last) = (Duration::ZERO, 0, 0, None);
    for _ in 0..rounds {
        for days in DAYS {
            let load = Load::on(&harness, STEADY);
            sleep(Duration::from_millis(1500));
            // Ends the load first: its requests would supersede the deployments that are queued at the
            // jump.
            let responses = load.end();
            jump(&offset, days);
            unexpected += responses.odd() + responses.unanswered;
            let (figures, rest) = harness.wait_until_finished(REST);
            eprintln!("  {days}: {} open after {}", figures.not_terminal, seconds(rest));
            not_at_their_end += figures.not_terminal;
            slowest = slowest.max(rest);
            last = Some(figures);
        }
    }
    let has_ended = harness.server.exit().is_some();
    section.note("jumps", rounds * DAYS.len());
    section.never("answers other than 200, or none", unexpected);
    section.never("ends of the server", usize::from(has_ended));
    section.never("deployments and jobs not at their end 60 s after a jump", not_at_their_end);
    section.note("longest until everything was at its end after a jump", seconds(slowest));
    let holds = session_is_accepted(&harness);
    section.goal("the session of the beginning holds", holds, "true", holds);
    let figures = last.expect("there was a jump");
    verdict::add_figures(&mut section, &figures);
    verdict::report_engine(&mut section, &figures);
    verdict::add_false_records(&mut section, &harness);
    jump(&offset, "+8d");
    section.control("eight days ahead the session is refused", usize::from(!session_is_accepted(&harness)));
    section
}

fn session_is_accepted(harness: &Harness) -> bool {
    harness.admin.get("/api/v1/user/settings").status == 200
}

/// Replaces the offset atomically: the server may read the file at any time.
fn jump(file: &Path, offset: &str) {
    let draft = file.with_extension("draft");
    fs::write(&draft, format!("{offset}\n")).unwrap();
    fs::rename(draft, file).unwrap();
}

/// Returns the library for multi-threaded programs, on any architecture.
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path());
    folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists())
}
