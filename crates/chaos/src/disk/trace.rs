//! Parses the output of `strace -ff -ttt -xx -y`.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A system call that changed a file, or made its changes durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The start of the call, in microseconds since 1970.
    pub(crate) at: u128,
    pub(crate) path: PathBuf,
    pub(crate) call: Call,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Write { at: usize, bytes: Vec<u8> },
    Cut { length: usize },
    Sync,
}

/// Returns the calls on files whose path begins with `prefix`, in their order. `output` is the argument of
/// `-o` of `strace`; each thread has a file of its own.
pub(crate) fn read(output: &Path, prefix: &str) -> Result<Vec<Event>, String> {
    let folder = output.parent().ok_or("a trace lies in a folder")?;
    let name = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut events = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
        let is_of_thread = entry
            .file_name()
            .to_string_lossy()
            .strip_prefix(&name)
            .is_some_and(|rest| rest.strip_prefix('.').is_some_and(|id| id.parse::<u32>().is_ok()));
        if is_of_thread {
            let text = fs::read(entry.path()).map_err(|error| error.to_string())?;
            // What the tracer was about to write when it ended has no end of line.
            let text = String::from_utf8_lossy(&text);
            for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
                events.extend(event(line, prefix)?);
            }
        }
    }
    events.sort_by_key(|event| event.at);
    Ok(events)
}

/// Parses a line, if it is about one of the files. Texts, also the paths, are in hexadecimal digits.
fn event(line: &str, prefix: &str) -> Result<Option<Event>, String> {
    if !line.contains(&digits(prefix)) {
        return Ok(None);
    }
    let unknown = || format!("a call that is not understood: {}", &line[..line.len().min(200)]);
    let (moment, call) = line.split_once(' ').ok_or_else(unknown)?;
    let (name, arguments) = call.trim_start().split_once('(').ok_or_else(unknown)?;
    // The last call of a thread that was killed has no result. It is unknown whether it was executed, and
    // as nothing was synchronised after it, it may be left out.
    let Some((arguments, result)) = arguments.rsplit_once(" = ") else {
        return if arguments.contains("<unfinished") { Ok(None) } else { Err(unknown()) };
    };
    if result.starts_with(['-', '?']) {
        return Ok(None);
    }
    let (_, rest) = arguments.split_once('<').ok_or_else(unknown)?;
    let (path, rest) = rest.split_once('>').ok_or_else(unknown)?;
    let path = String::from_utf8(bytes(path).ok_or_else(unknown)?).map_err(|error| error.to_string())?;
    let number = |text: &str| text.trim().trim_end_matches(')').parse::<usize>().ok();
    let call = match name {
        "pwrite64" => {
            let (before, at) = rest.rsplit_once(", ").ok_or_else(unknown)?;
            let text = before.split('"').nth(1).ok_or_else(unknown)?;
            let bytes = bytes(text).ok_or_else(unknown)?;
            let written = result.split_whitespace().next().and_then(number).ok_or_else(unknown)?;
            if bytes.len() < written {
                return Err(format!("a write was not traced whole: {} of {written} bytes", bytes.len()));
            }
            Call::Write { at: number(at).ok_or_else(unknown)?, bytes: bytes[..written].to_vec() }
        }
        "ftruncate" => Call::Cut { length: number(rest.trim_start_matches(", ")).ok_or_else(unknown)? },
        "fsync" | "fdatasync" => Call::Sync,
        _ => return Err(unknown()),
    };
    Ok(Some(Event { at: micros(moment).ok_or_else(unknown)?, path: path.into(), call }))
}

/// Formats a text as `strace` does.
fn digits(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// Parses `\x0a\xff` as bytes.
fn bytes(text: &str) -> Option<Vec<u8>> {
    text.split("\\x").skip(1).map(|digits| u8::from_str_radix(digits, 16).ok()).collect()
}

/// Parses `1763217000.123456` as microseconds.
fn micros(text: &str) -> Option<u128> {
    let (seconds, rest) = text.split_once('.')?;
    Some(seconds.parse::<u128>().ok()? * 1_000_000 + rest.parse::<u128>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: &str = "/data/launchway.db";

    /// Returns a line with a file in place of `FILE`.
    fn on(file: &str, line: &str) -> String {
        line.replace("FILE", &digits(file))
    }

    fn one(file: &str, line: &str) -> Option<Event> {
        event(&on(file, line), DATABASE).unwrap()
    }

    fn expected(path: &str, call: Call) -> Option<Event> {
        Some(Event { at: 1_763_217_000_123_456, path: path.into(), call })
    }

    #[test]
    fn writes_cuts_and_synchronisations_are_read() {
        let wal = "/data/launchway.db-wal";
        let line = r#"1763217000.123456 pwrite64(12<FILE>, "\x01\xff\x0a", 3, 4120) = 3"#;
        assert_eq!(one(wal, line), expected(wal, Call::Write { at: 4120, bytes: vec![1, 255, 10] }));
        let line = "1763217000.123456 ftruncate(12<FILE>, 0) = 0";
        assert_eq!(one(wal, line), expected(wal, Call::Cut { length: 0 }));
        assert_eq!(one(DATABASE, "1763217000.123456 fsync(3<FILE>) = 0"), expected(DATABASE, Call::Sync));
    }

    #[test]
    fn other_files_and_failed_calls_count_for_nothing() {
        assert_eq!(one("/data/secret.key", "1763217000.123456 fsync(3<FILE>) = 0"), None);
        let failed = "1763217000.123456 fsync(3<FILE>) = -1 EIO (Input/output error)";
        assert_eq!(one(DATABASE, failed), None);
        assert_eq!(one(DATABASE, "1763217000.123456 fsync(3<FILE>) = ?"), None);
    }

    #[test]
    fn a_call_that_the_model_does_not_know_is_refused() {
        let line = on(DATABASE, r#"1763217000.123456 unlink("FILE-wal") = 0"#);
        assert!(event(&line, DATABASE).is_err());
    }

    #[test]
    fn a_write_that_was_not_traced_whole_is_refused() {
        let line = on(DATABASE, r#"1763217000.123456 pwrite64(12<FILE>, "\x01"..., 3, 0) = 3"#);
        assert!(event(&line, DATABASE).is_err());
    }
}
