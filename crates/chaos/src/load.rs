//! Callers who deploy, make applications and read logs, and note what was answered.

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
    chance::Chance,
    stage::{DEPLOY, Stage},
};

/// How many callers there are.
const CALLERS: usize = 3;
/// How many applications they make at most: each of them is compared, collected and listed.
const MOST_MADE: usize = 40;

/// How fast callers call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The shortest and the longest pause between two calls, in milliseconds.
    pub(crate) pause: (usize, usize),
}

/// Under which engine and worker have something to do all the time.
pub(crate) const STEADY: Pace = Pace { pause: (40, 160) };
/// One commit after the other.
pub(crate) const FAST: Pace = Pace { pause: (1, 8) };

/// Callers at work.
pub(crate) struct Load {
    shared: Arc<Shared>,
    callers: Vec<JoinHandle<()>>,
}

/// What callers were answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// How often each status was answered.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// How often nobody answered.
    pub(crate) unanswered: usize,
}

impl Tally {
    /// Answers that a caller cannot expect: neither a success nor "come back later".
    pub(crate) fn odd(&self) -> usize {
        let expected = [200, 503, 507];
        self.statuses.iter().filter(|(status, _)| !expected.contains(status)).map(|(_, count)| count).sum()
    }

    /// The statuses with how often each came.
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
    tally: Mutex<Tally>,
}

impl Load {
    /// Begins to call the server of that stage.
    pub(crate) fn on(stage: &Stage, pace: Pace) -> Self {
        let shared = Arc::new(Shared {
            client: stage.admin.clone(),
            ledger: Ledger::open(&stage.ledger()).unwrap(),
            applications: Mutex::new(stage.applications.clone()),
            shown: Mutex::default(),
            site: stage.site(""),
            made: AtomicUsize::default(),
            is_over: AtomicBool::default(),
            pace,
            tally: Mutex::default(),
        });
        let callers = (0..CALLERS).map(|number| {
            let shared = Arc::clone(&shared);
            spawn(move || shared.call(Chance::seeded(number as u64 + 1)))
        });
        Self { callers: callers.collect(), shared }
    }

    /// What was answered so far.
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.shared.tally).clone()
    }

    /// Ends it; gives what was answered.
    pub(crate) fn end(mut self) -> Tally {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for caller in self.callers.drain(..) {
            caller.join().expect("a caller that understands every answer");
        }
        self.tally()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn call(&self, mut chance: Chance) {
        while !self.is_over.load(Ordering::Relaxed) {
            let application = {
                let applications = lock(&self.applications);
                applications[chance.below(applications.len())].clone()
            };
            match chance.below(100) {
                0..60 => self.redeploy(&application),
                60..65 => self.create(),
                _ => self.read_log(&application),
            }
            let (from, to) = self.pace.pause;
            sleep(chance.millis(from, to));
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
        let mut wish = self.site.clone();
        // Others may have made some before, and it may not be known whether they did.
        wish["name"] = json!(format!("made-{}", now()));
        if let Some(data) = self.send("POST", DEPLOY, Some(&wish.to_string())) {
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

    /// The data of a success.
    fn send(&self, method: &str, path: &str, body: Option<&str>) -> Option<Value> {
        let answer = self.client.try_send(method, path, body).ok();
        let mut tally = lock(&self.tally);
        let Some(Answer { status, .. }) = answer.as_ref() else {
            tally.unanswered += 1;
            return None;
        };
        *tally.statuses.entry(*status).or_default() += 1;
        drop(tally);
        answer.filter(|answer| answer.status == 200).map(|answer| answer.json()["data"].clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
