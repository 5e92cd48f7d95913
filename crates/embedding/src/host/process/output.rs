//! The output of a process: a file that it appends to, and the times at which its lines were seen.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
};

use chrono::{TimeDelta, Utc};
use launchway_domain::{clock::Timestamp, deployments::PrintedLine};

/// The output of one version.
pub(super) struct Output {
    pub(super) folder: PathBuf,
    /// The bytes from which on the output is cut once it was read.
    pub(super) limit: u64,
}

/// The bytes of output that are read at once.
const BATCH: u64 = 256 * 1024;

/// Lines that were seen together. The time of each is a microsecond after the one before.
#[derive(Debug, Clone, Copy)]
struct Batch {
    first: i64,
    begin: u64,
    end: u64,
}

impl Output {
    /// Returns the lines after `since`, oldest first, at most `limit`.
    pub(super) fn read(&self, since: Option<Timestamp>, limit: usize) -> io::Result<Vec<PrintedLine>> {
        let mut file = match OpenOptions::new().read(true).write(true).open(self.folder.join("output")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut batches = self.batches()?;
        let mut lines = Vec::new();
        for batch in &batches {
            lines.extend(lines_of(&mut file, *batch)?.into_iter().filter(|line| is_after(line, since)));
        }
        while lines.len() < limit
            && let Some(batch) = self.see_more(&mut file, batches.last())?
        {
            lines.extend(lines_of(&mut file, batch)?.into_iter().filter(|line| is_after(line, since)));
            batches.push(batch);
        }
        lines.truncate(limit);
        if lines.is_empty() && file.metadata()?.len() > self.limit {
            // Everything was collected. What is printed at this moment may be lost.
            file.set_len(0)?;
            File::create(self.folder.join("seen"))?;
        }
        Ok(lines)
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
        let first = now().max(last.map_or(0, |last| last.first + count(last)));
        let batch = Batch { first, begin, end: begin + length as u64 };
        let mut seen = OpenOptions::new().create(true).append(true).open(self.folder.join("seen"))?;
        seen.write_all(format!("{} {} {}\n", batch.first, batch.begin, batch.end).as_bytes())?;
        Ok(Some(batch))
    }

    fn batches(&self) -> io::Result<Vec<Batch>> {
        let seen = match std::fs::read_to_string(self.folder.join("seen")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let parse = |line: &str| {
            let mut numbers = line.split(' ');
            let mut next = || numbers.next()?.parse::<u64>().ok();
            Some(Batch { first: i64::try_from(next()?).ok()?, begin: next()?, end: next()? })
        };
        Ok(seen.lines().filter_map(parse).collect())
    }
}

/// Returns an upper bound of the number of lines of a batch.
fn count(batch: &Batch) -> i64 {
    i64::try_from(batch.end - batch.begin).unwrap_or(i64::MAX)
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
