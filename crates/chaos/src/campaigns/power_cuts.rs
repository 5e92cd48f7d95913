//! Power cuts: possible disk images after one, rebuilt from the server's file operations.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use crate::{
    disk::{self, Cut, Disk, Event},
    harness::{Harness, Plan},
    load::{FAST, Load},
    options::Options,
    rng::Rng,
    section::Section,
    verdict::Question,
};

const METHOD: &str = "\
`strace` records every `pwrite64`, `ftruncate`, `fsync` and `fdatasync` of the server on its SQLite database and \
write-ahead log, with all bytes, while clients deploy sites without a pause. Afterwards the two files are rebuilt as \
a power cut at a random call could have left them. An image has everything that was synchronised. Of the other \
changes it has none, some, some sectors of 512 bytes, or all up to a torn one.\n\n\
The verifier opens each image, lets SQLite check it, and looks for everything that was acknowledged before that call \
began. The control is the same binary with one string changed, so that its last `PRAGMA` is `synchronous = NORMAL`. \
The model does not include disks that report an `fsync` as done before it is, or files that appear or disappear as a \
whole.";

/// The text in the binary that is changed for the control, and its replacement.
const GUARDED: &[u8] = b"PRAGMA journal_size_limit = 4194304;";
const UNGUARDED: &[u8] = b"PRAGMA synchronous = NORMAL        ;";
/// The duration of the load.
const LOAD: (u64, u64) = (2, 8);

/// The results of the images.
#[derive(Debug, Default)]
struct Seen {
    calls: usize,
    synchronisations: usize,
    acknowledged: usize,
    images: usize,
    unreadable: usize,
    damaged: usize,
    with_losses: usize,
    lost: usize,
}

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Power cuts", METHOD);
    let seen = cut(options, &options.server, options.count(40, 500));
    section.note(
        "calls traced / of them synchronisations",
        format!("{} / {}", seen.calls, seen.synchronisations),
    );
    section.note("deployments and log lines acknowledged", seen.acknowledged);
    section.note("images", seen.images);
    section.never("images that cannot be opened", seen.unreadable);
    section.never("images with damage", seen.damaged);
    section.never("images in which something acknowledged is missing", seen.with_losses);
    section.never("acknowledgements missing, in all images", seen.lost);

    let folder = tempfile::tempdir().unwrap();
    let control = without_guard(&options.server, folder.path());
    let seen = cut(options, &control, options.count(16, 100));
    section.note("control: images with `synchronous = NORMAL`", seen.images);
    section.note("control: of them damaged", seen.unreadable + seen.damaged);
    section.control("of them with something acknowledged missing", seen.with_losses);
    section
}

/// Creates a copy of the server that does not wait for the disk.
fn without_guard(server: &Path, folder: &Path) -> PathBuf {
    let mut binary = fs::read(server).unwrap();
    let places: Vec<usize> = (0..binary.len() - GUARDED.len())
        .filter(|at| binary[*at] == GUARDED[0] && binary[*at..].starts_with(GUARDED))
        .collect();
    assert_eq!((places.len(), GUARDED.len()), (1, UNGUARDED.len()), "the server has this text once");
    binary[places[0]..places[0] + GUARDED.len()].copy_from_slice(UNGUARDED);
    let copy = folder.join("launchway");
    fs::copy(server, &copy).unwrap();
    fs::write(&copy, binary).unwrap();
    copy
}

fn cut(options: &Options, server: &Path, images: usize) -> Seen {
    let mut harness = Harness::set(options, &Plan { sites: 3, ..Plan::default() });
    harness.server.terminate();
    let database = harness.data().join("launchway.db");
    let prefix = database.display().to_string();
    assert!(!Path::new(&format!("{prefix}-wal")).exists(), "a server that stops empties its log");
    let disk = Disk::with(&database);

    let trace = harness.folder().join("trace");
    harness.launch.binary = server.to_owned();
    harness.launch.wrapper = strace(&trace).into_iter().map(Into::into).collect();
    harness.restart();
    let load = Load::on(&harness, FAST);
    let (short, long) = LOAD;
    sleep(Duration::from_secs(if options.is_long { long } else { short }));
    harness.server.kill();
    load.end();

    let events = disk::read(&trace, &prefix).unwrap();
    let mut seen = Seen { calls: events.len(), ..Seen::default() };
    seen.synchronisations = events.iter().filter(|event| event.call == disk::Call::Sync).count();
    let question = Question { instance: None, ..harness.question() };
    look_at_images(&mut seen, disk, &events, &question, harness.folder(), images);
    seen
}

/// Only calls that change files, or their names, stop at the tracer. The server ends with it.
fn strace(output: &Path) -> Vec<String> {
    let calls = "pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,sync_file_range,\
                 unlink,unlinkat,rename,renameat,renameat2";
    let (output, calls) = (output.display().to_string(), format!("trace={calls}"));
    let tracing = ["strace", "-ff", "--seccomp-bpf", "-qq", "-ttt", "-xx", "-y", "-s", "1000000"];
    let more = ["-o", &output, "-e", &calls, "--", "setpriv", "--pdeathsig", "KILL"];
    tracing.into_iter().chain(more).map(str::to_owned).collect()
}

fn look_at_images(
    seen: &mut Seen,
    mut disk: Disk,
    events: &[Event],
    question: &Question,
    folder: &Path,
    images: usize,
) {
    assert!(events.len() > 100, "the server wrote too little: {} calls", events.len());
    let mut rng = Rng::seeded(42);
    let mut cuts: Vec<(usize, Cut)> = (0..images)
        .map(|number| (1 + rng.below(events.len() - 1), Cut::ALL[number % Cut::ALL.len()]))
        .collect();
    cuts.sort_by_key(|(at, _)| *at);
    let folder = folder.join("image");
    let mut done = 0;
    for (at, cut) in cuts {
        for event in &events[done..at] {
            disk.apply(event);
        }
        done = at;
        let _absent = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        disk.after_a_cut(cut, &mut rng, &folder);
        let image = folder.join("launchway.db");
        let question = Question {
            database: format!("sqlite:{}", image.display()),
            until: Some(events[at].at),
            ..question.clone()
        };
        seen.images += 1;
        match question.ask() {
            Ok(figures) => {
                let lost = figures.lost + figures.lines_lost;
                seen.acknowledged = seen.acknowledged.max(figures.accepted + figures.lines_shown);
                seen.damaged += usize::from(!figures.damage.is_empty() || figures.gaps > 0);
                seen.with_losses += usize::from(lost > 0);
                seen.lost += lost;
            }
            Err(problem) => {
                eprintln!("  an image at call {at}, {cut:?}: {problem}");
                seen.unreadable += 1;
            }
        }
    }
}
