//! Builds that are cancelled at another server, and servers that are stopped and started one after the other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{sleep, spawn},
    time::{Duration, Instant},
};

use launchway_testkit::{client::Client, docker::base_image};
use serde_json::json;

use super::{super::kills::seconds, SERVERS, fleet::Fleet};
use crate::{harness::DEPLOY, options::Options, repository, section::Section};

/// The time that a build takes which is to be cancelled.
const BUILD: usize = 60;
/// The time that a deployment gets to begin its build, and to end after its cancellation.
const LIMIT: Duration = Duration::from_secs(60);
/// The number of servers at which a call is tried before it has failed.
const TRIES: usize = 2 * SERVERS;

/// Cancels running builds at each of the servers in turn.
pub(super) fn cancel(options: &Options, section: &mut Section, fleet: &mut Fleet, goal: Duration) {
    let cancels = options.count(SERVERS, 10 * SERVERS);
    let base = base_image();
    let folder = fleet.tenants.harness.folder().join("repositories/slow");
    let dockerfile = format!("FROM {base}\nRUN sleep {BUILD}\nCMD [\"true\"]\n");
    let repository = repository::make(&folder, &[("Dockerfile", &dockerfile)]);
    let body = json!({
        "name": "slow", "repository": repository, "branch": "main", "port": 8080,
        "environment": "production", "build_pack": "dockerfile",
    });
    let created = fleet.admin(0).post(DEPLOY, &body).success();
    let id = created["id"].as_str().unwrap_or_default().to_owned();
    let mut deployment = created["deployments"][0]["id"].as_str().unwrap_or_default().to_owned();
    let (mut times, mut failed) = (Vec::new(), 0);
    for number in 0..cancels {
        if number > 0 {
            let again = fleet.admin(0).post(&format!("{DEPLOY}/redeploy"), &json!({ "id": id })).success();
            deployment = again["id"].as_str().unwrap_or_default().to_owned();
        }
        let begun = reaches(&fleet.admin(0), &deployment, "building");
        // The build itself has to have begun.
        sleep(Duration::from_millis(300));
        let cancelled = Instant::now();
        let path = format!("{DEPLOY}/cancel-deployment");
        let answer = fleet.admin(number % SERVERS).post(&path, &json!({ "id": deployment }));
        let is_cancelled =
            begun && answer.status == 200 && reaches(&fleet.admin(0), &deployment, "cancelled");
        failed += usize::from(!is_cancelled);
        times.push(cancelled.elapsed());
    }
    times.sort();
    let worst = times.last().copied().unwrap_or_default();
    section.note("builds that were cancelled, at each of the servers in turn", cancels);
    section.never("of them not cancelled", failed);
    // Beside other tests, the end of a build takes longer.
    let limit = if options.is_long { goal } else { LIMIT };
    section.goal(
        "longest time from a cancellation to the end of the deployment",
        seconds(worst),
        &format!("at most {}", seconds(limit)),
        worst <= limit,
    );
    fleet.admin(0).delete(&format!("{DEPLOY}?id={id}"));
}

/// Waits until a deployment is in that state.
fn reaches(client: &Client, deployment: &str, state: &str) -> bool {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        let shown = client.get(&format!("{DEPLOY}/deployments/{deployment}")).json();
        if shown["data"]["status"]["status"] == state {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

/// Stops and starts every server, one after the other, under calls to the API.
pub(super) fn roll(options: &Options, section: &mut Section, fleet: &mut Fleet) {
    let rounds = options.count(1, 5);
    let calls = Calls::start(fleet);
    let started = Instant::now();
    for _ in 0..rounds {
        for server in 0..SERVERS {
            fleet.terminate(server);
            fleet.start_again(server);
            sleep(Duration::from_millis(300));
        }
    }
    let (calls, repeated, failed) = calls.end();
    section.note("servers that were stopped and started, one after the other", rounds * SERVERS);
    section.note("time of all of them", seconds(started.elapsed()));
    section.note(
        "calls to the API meanwhile / repeated at another server",
        format_args!("{calls} / {repeated}"),
    );
    section.never("calls that failed", failed);
}

/// Clients that call the API all the time.
struct Calls {
    shared: Arc<Counted>,
    thread: std::thread::JoinHandle<()>,
}

#[derive(Default)]
struct Counted {
    is_over: AtomicBool,
    calls: AtomicUsize,
    repeated: AtomicUsize,
    failed: AtomicUsize,
}

impl Calls {
    fn start(fleet: &Fleet) -> Self {
        let clients: Vec<Client> = (0..SERVERS).map(|server| fleet.admin(server)).collect();
        let shared = Arc::new(Counted::default());
        let counted = Arc::clone(&shared);
        let thread = spawn(move || {
            for turn in 0.. {
                if counted.is_over.load(Ordering::Relaxed) {
                    break;
                }
                counted.calls.fetch_add(1, Ordering::Relaxed);
                let tried = (0..TRIES).find(|tried| succeeds(&clients[(turn + tried) % SERVERS]));
                counted
                    .repeated
                    .fetch_add(usize::from(tried.is_some_and(|tried| tried > 0)), Ordering::Relaxed);
                counted.failed.fetch_add(usize::from(tried.is_none()), Ordering::Relaxed);
                sleep(Duration::from_millis(10));
            }
        });
        Self { shared, thread }
    }

    /// Ends the calls; returns their number, and those that were repeated and that failed.
    fn end(self) -> (usize, usize, usize) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a thread that only counts");
        let number = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (number(&self.shared.calls), number(&self.shared.repeated), number(&self.shared.failed))
    }
}

fn succeeds(client: &Client) -> bool {
    client.try_send("GET", "/api/v1/deploy/applications", None).is_ok_and(|answer| answer.status == 200)
}
