//! The state of every application after a fault, compared with the state that it should have.

use std::{
    thread::{ScopedJoinHandle, scope, sleep},
    time::{Duration, Instant},
};

use crate::{
    campaigns::kills::seconds,
    section::Section,
    tenants::{Application, Tenants},
};

/// The time within which every application that should run has to answer again.
pub(crate) const GOAL: Duration = Duration::from_secs(10);
/// The time for which an application is watched that is not back. It is the goal of the short form, which shares its machine
/// with other tests.
pub(crate) const WATCH: Duration = Duration::from_secs(30);
/// The time that deployments and other jobs get to reach their end.
const REST: Duration = Duration::from_secs(60);
/// The time that an application gets after it was repaired by another deployment.
const REPAIR: Duration = Duration::from_secs(60);

/// The number of looks at an application that was back before, of which one has to succeed.
const LOOKS: usize = 3;

/// The state that an application should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Running,
    Stopped,
    Deleted,
}

/// Measurements of all rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recovery {
    /// The time of each application that came back.
    times: Vec<Duration>,
    not_back: usize,
    away_again: usize,
    not_stopped: usize,
    not_terminal: usize,
    not_repaired: usize,
    server_ends: usize,
}

impl Recovery {
    /// Compares every application with its expected state, from now on. Applications that do not recover
    /// are deployed again, so that the next round begins with all of them.
    pub(crate) fn measure(&mut self, round: &str, tenants: &mut Tenants, expected: &[Expected]) {
        self.require_server(round, tenants);
        let missing = self.wait_for_all(round, tenants, expected);
        let (figures, rest) = tenants.harness.wait_until_finished(REST);
        self.not_terminal += figures.not_terminal;
        if figures.not_terminal > 0 {
            eprintln!("  {round}: {} open after {}", figures.not_terminal, seconds(rest));
        }
        for (position, expected) in expected.iter().enumerate() {
            match expected {
                Expected::Running if missing.contains(&position) => self.repair(tenants, position),
                Expected::Running => self.require_running(round, tenants, position),
                Expected::Stopped => self.require_stopped(round, tenants, position),
                Expected::Deleted => {}
            }
        }
    }

    /// Counts an application that was back and has gone away again.
    fn require_running(&mut self, round: &str, tenants: &mut Tenants, position: usize) {
        let application = &tenants.applications[position];
        if !(0..LOOKS).any(|_| tenants.answers(application)) {
            eprintln!("  {round}: {} was back, and is away again", application.name);
            eprint!("{}", tenants.log(application));
            self.away_again += 1;
            self.repair(tenants, position);
        }
    }

    fn require_stopped(&mut self, round: &str, tenants: &Tenants, position: usize) {
        let application = &tenants.applications[position];
        let status = tenants.status(application).unwrap_or_default();
        if status != "stopped" || tenants.answers(application) {
            eprintln!("  {round}: {} should be stopped, is `{status}`", application.name);
            self.not_stopped += 1;
        }
    }

    /// Waits until every application that should run is back; returns those that did not come back.
    fn wait_for_all(&mut self, round: &str, tenants: &Tenants, expected: &[Expected]) -> Vec<usize> {
        let started = Instant::now();
        let running = (0..expected.len()).filter(|position| expected[*position] == Expected::Running);
        // Each has a thread: a request to one that is away may take a second.
        let watched: Vec<_> = scope(|scope| {
            let threads = running.map(|position| {
                let watch = move || time_until_back(tenants, &tenants.applications[position], started);
                (position, scope.spawn(watch))
            });
            let threads: Vec<_> = threads.collect();
            let join = |thread: ScopedJoinHandle<'_, _>| thread.join().expect("a thread that only looks");
            threads.into_iter().map(|(position, thread)| (position, join(thread))).collect()
        });
        let times: Vec<_> = watched.iter().filter_map(|(_, time)| *time).collect();
        let missing = watched.iter().filter(|(_, time)| time.is_none()).map(|(position, _)| *position);
        let missing: Vec<_> = missing.collect();
        let worst = times.iter().max().copied().unwrap_or_default();
        eprintln!("  {round}: {} back after {}, {} not", times.len(), seconds(worst), missing.len());
        for position in &missing {
            let application = &tenants.applications[*position];
            let status = tenants.status(application).unwrap_or_default();
            let page = tenants.page(application).map_or(0, |page| page.status);
            eprintln!("  {round}: {} is `{status}`, answers {page}", application.name);
            eprint!("{}", tenants.log(application));
        }
        self.times.extend(times);
        self.not_back += missing.len();
        missing
    }

    fn repair(&mut self, tenants: &mut Tenants, position: usize) {
        let _requested = tenants.deploy(position);
        let started = Instant::now();
        while !tenants.answers(&tenants.applications[position]) {
            if started.elapsed() > REPAIR {
                eprintln!("  {} cannot be repaired", tenants.applications[position].name);
                self.not_repaired += 1;
                return;
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until one application answers again after it was started or created.
    pub(crate) fn wait_for(&mut self, tenants: &mut Tenants, position: usize) {
        let started = Instant::now();
        while !tenants.answers(&tenants.applications[position]) {
            if started.elapsed() > REPAIR {
                self.repair(tenants, position);
                return;
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Restarts a server that has exited.
    fn require_server(&mut self, round: &str, tenants: &mut Tenants) {
        if let Some(status) = tenants.harness.server.exit() {
            eprintln!("  {round}: the server ended by itself: {status}");
            self.server_ends += 1;
            tenants.start_server();
        }
    }

    /// Reports the recoveries, which may take as long as `goal`.
    pub(crate) fn report(&mut self, section: &mut Section, goal: Duration) {
        self.times.sort_unstable();
        let median = self.times.get(self.times.len() / 2).copied().unwrap_or_default();
        let worst = self.times.last().copied().unwrap_or_default();
        let late = self.times.iter().filter(|time| **time > goal).count() + self.not_back;
        section.note("recoveries measured", self.times.len() + self.not_back);
        section.note(
            "from the answer of the engine until an application answers: median / worst of those that did",
            format_args!("{} / {}", seconds(median), seconds(worst)),
        );
        section.never(&format!("applications not back and `running` within {} s", goal.as_secs()), late);
        section.never("applications that were back and away again", self.away_again);
        section.never("stopped applications that did not stay stopped", self.not_stopped);
        section.never("deployments and jobs not at their end 60 s after a round", self.not_terminal);
        section.never("ends of the server by itself", self.server_ends);
        section.never("applications that another deployment did not repair within 60 s", self.not_repaired);
    }
}

/// The time until an application answers and is `running`, if it does while it is watched.
fn time_until_back(tenants: &Tenants, application: &Application, started: Instant) -> Option<Duration> {
    while started.elapsed() < WATCH {
        if tenants.answers(application) && tenants.status(application).as_deref() == Some("running") {
            return Some(started.elapsed());
        }
        sleep(Duration::from_millis(50));
    }
    None
}
