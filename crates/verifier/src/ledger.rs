//! The ledger of acknowledgements, in their order.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// A fact that a client of the API knows for certain, because it was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// A deployment was accepted.
    Accepted {
        /// The id of the deployment in the response.
        deployment: String,
    },
    /// A log line was returned.
    Shown {
        /// The application of the log.
        application: String,
        /// The id of the line, which contains its position.
        line: String,
        /// The text of the line.
        text: String,
    },
}

/// A fact, and the latest time at which it was known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Microseconds since 1970, read after the response was received.
    pub at: u128,
    /// The acknowledged fact.
    #[serde(flatten)]
    pub fact: Fact,
}

/// A ledger that is open for writing.
#[derive(Debug)]
pub struct Ledger {
    file: File,
}

impl Ledger {
    /// Opens the ledger at `path` for appending, or creates it.
    ///
    /// # Errors
    /// Returns why the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    /// Appends a fact that has just been acknowledged. Several threads may append at once: a line is one
    /// write.
    ///
    /// # Errors
    /// Returns why the file cannot be written.
    pub fn note(&self, fact: Fact) -> io::Result<()> {
        self.enter(&Entry { at: now(), fact })
    }

    /// Appends a fact with its time.
    ///
    /// # Errors
    /// Returns why the file cannot be written.
    pub fn enter(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        (&self.file).write_all(&line)
    }
}

/// Returns the entries before `until`, or all.
///
/// # Errors
/// Returns why the file cannot be read.
pub fn read(path: &Path, until: Option<u128>) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let entry: Entry = serde_json::from_str(&line?)?;
        if until.is_none_or(|until| entry.at < until) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Returns the microseconds since 1970.
#[must_use]
pub fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(deployment: &str) -> Fact {
        Fact::Accepted { deployment: deployment.to_owned() }
    }

    #[test]
    fn what_was_noted_is_read_up_to_a_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let ledger = Ledger::open(&path).unwrap();
        let shown = Fact::Shown {
            application: "a".to_owned(),
            line: "b".to_owned(),
            text: "two\nlines\t\"quoted\"".to_owned(),
        };
        let first = Entry { at: 5, fact: shown };
        ledger.enter(&first).unwrap();
        ledger.note(accepted("c")).unwrap();
        assert_eq!(read(&path, Some(6)).unwrap(), [first]);
        let all = read(&path, None).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].fact, accepted("c"));
    }

    #[test]
    fn a_ledger_goes_on_where_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        for _ in 0..2 {
            Ledger::open(&path).unwrap().note(accepted("a")).unwrap();
        }
        assert_eq!(read(&path, None).unwrap().len(), 2);
    }
}
