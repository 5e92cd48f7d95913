//! Parses the output of `docker logs --timestamps`.

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
use tokio::sync::Notify;

/// The engine splits a longer line into pieces of this size, each after the timestamp of the first.
const PIECE: usize = 16 * 1024;
/// The number of lines above the limit that are held before the latest ones are dropped.
const SLACK: usize = 4096;
/// The number of bytes of lines that are held before the later half is dropped.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// The most bytes of one line that are held: more than is ever shown, because some lines never end.
const LONGEST: usize = 64 * PIECE;

/// A line with the engine's timestamp in nanoseconds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StampedLine {
    pub(super) at: Timestamp,
    text: Vec<u8>,
    /// True if the rest of it is still to come: it has full pieces and no terminator.
    pub(super) is_begun: bool,
}

impl StampedLine {
    /// Parses `time text`; `None` for anything else.
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

    /// Returns the timestamp in microseconds, the precision used elsewhere.
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
    full: Notify,
}

#[derive(Debug, Default)]
struct Collected {
    lines: Vec<StampedLine>,
    /// The length of all lines together.
    bytes: usize,
    /// A line that is so long that it comes in pieces.
    begun: Vec<u8>,
    /// True if only a part of the begun line is held.
    is_cut: bool,
    /// The earliest timestamp of a dropped line. Later lines would hide that it is missing.
    until: Option<Timestamp>,
}

impl Collected {
    /// Adds a line, or a part of a line that is so long that it does not come in one piece.
    fn add(&mut self, line: &[u8]) {
        let is_ended = line.ends_with(b"\n");
        match StampedLine::read(line).filter(|_| !self.continues(line)) {
            Some(stamped) if is_ended => self.push(stamped),
            // Only the beginning of a line has a timestamp, so anything else belongs to the begun one.
            _ => self.go_on(line, is_ended),
        }
        if is_ended && self.begun.ends_with(b"\n") {
            self.is_cut = false;
            if let Some(stamped) = StampedLine::read(&mem::take(&mut self.begun)) {
                self.push(stamped);
            }
        }
    }

    fn push(&mut self, line: StampedLine) {
        self.bytes += line.text.len();
        self.lines.push(line);
    }

    /// Adds the next piece of the begun line, or only its terminator when enough of it is held.
    fn go_on(&mut self, piece: &[u8], is_ended: bool) {
        self.is_cut |= self.begun.len() + piece.len() > LONGEST;
        match (self.is_cut, is_ended) {
            (false, _) => self.begun.extend_from_slice(piece),
            (true, true) => self.begun.push(b'\n'),
            (true, false) => {}
        }
    }

    /// Keeps the `most` oldest lines.
    fn let_go_of_all_but(&mut self, most: usize) {
        self.lines.sort_by_key(|line| line.at);
        let next = self.lines.get(most).map(StampedLine::microsecond);
        self.until = self.until.into_iter().chain(next).min();
        self.lines.truncate(most);
        self.bytes = self.lines.iter().map(|line| line.text.len()).sum();
    }

    /// Returns whether `line` is the next piece of the begun line, which has the same timestamp as the
    /// first.
    fn continues(&self, line: &[u8]) -> bool {
        let stamp = self.begun.split_inclusive(|byte| *byte == b' ').next();
        stamp.is_some_and(|stamp| line.starts_with(stamp))
            && (self.is_cut || StampedLine::read(&self.begun).is_some_and(|begun| begun.is_begun))
    }
}

impl Lines {
    /// Returns a collector of the `most` oldest lines, and a few more.
    pub(super) fn oldest(most: usize) -> Self {
        Self { most, collected: Mutex::default(), full: Notify::new() }
    }

    /// Returns when there are enough lines: a container may print faster than it is read, for ever.
    pub(super) async fn full(&self) {
        self.full.notified().await;
    }

    /// Returns the lines so far, in the order in which they were printed.
    pub(super) fn take(&self) -> Vec<StampedLine> {
        let Collected { mut lines, begun, until, .. } = mem::take(&mut *self.collected());
        lines.extend(StampedLine::read(&begun));
        lines.sort_by_key(|line| line.at);
        if let Some(until) = until {
            let whole = lines.partition_point(|line| line.microsecond() < until);
            lines.truncate(if whole > 0 { whole } else { self.most });
        }
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
        let is_too_long = collected.bytes > MOST_BYTES;
        if is_too_long || collected.lines.len() > self.most.saturating_mul(2).saturating_add(SLACK) {
            let half = if is_too_long { collected.lines.len() / 2 } else { usize::MAX };
            collected.let_go_of_all_but(half.min(self.most.saturating_add(SLACK / 2)));
            self.full.notify_one();
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
    async fn a_flood_is_known_and_what_is_kept_of_it_has_no_gap() {
        let flood = Lines::oldest(5000);
        let text = "x".repeat(PIECE - 1);
        for number in 0..1000 {
            flood.write(format!("2026-01-02T03:04:05.{number:06}000Z {text}\n").as_bytes()).await;
        }
        flood.full().await;
        let kept = flood.take();
        assert!(kept.len() * PIECE <= MOST_BYTES && kept.len() > 100, "{}", kept.len());
        for (number, line) in kept.iter().enumerate() {
            assert_eq!(line.at.timestamp_subsec_micros() as usize, number);
        }
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_held_only_in_part() {
        let endless = Lines::oldest(10);
        let piece = format!("{STAMP} {}", "x".repeat(PIECE));
        for _ in 0..100 {
            endless.write(piece.as_bytes()).await;
        }
        assert!(endless.collected().begun.len() <= LONGEST);
        endless.write(format!("{STAMP} rest\n2026-01-02T03:04:06.000000000Z next\n").as_bytes()).await;
        let read = endless.take();
        assert_eq!(read.len(), 2);
        assert!(!read[0].text.ends_with(b"rest") && read[1].text == b"next");
    }

    #[tokio::test]
    async fn what_is_no_line_of_docker_is_left_out() {
        assert_eq!(lines(&["garbage\n", "2026-01-02 x\n", "\n"]).await, []);
    }
}
