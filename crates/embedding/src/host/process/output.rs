//! The output of a process: a file that it appends to, and the times at which its lines were seen.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
};

use chrono::{TimeDelta, Utc};
use launchway_domain::{clock::Timestamp, deployments::PrintedLine};

/// The output of one version.
pub(super) struct Output {
    pub(super) folder: PathBuf,
    /// The bytes of collected output after which the file is cut.
    pub(super) limit: u64,
}

/// The bytes of output that are read at once.
const BATCH: u64 = 256 * 1024;

/// Lines that were seen together. The time of each is a microsecond after the one before.
#[derive(Debug, Clone, Copy)]
struct Batch {
    first: i64,
    lines: i64,
    begin: u64,
    end: u64,
}

impl Batch {
    /// Returns whether every line is at or before `since`.
    fn is_before(&self, since: Option<Timestamp>) -> bool {
        since.is_some_and(|since| self.first + self.lines <= since.timestamp_micros() + 1)
    }
}

impl Output {
    /// Returns the lines after `since`, oldest first, at most `limit`. Lines up to `since` were collected.
    pub(super) fn read(&self, since: Option<Timestamp>, limit: usize) -> io::Result<Vec<PrintedLine>> {
        let mut file = match OpenOptions::new().read(true).append(true).open(self.folder.join("output")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut batches = self.batches()?;
        let collected = batches.iter().take_while(|batch| batch.is_before(since)).last().map(|last| last.end);
        if let Some(collected) = collected.filter(|collected| *collected > self.limit) {
            batches = self.cut(&mut file, &batches, collected)?;
        }
        let mut lines = Vec::new();
        for batch in batches.iter().filter(|batch| !batch.is_before(since)) {
            lines.extend(lines_of(&mut file, *batch)?.into_iter().filter(|line| is_after(line, since)));
        }
        while lines.len() < limit
            && let Some(batch) = self.see_more(&mut file, batches.last())?
        {
            lines.extend(lines_of(&mut file, batch)?.into_iter().filter(|line| is_after(line, since)));
            batches.push(batch);
        }
        lines.truncate(limit);
        Ok(lines)
    }

    /// Removes the first `length` bytes. What is printed at this very moment may be lost.
    fn cut(&self, file: &mut File, batches: &[Batch], length: u64) -> io::Result<Vec<Batch>> {
        let mut rest = Vec::new();
        file.seek(SeekFrom::Start(length))?;
        file.read_to_end(&mut rest)?;
        file.set_len(0)?;
        file.write_all(&rest)?;
        let left = batches.iter().filter(|batch| batch.begin >= length);
        let left: Vec<Batch> = left
            .map(|batch| Batch { begin: batch.begin - length, end: batch.end - length, ..*batch })
            .collect();
        // A new batch must not begin before the last one that was cut.
        let last = batches.iter().rfind(|batch| batch.end == length).filter(|_| left.is_empty());
        let mark = last.map(|last| Batch { first: last.first + last.lines, lines: 0, begin: 0, end: 0 });
        let left: Vec<Batch> = mark.into_iter().chain(left).collect();
        std::fs::write(self.folder.join("seen"), left.iter().map(Batch::to_string).collect::<String>())?;
        Ok(left)
    }

    /// Records when the next whole lines were seen.
    fn see_more(&self, file: &mut File, last: Option<&Batch>) -> io::Result<Option<Batch>> {
        let begin = last.map_or(0, |last| last.end);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(begin))?;
        file.take(BATCH).read_to_end(&mut bytes)?;
        // A line longer than a batch is cut.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let Some(length) = whole.or((bytes.len() as u64 == BATCH).then_some(bytes.len())) else {
            return Ok(None);
        };
        let first = now().max(last.map_or(0, |last| last.first + last.lines));
        let breaks = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
        let lines = i64::try_from(breaks.max(1)).unwrap_or(i64::MAX);
        let batch = Batch { first, lines, begin, end: begin + length as u64 };
        let mut seen = OpenOptions::new().create(true).append(true).open(self.folder.join("seen"))?;
        seen.write_all(batch.to_string().as_bytes())?;
        Ok(Some(batch))
    }

    fn batches(&self) -> io::Result<Vec<Batch>> {
        let seen = match std::fs::read_to_string(self.folder.join("seen")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let parse = |line: &str| {
            let mut numbers = line.split(' ').map(str::parse::<i64>);
            let mut next = || numbers.next()?.ok();
            let (first, lines) = (next()?, next()?);
            let [begin, end] = [u64::try_from(next()?).ok()?, u64::try_from(next()?).ok()?];
            Some(Batch { first, lines, begin, end })
        };
        Ok(seen.lines().filter_map(parse).collect())
    }
}

/// Writes a batch as a line of the file `seen`.
impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {} {} {}", self.first, self.lines, self.begin, self.end)
    }
}

#[expect(clippy::disallowed_methods, reason = "the time at which a line was seen is a fact of the host")]
fn now() -> i64 {
    Utc::now().timestamp_micros()
}

fn lines_of(file: &mut File, batch: Batch) -> io::Result<Vec<PrintedLine>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(batch.begin))?;
    file.take(batch.end - batch.begin).read_to_end(&mut bytes)?;
    let first = Timestamp::from_timestamp_micros(batch.first).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').zip(0..);
    let mut lines: Vec<PrintedLine> = lines
        .map(|(text, number)| PrintedLine {
            at: first + TimeDelta::microseconds(number),
            text: text.to_vec(),
        })
        .collect();
    if bytes.ends_with(b"\n") {
        lines.pop();
    }
    Ok(lines)
}

fn is_after(line: &PrintedLine, since: Option<Timestamp>) -> bool {
    since.is_none_or(|since| line.at > since)
}
