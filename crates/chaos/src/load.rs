//! Clients that deploy, create applications and read logs, and record the responses.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
};

use launchway_testkit::client::{Answer, Client};
use launchway_verifier::ledger::{Fact, Ledger, now};
use serde_json::{Value, json};

use crate::{
    harness::{DEPLOY, Harness},
    rng::Rng,
};

/// The number of clients.
const CALLERS: usize = 3;
/// The largest number of applications that they create: each of them is compared, collected and listed.
const MOST_MADE: usize = 40;

/// The pace of the requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The shortest and the longest pause between two requests, in milliseconds.
    pub(crate) pause: (usize, usize),
}

/// Keeps the engine and the worker busy.
pub(crate) const STEADY: Pace = Pace { pause: (40, 160) };
/// One commit after the other.
pub(crate) const FAST: Pace = Pace { pause: (1, 8) };

/// Running clients.
pub(crate) struct Load {
    shared: Arc<Shared>,
    callers: Vec<JoinHandle<()>>,
}

/// The responses to the clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseCounts {
    /// The number of responses with each status.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// The number of requests without a response.
    pub(crate) unanswered: usize,
}

impl ResponseCounts {
    /// Returns the number of unexpected responses: neither a success nor a request to retry later.
    pub(crate) fn odd(&self) -> usize {
        let expected = [200, 503, 507];
        self.statuses.iter().filter(|(status, _)| !expected.contains(status)).map(|(_, count)| count).sum()
    }

    /// Formats the statuses with their numbers.
    pub(crate) fn shown(&self) -> String {
        let statuses = self.statuses.iter().map(|(status, count)| format!("{status}: {count}"));
        let unanswered = (self.unanswered > 0).then(|| format!("none: {}", self.unanswered));
        statuses.chain(unanswered).collect::<Vec<_>>().join(", ")
    }
}

struct Shared {
    client: Client,
    ledger: Ledger,
    applications: Mutex<Vec<String>>,
    shown: Mutex<HashSet<String>>,
    site: Value,
    made: AtomicUsize,
    is_over: AtomicBool,
    pace: Pace,
    responses: Mutex<ResponseCounts>,
}

impl Load {
    /// Starts clients of the server of that harness.
    pub(crate) fn on(harness: &Harness, pace: Pace) -> Self {
        let shared = Arc::new(Shared {
            client: harness.admin.clone(),
            ledger: Ledger::open(&harness.ledger()).unwrap(),
            applications: Mutex::new(harness.applications.clone()),
            shown: Mutex::default(),
            site: harness.site(""),
            made: AtomicUsize::default(),
            is_over: AtomicBool::default(),
            pace,
            responses: Mutex::default(),
        });
        let callers = (0..CALLERS).map(|number| {
            let shared = Arc::clone(&shared);
            spawn(move || shared.call(Rng::seeded(number as u64 + 1)))
        });
        Self { callers: callers.collect(), shared }
    }

    /// Returns the responses so far.
    pub(crate) fn responses(&self) -> ResponseCounts {
        lock(&self.shared.responses).clone()
    }

    /// Stops the clients; returns the responses.
    pub(crate) fn end(mut self) -> ResponseCounts {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for caller in self.callers.drain(..) {
            caller.join().expect("a caller that understands every answer");
        }
        self.responses()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn call(&self, mut rng: Rng) {
        while !self.is_over.load(Ordering::Relaxed) {
            let application = {
                let applications = lock(&self.applications);
                applications[rng.below(applications.len())].clone()
            };
            match rng.below(100) {
                0..60 => self.redeploy(&application),
                60..65 => self.create(),
                _ => self.read_log(&application),
            }
            let (from, to) = self.pace.pause;
            sleep(rng.millis(from, to));
        }
    }

    fn redeploy(&self, application: &str) {
        let body = json!({ "id": application }).to_string();
        if let Some(data) = self.send("POST", &format!("{DEPLOY}/redeploy"), Some(&body)) {
            self.accepted(&data["id"]);
        }
    }

    fn create(&self) {
        if self.made.fetch_add(1, Ordering::Relaxed) >= MOST_MADE {
            return;
        }
        let mut options = self.site.clone();
        // Other clients may have created some before, acknowledged or not.
        options["name"] = json!(format!("made-{}", now()));
        if let Some(data) = self.send("POST", DEPLOY, Some(&options.to_string())) {
            self.accepted(&data["deployments"][0]["id"]);
            lock(&self.applications).push(data["id"].as_str().unwrap().to_owned());
        }
    }

    fn read_log(&self, application: &str) {
        let path = format!("{DEPLOY}/logs/{application}?page_size=100&embed=none");
        let Some(data) = self.send("GET", &path, None) else { return };
        for line in data["logs"].as_array().unwrap() {
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            if lock(&self.shown).insert(text("id")) {
                let fact =
                    Fact::Shown { application: application.to_owned(), line: text("id"), text: text("log") };
                self.ledger.note(fact).unwrap();
            }
        }
    }

    fn accepted(&self, deployment: &Value) {
        let deployment = deployment.as_str().unwrap().to_owned();
        self.ledger.note(Fact::Accepted { deployment }).unwrap();
    }

    /// Returns the data of a success.
    fn send(&self, method: &str, path: &str, body: Option<&str>) -> Option<Value> {
        let answer = self.client.try_send(method, path, body).ok();
        let mut responses = lock(&self.responses);
        let Some(Answer { status, .. }) = answer.as_ref() else {
            responses.unanswered += 1;
            return None;
        };
        *responses.statuses.entry(*status).or_default() += 1;
        drop(responses);
        answer.filter(|answer| answer.status == 200).map(|answer| answer.json()["data"].clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
