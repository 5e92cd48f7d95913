//! Reading a log on and on, without a lost or doubled line, whatever happens to the connection.

use std::{collections::HashSet, time::Duration};

use crate::{
    failure::{Failure, Outcome},
    records::{LogLine, Logs},
    server::{Request, Server, patiently},
};

/// The most lines that are asked for at once.
const BATCH: u32 = 1_000;
/// How long a server that does not answer is waited for: longer than a restart or an upgrade takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A log that is read from some line on.
pub(crate) struct Following<'a> {
    server: &'a Server,
    path: String,
    /// The last line that was read. Ids of lines rise, so it says all about where we are.
    seen: Option<String>,
}

impl<'a> Following<'a> {
    /// The log at `path`, a route of the API.
    pub(crate) fn new(server: &'a Server, path: impl Into<String>) -> Self {
        Self { server, path: path.into(), seen: None }
    }

    /// The newest `count` lines, oldest first; what comes is read from there on.
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
            // Lines that came between two pages push older ones onto the next page again.
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

    /// Everything that is there counts as read; what comes is read from there on.
    pub(crate) fn skip(&mut self, narrow: impl Fn(Request<'a>) -> Request<'a>) -> Outcome {
        self.newest(1, narrow).map(drop)
    }

    /// The lines that came since, oldest first, and at most so many as are asked for at once; none
    /// when there are none yet. Waits for a server that does not answer, and says so by `lost`.
    pub(crate) fn next(
        &mut self,
        narrow: impl Fn(Request<'a>) -> Request<'a>,
        mut lost: impl FnMut(&Failure),
    ) -> Outcome<Vec<LogLine>> {
        let mut lines = Vec::new();
        if self.seen.is_none() {
            lines = patiently(PATIENCE, || self.beginning(&narrow), &mut lost)?;
            self.seen = lines.last().map(|line| line.id.clone());
        }
        if let Some(seen) = self.seen.clone() {
            let behind = || {
                let request = self.request().with("page_size", BATCH).with("after", &seen);
                narrow(request).receive::<Logs>()
            };
            lines.extend(patiently(PATIENCE, behind, lost)?.logs);
        }
        if let Some(line) = lines.last() {
            self.seen = Some(line.id.clone());
        }
        Ok(lines)
    }

    /// Whether there may be more already behind `lines`.
    pub(crate) fn has_more(lines: &[LogLine]) -> bool {
        lines.len() >= BATCH as usize
    }

    /// The oldest line of all, as the place to go on from: pages count from the newest, which
    /// moves.
    fn beginning(&self, narrow: &impl Fn(Request<'a>) -> Request<'a>) -> Outcome<Vec<LogLine>> {
        let mut page = 1;
        loop {
            let logs: Logs = narrow(self.request().with("page_size", 1).with("page", page)).receive()?;
            if !logs.pagination.has_next {
                return Ok(logs.logs);
            }
            // It is another one by now if lines came since, and then there is a next page again.
            page = logs.pagination.total_count;
        }
    }

    fn request(&self) -> Request<'a> {
        self.server.get(&self.path).with("embed", "none")
    }
}
