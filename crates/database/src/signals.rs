//! Signals of commits to the subscribers in this process.
//!
//! On SQLite the writer publishes them after each commit, by the [`epochs`] that triggers advanced. On
//! PostgreSQL triggers send a notification with the commit, and a [`listener`] receives those of every
//! replica.

pub(super) mod epochs;
mod listener;

use std::sync::Once;

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    signals::{Signal, SignalReceiver, Signals},
    store::StoreError,
};
use tokio::sync::watch;

use super::{Database, schema::routes_epoch};

impl Signals for Database {
    fn subscribe(&self) -> Box<dyn SignalReceiver> {
        Box::new(self.shared.signals.subscribe())
    }
}

impl Database {
    /// Returns a number that changes with every change to data that routes consist of.
    ///
    /// On SQLite this process makes the changes and caches the number; on PostgreSQL, where replicas make
    /// changes as well, this is a read.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn routes_epoch(&self) -> Result<i64, StoreError> {
        match &self.shared.writer {
            Some(writer) => Ok(writer.epochs().routes()),
            None => {
                self.read(|connection| {
                    Ok(routes_epoch::table.find(1).select(routes_epoch::value).first(connection)?)
                })
                .await
            }
        }
    }
}

/// The source of the signals of one database.
pub(super) struct SignalSource {
    publisher: Publisher,
    /// Only on PostgreSQL, where signals come through a connection of their own.
    url: Option<String>,
    /// Without a subscriber there is no connection.
    listener: Once,
}

impl SignalSource {
    /// Returns the source of the signals that the writer of a SQLite file publishes.
    pub(super) fn of_writer(publisher: Publisher) -> Self {
        Self { publisher, url: None, listener: Once::new() }
    }

    /// Returns the source of the signals of a PostgreSQL server.
    pub(super) fn of_server(url: &str) -> Self {
        Self { publisher: Publisher::default(), url: Some(url.to_owned()), listener: Once::new() }
    }

    fn subscribe(&self) -> Subscription {
        if let Some(url) = &self.url {
            self.listener.call_once(|| listener::start(url, self.publisher.clone()));
        }
        Subscription {
            published: self.publisher.0.subscribe(),
            seen: Counts::default(),
            last: Signal::Routes,
        }
    }

    /// Ends the subscriptions and the connection.
    pub(super) fn close(&self) {
        self.publisher.0.send_modify(|published| published.is_closed = true);
    }
}

impl Drop for SignalSource {
    fn drop(&mut self) {
        self.close();
    }
}

/// Publishes signals to the subscribers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Publisher(watch::Sender<Published>);

impl Publisher {
    fn publish(&self, signal: Signal) {
        self.0.send_modify(|published| *published.counts.of(signal) += 1);
    }

    /// Publishes both signals, because a commit may have been missed.
    pub(super) fn publish_all(&self) {
        self.publish(Signal::Jobs);
        self.publish(Signal::Routes);
    }

    fn is_closed(&self) -> bool {
        self.0.borrow().is_closed
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Published {
    counts: Counts,
    is_closed: bool,
}

/// The numbers of signals so far. They are 0 until signals arrive, so that a subscriber, which has seen none,
/// receives each once at first.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    jobs: u64,
    routes: u64,
}

impl Counts {
    fn of(&mut self, signal: Signal) -> &mut u64 {
        match signal {
            Signal::Jobs => &mut self.jobs,
            Signal::Routes => &mut self.routes,
        }
    }
}

struct Subscription {
    published: watch::Receiver<Published>,
    seen: Counts,
    last: Signal,
}

#[async_trait]
impl SignalReceiver for Subscription {
    async fn next(&mut self) -> Option<Signal> {
        loop {
            let Published { mut counts, is_closed } = *self.published.borrow_and_update();
            if is_closed {
                return None;
            }
            // In turn, so that a flood of one does not hold up the other.
            let order = match self.last {
                Signal::Jobs => [Signal::Routes, Signal::Jobs],
                Signal::Routes => [Signal::Jobs, Signal::Routes],
            };
            for signal in order {
                let count = *counts.of(signal);
                if std::mem::replace(self.seen.of(signal), count) != count {
                    self.last = signal;
                    return Some(signal);
                }
            }
            self.published.changed().await.ok()?;
        }
    }
}
