//! Follows a log: returns its lines as they are appended.

use std::time::Duration;

use launchway_domain::{
    auth::Actor,
    logs::{LogLine, LogLineId},
};
use tokio::time::Instant;

use super::{Logs, OpenLog, StreamPermit};
use crate::Error;

/// The number of lines that are read at once.
const BATCH: i64 = 500;
/// The time without a line after which a front end sends a sign of life, so that proxies do not close the
/// connection.
const SIGN_EVERY: Duration = Duration::from_secs(15);

/// The result of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// New lines, oldest first.
    Lines(Vec<LogLine>),
    /// No new line, though more may follow.
    Nothing,
    /// The log is complete.
    End,
}

/// The position of a stream in a log. A stream polls, because other servers append lines too.
#[derive(Debug)]
pub struct LogFollower {
    log: OpenLog,
    seen: Option<LogLineId>,
    last_sign: Instant,
    _permit: StreamPermit,
}

impl LogFollower {
    /// The interval of polls.
    pub const INTERVAL: Duration = Duration::from_millis(250);

    /// Returns a follower of the lines after `seen`, or of all. It holds `permit` as long as it exists.
    #[must_use]
    pub fn new(log: OpenLog, seen: Option<LogLineId>, permit: StreamPermit) -> Self {
        Self { log, seen, last_sign: Instant::now(), _permit: permit }
    }

    /// Returns the next lines. The actor is authenticated anew by the caller from time to time.
    ///
    /// # Errors
    /// As [`Logs::lines_after`] and [`Logs::is_complete`].
    pub async fn poll(&mut self, logs: &Logs, actor: &Actor) -> Result<Followed, Error> {
        // Checked first, so that a line between the two queries is not missed.
        let is_complete = logs.is_complete(actor, &self.log).await?;
        let lines = logs.lines_after(actor, &self.log, self.seen, BATCH).await?;
        Ok(match lines.last() {
            Some(last) => {
                self.seen = Some(last.id());
                self.last_sign = Instant::now();
                Followed::Lines(lines)
            }
            None if is_complete => Followed::End,
            None => Followed::Nothing,
        })
    }

    /// Returns whether a sign of life is due, and counts it as sent.
    pub fn needs_sign(&mut self) -> bool {
        let is_due = self.last_sign.elapsed() >= SIGN_EVERY;
        if is_due {
            self.last_sign = Instant::now();
        }
        is_due
    }
}
