//! Finds the heads in a client's bytes.

use super::{
    chunks::Chunks,
    head::{self, Framing},
};

/// Scans everything that a client sends, once.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    /// The beginning of an incomplete head.
    begun: Vec<u8>,
    most_bytes: usize,
    is_first: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    Body { left: u64 },
    Chunks(Chunks),
    TooLongHead,
    Beyond,
}

/// The position in the client's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    BeforeFirst,
    Between,
    InHead,
    InBody,
    /// Possibly in another protocol.
    Beyond,
}

/// An invalid byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The number of valid bytes before it.
    pub(super) good: usize,
    pub(super) is_in_head: bool,
    pub(super) reason: &'static str,
}

impl Scanner {
    /// Heads longer than `most_bytes` are left to hyper, which rejects them by their length.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { state: State::Head, begun: Vec::new(), most_bytes, is_first: true }
    }

    pub(super) fn place(&self) -> Place {
        match self.state {
            State::TooLongHead => Place::InHead,
            State::Head if !self.begun.is_empty() => Place::InHead,
            State::Head if self.is_first => Place::BeforeFirst,
            State::Head => Place::Between,
            State::Body { .. } | State::Chunks(_) => Place::InBody,
            State::Beyond => Place::Beyond,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut good = 0;
        while good < bytes.len() {
            let is_in_head = matches!(self.state, State::Head);
            match self.step(&bytes[good..]) {
                Ok(used) => good += used,
                Err(reason) => return Err(Fault { good, is_in_head, reason }),
            }
        }
        Ok(())
    }

    fn step(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        match &mut self.state {
            State::Head => self.step_in_head(bytes),
            State::Body { left } => {
                let step = (*left).min(bytes.len() as u64);
                *left -= step;
                if *left == 0 {
                    self.state = State::Head;
                }
                Ok(usize::try_from(step).unwrap_or(bytes.len()))
            }
            State::Chunks(chunks) => {
                let used = chunks.feed(bytes)?;
                if *chunks == Chunks::Over {
                    self.state = State::Head;
                }
                Ok(used)
            }
            State::TooLongHead | State::Beyond => Ok(bytes.len()),
        }
    }

    fn step_in_head(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        if self.begun.is_empty() {
            // Nearly always a head comes in one piece, and nothing has to be copied.
            if bytes.starts_with(b"\r\n") {
                return Ok(2);
            }
            return match head::end(bytes, 0)? {
                Some(end) => self.leave_head(head::framing(&bytes[..end])?, end),
                None => self.begin(bytes),
            };
        }
        let seen = self.begun.len();
        self.begun.extend_from_slice(bytes);
        match head::end(&self.begun, seen)? {
            Some(end) => {
                let framing = head::framing(&self.begun[..end])?;
                self.leave_head(framing, end - seen)
            }
            None => self.begin(&[]).map(|_| bytes.len()),
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        self.begun.extend_from_slice(bytes);
        if self.begun.len() > self.most_bytes {
            self.begun = Vec::new();
            self.state = State::TooLongHead;
        }
        Ok(bytes.len())
    }

    fn leave_head(&mut self, framing: Framing, used: usize) -> Result<usize, &'static str> {
        self.begun = Vec::new();
        self.is_first = false;
        self.state = match framing {
            Framing::Length(0) => State::Head,
            Framing::Length(left) => State::Body { left },
            Framing::Chunks => State::Chunks(Chunks::BEGIN),
            Framing::Upgrade => State::Beyond,
        };
        Ok(used)
    }
}
