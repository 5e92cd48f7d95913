//! Reads what `docker logs --timestamps` prints.

use std::{
    mem,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound as _};
use launchway_domain::{
    clock::Timestamp,
    deployments::{Output, PrintedLine},
};

/// The engine cuts a longer line into pieces of this size, each behind the time of the first.
const PIECE: usize = 16 * 1024;
/// How many lines more than wanted are held before the latest ones are let go.
const SLACK: usize = 4096;

/// A line with its moment to the nanosecond, as the engine tells it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StampedLine {
    pub(super) at: Timestamp,
    text: Vec<u8>,
    /// Whether the rest of it is still to come: pieces that are full, and no end.
    pub(super) is_begun: bool,
}

impl StampedLine {
    /// Reads `time text`; `None` for anything else.
    fn read(line: &[u8]) -> Option<Self> {
        let (line, is_ended) = line.strip_suffix(b"\n").map_or((line, false), |line| (line, true));
        let space = line.iter().position(|byte| *byte == b' ')?;
        let (stamp, mut rest) = (line.get(..=space)?, line.get(space + 1..)?);
        let time = std::str::from_utf8(stamp.trim_ascii_end()).ok()?;
        let at = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        let mut text = Vec::with_capacity(rest.len());
        while let Some((piece, more)) = rest.split_at_checked(PIECE)
            && let Some(more) = more.strip_prefix(stamp)
        {
            text.extend_from_slice(piece);
            rest = more;
        }
        text.extend_from_slice(rest);
        let is_begun = !is_ended && rest.len() == PIECE;
        Some(Self { at, text, is_begun })
    }

    /// The same moment as everybody else counts it.
    pub(super) fn microsecond(&self) -> Timestamp {
        self.at.trunc_subsecs(6)
    }
}

impl From<StampedLine> for PrintedLine {
    fn from(line: StampedLine) -> Self {
        Self { at: line.microsecond(), text: line.text }
    }
}

/// Collects the lines of both outputs of a container, the oldest ones when there are many.
#[derive(Debug)]
pub(super) struct Lines {
    most: usize,
    collected: Mutex<Collected>,
}

#[derive(Debug, Default)]
struct Collected {
    lines: Vec<StampedLine>,
    /// A line that is so long that it comes in pieces.
    begun: Vec<u8>,
}

impl Collected {
    /// Takes a line, or a part of a line that is so long that it does not come in one piece.
    fn add(&mut self, line: &[u8]) {
        let is_ended = line.ends_with(b"\n");
        match StampedLine::read(line).filter(|_| !self.continues(line)) {
            Some(stamped) if is_ended => self.lines.push(stamped),
            // Only the beginning of a line has a time, so that anything else belongs to the begun one.
            _ => self.begun.extend_from_slice(line),
        }
        if is_ended && self.begun.ends_with(b"\n") {
            self.lines.extend(StampedLine::read(&mem::take(&mut self.begun)));
        }
    }

    /// Whether `line` is the next piece of the begun line, which has the same time as the first.
    fn continues(&self, line: &[u8]) -> bool {
        let stamp = self.begun.split_inclusive(|byte| *byte == b' ').next();
        stamp.is_some_and(|stamp| line.starts_with(stamp))
            && StampedLine::read(&self.begun).is_some_and(|begun| begun.is_begun)
    }
}

impl Lines {
    /// Keeps the `most` oldest lines, and a few more.
    pub(super) fn oldest(most: usize) -> Self {
        Self { most, collected: Mutex::default() }
    }

    /// The lines so far, in the order in which they were printed.
    pub(super) fn take(&self) -> Vec<StampedLine> {
        let Collected { mut lines, begun } = mem::take(&mut *self.collected());
        lines.extend(StampedLine::read(&begun));
        lines.sort_by_key(|line| line.at);
        lines
    }

    fn collected(&self) -> std::sync::MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Output for Lines {
    async fn write(&self, piece: &[u8]) {
        let mut collected = self.collected();
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            collected.add(line);
        }
        if collected.lines.len() > self.most.saturating_mul(2).saturating_add(SLACK) {
            collected.lines.sort_by_key(|line| line.at);
            collected.lines.truncate(self.most.saturating_add(SLACK / 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: &str = "2026-01-02T03:04:05.123456789Z";

    async fn lines(pieces: &[&str]) -> Vec<StampedLine> {
        let lines = Lines::oldest(1000);
        for piece in pieces {
            lines.write(piece.as_bytes()).await;
        }
        lines.take()
    }

    fn texts(lines: &[StampedLine]) -> Vec<String> {
        lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
    }

    #[tokio::test]
    async fn lines_of_both_outputs_are_in_the_order_of_their_times() {
        let read = lines(&[
            "2026-01-02T03:04:05.000000003Z c\n2026-01-02T03:04:05.000000004Z  d \r\n",
            "2026-01-02T03:04:05.000000001Z a\n2026-01-02T03:04:05.000000002Z \n",
            "2026-01-02T03:04:06.000000000Z last words",
        ])
        .await;
        assert_eq!(texts(&read), ["a", "", "c", " d \r", "last words"]);
        assert!(read.iter().all(|line| line.microsecond().timestamp_subsec_nanos() == 0));
    }

    #[tokio::test]
    async fn a_long_line_is_whole_again() {
        let (a, b) = ("a".repeat(PIECE), "b".repeat(PIECE));
        let text = format!("{STAMP} {a}{STAMP} {b}{STAMP} c\n");
        let whole = [format!("{a}{b}c")];
        assert_eq!(texts(&lines(&[&text]).await), whole);
        let other = "2026-01-02T03:04:06.000000000Z other\n";
        let second_stamp = STAMP.len() + 1 + PIECE;
        for cut in [20_000, second_stamp, second_stamp + 10, second_stamp + STAMP.len() + 1] {
            let (begin, end) = text.split_at(cut);
            assert_eq!(texts(&lines(&[begin, other, end]).await), [whole[0].as_str(), "other"], "{cut}");
        }
    }

    #[tokio::test]
    async fn a_line_whose_rest_is_still_to_come_is_known() {
        let full = "a".repeat(PIECE);
        assert!(lines(&[&format!("{STAMP} {full}")]).await[0].is_begun);
        assert!(!lines(&[&format!("{STAMP} {full}\n")]).await[0].is_begun);
        assert!(!lines(&[&format!("{STAMP} short")]).await[0].is_begun);
    }

    #[tokio::test]
    async fn the_oldest_lines_of_a_flood_are_kept() {
        let flood = Lines::oldest(10);
        for second in (0..60).rev() {
            let line = format!("2026-01-02T03:04:{second:02}.000000000Z {second}\n");
            flood.write(line.repeat(200).as_bytes()).await;
        }
        let kept = flood.take();
        assert!(kept.len() <= 10 * 2 + SLACK);
        assert!(texts(&kept)[..200].iter().all(|text| text == "0"));
    }

    #[tokio::test]
    async fn what_is_no_line_of_docker_is_left_out() {
        assert_eq!(lines(&["garbage\n", "2026-01-02 x\n", "\n"]).await, []);
    }
}
