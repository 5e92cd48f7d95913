//! Crashes and errors at every write and every `fsync` of one deployment.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use launchway_verifier::figures::Figures;

use super::kills::seconds;
use crate::{
    harness::{DEPLOY, Harness, Plan},
    options::Options,
    section::Section,
    tracer::{Fault, Tracer},
};

const METHOD: &str = "\
The campaign runs one deployment after another on SQLite: of an application in a container for crashes, of a static \
site for errors. In each deployment, `strace` selects the n-th `pwrite64`, or the n-th `fsync` or `fdatasync`, of the \
thread that writes the database. That call kills the server (the rows that begin with `death`) or fails. n starts at \
1 and grows until a deployment finishes before its n-th call.\n\n\
After a crash the server is started again. After errors it is not restarted: it must answer reads meanwhile, and once \
the errors stop it must accept a deployment of another application and finish what it had accepted. Several \
installations share the points. The verifier compares after every point. The short form omits most points.";

/// The thread that writes to the database.
const WRITER: &str = "database-writer";
/// The positions of the applications that are deployed, and of the one that is deployed afterwards.
const SITE: usize = 0;
const OTHER: usize = 1;
const CONTAINER: usize = 2;
/// The number of installations that share the points: most of their time they wait.
const INSTALLATIONS: usize = 5;
const WRITES: &str = "pwrite64";
const SYNCS: &str = "fsync,fdatasync";
/// The timeout of one deployment, also when its job has to be recovered from a lost worker: the lease is 30
/// s, and expired leases are checked every 10 s.
const REST: Duration = Duration::from_secs(100);
/// The time within which the server must accept deployments after the errors have stopped.
const GOES_ON: Duration = Duration::from_secs(5);

/// A kind of fault, and the calls that it affects.
struct Kind {
    name: &'static str,
    calls: &'static str,
    fault: Fault,
    /// The number of points that the short form skips after each.
    short_stride: usize,
}

const KINDS: [Kind; 6] = [
    Kind { name: "death in a write", calls: WRITES, fault: Fault::Death, short_stride: 43 },
    Kind { name: "death in an fsync", calls: SYNCS, fault: Fault::Death, short_stride: 6 },
    Kind { name: "ENOSPC of one write", calls: WRITES, fault: Fault::Once("ENOSPC"), short_stride: 89 },
    Kind {
        name: "ENOSPC from a write on",
        calls: WRITES,
        fault: Fault::FromThenOn("ENOSPC"),
        short_stride: 89,
    },
    Kind { name: "EIO of one write", calls: WRITES, fault: Fault::Once("EIO"), short_stride: 89 },
    Kind { name: "EIO of one fsync", calls: SYNCS, fault: Fault::Once("EIO"), short_stride: 7 },
];

/// The observations at the points of a kind.
#[derive(Debug, Default)]
struct Seen {
    points: usize,
    /// The number of the last call that was reached.
    last: usize,
    accepted: usize,
    refused: usize,
    unanswered: usize,
    unread: usize,
    deaths: usize,
    did_not_go_on: usize,
    slowest: Duration,
    wrong: Vec<(usize, Figures)>,
}

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Every crash point of a deployment", METHOD);
    for (kind, seen) in KINDS.iter().zip(all_points(options)) {
        add_figures(&mut section, kind, &seen);
    }
    control(options, &mut section);
    section
}

fn add_figures(section: &mut Section, kind: &Kind, seen: &Seen) {
    let named = |what: &str| format!("{}: {what}", kind.name);
    for (point, figures) in &seen.wrong {
        eprintln!("  {} {point}: {figures:?}", kind.name);
    }
    section.note(&named("points tried"), format!("{} of the first {}", seen.points, seen.last));
    section.note(&named("deployments accepted / refused"), format!("{} / {}", seen.accepted, seen.refused));
    let sum =
        |figure: fn(&Figures) -> usize| seen.wrong.iter().map(|(_, figures)| figure(figures)).sum::<usize>();
    let counts = [
        sum(|figures| figures.lost),
        sum(|figures| figures.not_terminal),
        sum(|figures| figures.lines_lost + figures.gaps),
        sum(|figures| figures.leaked + figures.missing),
        sum(|figures| figures.damage.len()),
    ];
    let is_well = counts == [0; 5];
    let counts = counts.map(|count| count.to_string()).join(" / ");
    section.goal(
        &named("lost / not at their end / log lines lost / containers leaked or missing / damage"),
        counts,
        "0 / 0 / 0 / 0 / 0",
        is_well,
    );
    if kind.fault == Fault::Death {
        return;
    }
    section.never(&named("requests without an answer"), seen.unanswered);
    section.never(&named("reads refused meanwhile"), seen.unread);
    section.never(&named("ends of the server"), seen.deaths);
    section.never(&named("did not take another deployment within 5 s"), seen.did_not_go_on);
    section.note(&named("longest until everything was at its end"), seconds(seen.slowest));
}

/// The next point of each kind.
struct RunState {
    stride: usize,
    next: usize,
    end: usize,
}

/// Tries all points of all kinds; several installations take them in turn.
fn all_points(options: &Options) -> Vec<Seen> {
    let courses = KINDS.iter().map(|kind| {
        let stride = match kind.calls {
            WRITES => options.every(kind.short_stride),
            _ => options.count(kind.short_stride, 1),
        };
        RunState { stride, next: 1, end: usize::MAX }
    });
    let courses = Mutex::new(courses.collect::<Vec<_>>());
    let seen: Vec<_> = KINDS.iter().map(|_| Mutex::new(Seen::default())).collect();
    scope(|scope| {
        for installation in 0..INSTALLATIONS {
            let (courses, seen) = (&courses, &seen);
            scope.spawn(move || {
                let mut harness = Harness::set(options, &Plan { sites: 2, containers: 1, ..Plan::default() });
                let mut turn = installation;
                while let Some((kind, number)) = next_point(courses, &mut turn) {
                    if !one_point(&mut harness, &KINDS[kind], number, &seen[kind]) {
                        let course = &mut lock(courses)[kind];
                        course.end = course.end.min(number);
                    }
                }
            });
        }
    });
    seen.into_iter().map(|seen| seen.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Returns the next point of the next kind that has one left.
fn next_point(courses: &Mutex<Vec<RunState>>, turn: &mut usize) -> Option<(usize, usize)> {
    let mut courses = lock(courses);
    let count = courses.len();
    let kind = (0..count).map(|step| (*turn + step) % count).find(|kind| {
        let course = &courses[*kind];
        course.next < course.end
    })?;
    *turn = kind + 1;
    let course = &mut courses[kind];
    let number = course.next;
    course.next += course.stride;
    Some((kind, number))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries one point. Returns whether the deployment had that many calls.
fn one_point(harness: &mut Harness, kind: &Kind, number: usize, seen: &Mutex<Seen>) -> bool {
    // Only a crash can leave something on the engine; errors are tried faster with a site.
    let place = if kind.fault == Fault::Death { CONTAINER } else { SITE };
    let application = harness.applications[place].clone();
    let writer = harness.server.thread(WRITER);
    let tracer = Tracer::attach(writer, kind.calls, kind.fault, number, harness.folder());
    let status = harness.redeploy(&application);
    let has_injected = wait_for_the_end(harness, &application, &tracer);
    let is_read = harness.admin.try_send("GET", &format!("{DEPLOY}?id={application}"), None);
    // A killed process may take a moment to end.
    let has_ended = match kind.fault {
        Fault::Death if has_injected => harness.server.exits_within(GOES_ON),
        _ => harness.server.exit().is_some(),
    };
    drop(tracer);
    if !has_injected && !has_ended {
        return false;
    }
    let goes_on = match has_ended {
        true => {
            harness.restart();
            true
        }
        false => harness.accepts_within(&harness.applications[OTHER], GOES_ON).is_some(),
    };
    let (figures, rest) = harness.wait_until_finished(REST);
    let mut seen = lock(seen);
    seen.points += 1;
    seen.last = seen.last.max(number);
    if seen.points.is_multiple_of(10) {
        eprintln!("  {}: {} points", kind.name, seen.points);
    }
    match status {
        Some(200) => seen.accepted += 1,
        Some(_) => seen.refused += 1,
        None => seen.unanswered += 1,
    }
    seen.unread += usize::from(!is_read.is_ok_and(|answer| answer.status == 200));
    seen.deaths += usize::from(has_ended);
    seen.did_not_go_on += usize::from(!goes_on);
    seen.slowest = seen.slowest.max(rest);
    if figures.wrong() > 0 {
        seen.wrong.push((number, figures));
    }
    true
}

/// Waits until the fault was injected or the deployment has finished; returns whether it was injected.
fn wait_for_the_end(harness: &mut Harness, application: &str, tracer: &Tracer) -> bool {
    let started = Instant::now();
    let mut looks_idle = 0;
    while started.elapsed() < REST {
        if harness.server.exit().is_some() {
            return true;
        }
        if tracer.has_injected() {
            // Long enough for the error handling to complete.
            sleep(Duration::from_millis(300));
            return true;
        }
        let answer = harness.admin.try_send("GET", &format!("{DEPLOY}?id={application}"), None);
        let state = answer.ok().map(|answer| answer.json()["data"]["status"]["status"].clone());
        let is_idle = state.is_some_and(|state| state == "running" || state == "failed");
        // The job is completed slightly after the application is reported as running.
        looks_idle = if is_idle { looks_idle + 1 } else { 0 };
        if looks_idle >= 40 {
            return false;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("a deployment that no fault has struck is not over after {REST:?}");
}

/// A crash without a restart of the server: its deployment must not be in a final state.
fn control(options: &Options, section: &mut Section) {
    let mut harness = Harness::set(options, &Plan { sites: 1, ..Plan::default() });
    let writer = harness.server.thread(WRITER);
    let application = harness.applications[0].clone();
    let tracer = Tracer::attach(writer, SYNCS, Fault::Death, 3, harness.folder());
    harness.redeploy(&application);
    wait_for_the_end(&mut harness, &application, &tracer);
    drop(tracer);
    harness.server.kill();
    let figures =
        harness.ask_at_rest(Duration::from_secs(1)).ask().expect("the verifier can read everything");
    section
        .control("not at its end after a death, before the server was started again", figures.not_terminal);
}
