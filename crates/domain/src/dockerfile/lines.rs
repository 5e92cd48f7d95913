//! The lines of a Dockerfile: directives, comments and continuations.

use std::collections::HashSet;

use super::{Escape, Rejection, excerpt};

/// The frontends that parse Dockerfiles as the engine itself does.
const FRONTENDS: [&str; 2] = ["docker/dockerfile", "docker/dockerfile-upstream"];

/// An instruction's text without comments and continuations.
pub(super) struct LogicalLine {
    /// The number of its first physical line.
    pub(super) number: usize,
    /// The text without spaces at both ends.
    pub(super) text: String,
}

/// Splits a file into instructions.
pub(super) fn logical_lines(bytes: &[u8]) -> Result<(Escape, Vec<LogicalLine>), Rejection> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let physical: Vec<&[u8]> =
        bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
    let escape = directives(&physical)?;
    let mut found = Vec::new();
    let mut lines = physical.iter().enumerate().map(|(index, line)| (index + 1, *line));
    while let Some((number, first)) = lines.next() {
        if is_blank_or_comment(first) {
            continue;
        }
        let (mut text, mut continues) = without_continuation(decode(first, number)?, escape);
        while continues && let Some((number, next)) = lines.next() {
            if is_blank_or_comment(next) {
                continue;
            }
            let (more, still) = without_continuation(decode(next, number)?, escape);
            text.push_str(&more);
            continues = still;
        }
        let text = text.trim_matches([' ', '\t']);
        if text.ends_with(escape.as_char()) {
            let reason = format!(
                "the instruction ends with an escaped `{}`, which versions of the engine read differently",
                escape.as_char()
            );
            return Err(Rejection { line: number, reason });
        }
        if !text.is_empty() {
            found.push(LogicalLine { number, text: text.to_owned() });
        }
    }
    Ok((escape, found))
}

/// Checks that text has no character that the engine could take for a space or the end of a line.
pub(super) fn check_characters(text: &str) -> Result<(), String> {
    let is_refused = |c: char| (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\t');
    match text.chars().find(|c| is_refused(*c)) {
        None => Ok(()),
        Some(c) => Err(format!(
            "the character U+{:04X} is not accepted: only spaces and tabs may separate words",
            u32::from(c)
        )),
    }
}

fn decode(line: &[u8], number: usize) -> Result<&str, Rejection> {
    let reject = Rejection::at(number);
    let text =
        std::str::from_utf8(line).map_err(|_invalid| reject("the text is not valid UTF-8".to_owned()))?;
    check_characters(text).map_err(reject)?;
    Ok(text)
}

fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(line.iter().find(|byte| !matches!(byte, b' ' | b'\t')), None | Some(b'#'))
}

fn without_continuation(line: &str, escape: Escape) -> (String, bool) {
    let trimmed = line.trim_end_matches([' ', '\t']);
    match trimmed.strip_suffix(escape.as_char()) {
        Some(before) if !before.ends_with(escape.as_char()) => (before.to_owned(), true),
        _ => (line.to_owned(), false),
    }
}

/// Reads the parser directives, which are the first comments of a file.
fn directives(lines: &[&[u8]]) -> Result<Escape, Rejection> {
    let mut escape = Escape::Backslash;
    let mut seen = HashSet::new();
    for (index, line) in lines.iter().enumerate() {
        let reject = Rejection::at(index + 1);
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = directive(&line) else { break };
        if !matches!(name.as_str(), "escape" | "syntax" | "check") {
            continue;
        }
        if !seen.insert(name.clone()) {
            return Err(reject(format!("the directive `{name}` is there twice")));
        }
        match (name.as_str(), value) {
            ("escape", "\\") => {}
            ("escape", "`") => escape = Escape::Backtick,
            ("escape", _) => return Err(reject("`# escape=` takes `\\` or a backtick".to_owned())),
            ("syntax", value) if !is_frontend(value) => {
                return Err(reject(format!(
                    "the frontend `{}` is not accepted: `# syntax=` takes `docker/dockerfile`",
                    excerpt(value)
                )));
            }
            _ => {}
        }
    }
    Ok(escape)
}

fn directive(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.trim().strip_prefix('#')?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_name && !value.is_empty()).then(|| (name.to_ascii_lowercase(), value))
}

fn is_frontend(value: &str) -> bool {
    let name = value.strip_prefix("docker.io/").unwrap_or(value);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@-".contains(&byte);
    FRONTENDS.iter().any(|own| {
        name.strip_prefix(own).is_some_and(|rest| {
            rest.is_empty() || (rest.starts_with([':', '@']) && rest.bytes().all(is_plain))
        })
    })
}
