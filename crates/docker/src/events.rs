//! Container events, by one stream of the engine.
//!
//! The stream is read continuously, because the engine drops events for a reader that is too slow. Callers
//! wait for an event counter to grow.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout_at},
};

use super::{
    containers::{Filters, NAME_PREFIX},
    labels,
    socket::Socket,
};

/// The delay before a stream is reopened.
const PAUSE: Duration = Duration::from_secs(1);
/// The most containers whose ownership is cached.
const MOST_KNOWN: usize = 10_000;
/// The events that are counted.
const EVENTS: [&str; 10] =
    ["start", "die", "oom", "destroy", "pause", "unpause", "stop", "kill", "connect", "disconnect"];

/// The counter of an installation's events.
#[derive(Debug)]
pub(super) struct EventCounter {
    /// Grows with every counted event, and whenever some may have been missed.
    number: watch::Sender<u64>,
    /// The number up to which events were delivered.
    told: Mutex<u64>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Default for EventCounter {
    fn default() -> Self {
        Self { number: watch::Sender::new(0), told: Mutex::default(), listener: Mutex::default() }
    }
}

impl EventCounter {
    /// Waits for undelivered events, and then for `together`, so that events in quick succession are
    /// delivered together. Returns whether there were some before `deadline`.
    pub(super) async fn wait(&self, deadline: Instant, together: Duration) -> bool {
        let told = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = self.number.subscribe();
        if timeout_at(deadline, number.wait_for(|number| *number > told)).await.is_err() {
            return false;
        }
        sleep(together.min(deadline.saturating_duration_since(Instant::now()))).await;
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = *self.number.borrow();
        true
    }

    /// Listens to the engine's events of the containers of `instance`, unless a listener runs already, from
    /// a time in nanoseconds since 1970 on.
    pub(super) fn listen(&self, socket: &Socket, instance: String, since: i64) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        // One whose runtime is gone has ended.
        if listener.as_ref().is_none_or(JoinHandle::is_finished) {
            let number = self.number.clone();
            let socket = socket.clone();
            let listen = Listener { socket, instance, since, number, ours: HashMap::new() };
            *listener = Some(tokio::spawn(listen.run()));
        }
    }
}

impl Drop for EventCounter {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listener.abort();
        }
    }
}

#[derive(Debug)]
struct Listener {
    socket: Socket,
    instance: String,
    since: i64,
    number: watch::Sender<u64>,
    /// The containers whose ownership was looked up, by their ids: true for ours.
    ours: HashMap<String, bool>,
}

impl Listener {
    async fn run(mut self) {
        // The label would leave out the events of networks, which have none.
        let filters = Filters::from([
            ("type", vec!["container".to_owned(), "network".to_owned()]),
            ("event", EVENTS.map(str::to_owned).to_vec()),
        ]);
        let mut is_broken = false;
        loop {
            match self.socket.events(&filters, self.since).await {
                Ok(mut stream) => {
                    if is_broken {
                        tracing::info!("event stream of the Docker engine opened again");
                        self.announce();
                    }
                    while let Some(lines) = stream.next().await {
                        for line in lines.split(|byte| *byte == b'\n') {
                            self.take(line).await;
                        }
                    }
                    tracing::warn!("event stream of the Docker engine ended");
                    // Something may have been missed, and the engine may be gone.
                    self.announce();
                }
                Err(error) => tracing::debug!(?error, "event stream of the Docker engine did not open"),
            }
            is_broken = true;
            sleep(PAUSE).await;
        }
    }

    fn announce(&self) {
        self.number.send_modify(|number| *number += 1);
    }

    async fn take(&mut self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(line) else { return };
        self.since = self.since.max(event.time_nano + 1);
        if self.counts(&event).await {
            self.announce();
        }
    }

    async fn counts(&mut self, event: &Event) -> bool {
        let attribute = |name: &str| event.actor.attributes.get(name).map(String::as_str);
        if event.kind == "container" {
            let is_ours = attribute(labels::INSTANCE) == Some(&self.instance)
                && attribute("name").is_some_and(|name| name.starts_with(NAME_PREFIX));
            if event.action == "destroy" {
                self.ours.remove(&event.actor.id);
            } else {
                self.remember(event.actor.id.clone(), is_ours);
            }
            return is_ours;
        }
        // Builds connect a container for each of their steps, which are of no interest.
        let Some(container) = attribute("container") else { return false };
        if let Some(is_ours) = self.ours.get(container) {
            return *is_ours;
        }
        let is_ours = self.belongs_to_installation(container).await;
        self.remember(container.to_owned(), is_ours);
        is_ours
    }

    async fn belongs_to_installation(&self, container: &str) -> bool {
        let Some(record) = self.socket.container(container).await else { return false };
        let name = record.get("Name").and_then(|name| name.as_str()).unwrap_or_default();
        let instance =
            record.get("Config").and_then(|config| config.get("Labels")?.get(labels::INSTANCE)?.as_str());
        name.trim_start_matches('/').starts_with(NAME_PREFIX) && instance == Some(&self.instance)
    }

    fn remember(&mut self, container: String, is_ours: bool) {
        if self.ours.len() >= MOST_KNOWN {
            self.ours.clear();
        }
        self.ours.insert(container, is_ours);
    }
}

/// An event, as the engine writes it.
#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "Type")]
    kind: String,
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Actor")]
    actor: Actor,
    #[serde(rename = "timeNano")]
    time_nano: i64,
}

#[derive(Debug, Deserialize)]
struct Actor {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Attributes")]
    attributes: BTreeMap<String, String>,
}
