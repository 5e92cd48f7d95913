//! Signals: commits that others wait for, of this process and of every replica.

use async_trait::async_trait;

/// A kind of change that a commit made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// A job was enqueued, cancelled, or returned to the queue.
    Jobs,
    /// Something changed that a route is made of: the host names or the deletion of an application, its live
    /// version, `is_stopped`, the container record of a deployment, or a route of an extension.
    Routes,
}

/// Announces commits after they are durable.
///
/// A subscriber receives each signal once at first, so that it reads the state from which it follows the
/// changes. From then on:
///
/// - every commit of any replica with such a change is followed by its signal. Several commits may have one
///   signal together.
/// - a commit without such a change has no signal.
/// - while the connection to the database is lost, there are none. Both follow when it is back.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Signals: Send + Sync {
    /// Subscribes to the signals.
    fn subscribe(&self) -> Box<dyn SignalReceiver>;
}

/// A subscription to [`Signals`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SignalReceiver: Send {
    /// Returns the next signal; `None` after the database was closed. Nothing is lost if the caller stops
    /// waiting.
    async fn next(&mut self) -> Option<Signal>;
}
