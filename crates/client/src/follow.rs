//! Follows a log without lost or duplicate lines, across reconnects.

use std::{collections::HashSet, time::Duration};

use crate::{
    failure::{Failure, Outcome},
    records::{LogLine, Logs},
    server::{Request, Server, retry_for},
};

/// The largest number of lines of one request.
const BATCH: u32 = 1_000;
/// The time for which an unreachable server is retried: longer than a restart or an upgrade takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// A log that is followed from some line on.
pub(crate) struct Following<'a> {
    server: &'a Server,
    path: String,
    /// The id of the last line that was read. Ids of lines increase, so it is the whole position.
    seen: Option<String>,
}

impl<'a> Following<'a> {
    /// Follows the log at `path`, an endpoint of the API.
    pub(crate) fn new(server: &'a Server, path: impl Into<String>) -> Self {
        Self { server, path: path.into(), seen: None }
    }

    /// Returns the newest `count` lines, oldest first, and continues after them.
    pub(crate) fn newest(
        &mut self,
        count: u32,
        narrow: impl Fn(Request<'a>) -> Request<'a>,
    ) -> Outcome<Vec<LogLine>> {
        let mut known = HashSet::new();
        let mut lines: Vec<LogLine> = Vec::new();
        for page in 1.. {
            let request = self.request().with("page_size", count.clamp(1, BATCH)).with("page", page);
            let logs: Logs = narrow(request).receive()?;
            // New lines between two pages shift older ones onto the next page again.
            lines.extend(logs.logs.into_iter().filter(|line| known.insert(line.id.clone())));
            if lines.len() >= count as usize || !logs.pagination.has_next {
                break;
            }
        }
        lines.truncate(count as usize);
        lines.reverse();
        if let Some(line) = lines.last() {
            self.seen = Some(line.id.clone());
        }
        Ok(lines)
    }

    /// Skips the existing lines and continues after them.
    pub(crate) fn skip(&mut self, narrow: impl Fn(Request<'a>) -> Request<'a>) -> Outcome {
        self.newest(1, narrow).map(drop)
    }

    /// Returns the new lines, oldest first, up to the limit of one request; empty if there are none yet.
    /// Retries while the server is unreachable, and reports that by `lost`.
    pub(crate) fn next(
        &mut self,
        narrow: impl Fn(Request<'a>) -> Request<'a>,
        mut lost: impl FnMut(&Failure),
    ) -> Outcome<Vec<LogLine>> {
        let mut lines = Vec::new();
        if self.seen.is_none() {
            lines = retry_for(TIMEOUT, || self.beginning(&narrow), &mut lost)?;
            self.seen = lines.last().map(|line| line.id.clone());
        }
        if let Some(seen) = self.seen.clone() {
            let behind = || {
                let request = self.request().with("page_size", BATCH).with("after", &seen);
                narrow(request).receive::<Logs>()
            };
            lines.extend(retry_for(TIMEOUT, behind, lost)?.logs);
        }
        if let Some(line) = lines.last() {
            self.seen = Some(line.id.clone());
        }
        Ok(lines)
    }

    /// Returns whether there may be more lines after `lines`.
    pub(crate) fn has_more(lines: &[LogLine]) -> bool {
        lines.len() >= BATCH as usize
    }

    /// Returns the oldest line, as the position to continue from: pages count from the newest line, which
    /// changes.
    fn beginning(&self, narrow: &impl Fn(Request<'a>) -> Request<'a>) -> Outcome<Vec<LogLine>> {
        let mut page = 1;
        loop {
            let logs: Logs = narrow(self.request().with("page_size", 1).with("page", page)).receive()?;
            if !logs.pagination.has_next {
                return Ok(logs.logs);
            }
            // Lines that were added meanwhile change it, and then there is a next page again.
            page = logs.pagination.total_count;
        }
    }

    fn request(&self) -> Request<'a> {
        self.server.get(&self.path).with("embed", "none")
    }
}
