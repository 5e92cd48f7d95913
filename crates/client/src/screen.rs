//! Output: text with colours for users, JSON for programs.
//!
//! **Invariant:** untrusted text reaches a terminal only through `visible`.

use std::{
    env,
    io::{self, ErrorKind, IsTerminal as _, Write},
};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cli::Format,
    failure::{Failure, Outcome, failed},
    records,
    table::Table,
};

/// The meaning of a text, which a terminal shows by its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Doubtful,
    /// Less important than the text around it.
    Quiet,
    Strong,
    /// Light on dark, whatever the terminal's own colours are.
    Contrast,
}

/// Standard output for results, standard error for everything else.
#[derive(Debug)]
pub(crate) struct Screen {
    format: Format,
    colours: Colours,
    is_interactive: bool,
}

/// Colour support of the two streams.
#[derive(Clone, Copy, Debug)]
struct Colours {
    output: bool,
    remarks: bool,
}

impl Screen {
    pub(crate) fn new(format: Format) -> Self {
        // https://no-color.org: any value but the empty one.
        let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|value| value == "dumb");
        let colours = Colours {
            output: !is_plain && io::stdout().is_terminal(),
            remarks: !is_plain && io::stderr().is_terminal(),
        };
        Self { format, colours, is_interactive: io::stdin().is_terminal() && io::stderr().is_terminal() }
    }

    /// Returns whether the user can be prompted.
    pub(crate) fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// Returns whether the output is JSON.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.format == Format::Json
    }

    /// Returns whether remarks can be overwritten, because standard error is a terminal.
    pub(crate) fn is_live(&self) -> bool {
        let is_able = env::var_os("TERM").is_none_or(|value| value != "dumb");
        is_able && io::stderr().is_terminal() && !self.is_for_programs()
    }

    /// Writes the live line.
    pub(crate) fn sketch(&self, words: &str) {
        let mut terminal = io::stderr().lock();
        // A closed terminal is no reason to fail.
        let _ = terminal.write_all(words.as_bytes()).and_then(|()| terminal.flush());
    }

    /// Prints the data of a response: unchanged as JSON, otherwise formatted by `words`.
    pub(crate) fn show<T: DeserializeOwned>(&self, data: Value, words: impl FnOnce(T) -> String) -> Outcome {
        if self.is_for_programs() {
            return self.json(&data);
        }
        let record = records::read(data)?;
        self.print(&words(record))
    }

    /// Prints JSON.
    pub(crate) fn json(&self, data: &Value) -> Outcome {
        self.print(&format!("{data:#}\n"))
    }

    /// Prints text that already ends with a line end.
    pub(crate) fn print(&self, text: &str) -> Outcome {
        let mut output = io::stdout().lock();
        match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            // The reader has closed the pipe; there is nothing left to do.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            written => written.map_err(failed("the output cannot be written")),
        }
    }

    /// Formats a table in the colours of standard output.
    pub(crate) fn table(&self, table: &Table) -> String {
        table.render(|text, tone| self.tint(text, tone))
    }

    /// Colours a text for standard output.
    pub(crate) fn tint(&self, text: &str, tone: Tone) -> String {
        tinted(text, tone, self.colours.output)
    }

    /// Prints a remark; not with JSON output.
    pub(crate) fn remark(&self, words: &str) {
        if !self.is_for_programs() {
            print_line(words);
        }
    }

    /// Colours a text for standard error.
    pub(crate) fn tint_remark(&self, text: &str, tone: Tone) -> String {
        tinted(text, tone, self.colours.remarks)
    }

    /// Prints a warning, also with JSON output.
    pub(crate) fn warn(&self, words: &str) {
        print_line(&format!("{} {words}", tinted("warning:", Tone::Doubtful, self.colours.remarks)));
    }

    /// Prints a failure and its hint.
    pub(crate) fn print_failure(&self, failure: &Failure) {
        let error = tinted("error:", Tone::Bad, self.colours.remarks);
        print_line(&format!("{error} {}", visible(&failure.to_string())));
        if let Some(hint) = failure.advice() {
            print_line(&format!("{} {}", tinted("hint:", Tone::Quiet, self.colours.remarks), visible(hint)));
        }
    }
}

/// Returns the tone of a state.
pub(crate) fn tone_of(state: &str) -> Tone {
    match state {
        "running" | "deployed" | "completed" | "delivered" => Tone::Good,
        "failed" | "dead" => Tone::Bad,
        "stopped" | "cancelled" => Tone::Quiet,
        _ => Tone::Doubtful,
    }
}

/// Escapes untrusted text for a terminal: nothing that moves the cursor, beeps, or hides text.
pub(crate) fn visible(text: &str) -> String {
    let is_harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_bidirectional(c);
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// Escapes a line of a program's output for a terminal, and removes its colours.
pub(crate) fn printed(line: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some(start) = rest.find("\u{1b}[") {
        text.push_str(&rest[..start]);
        let sequence = &rest[start + 2..];
        // Parameters, and one final character.
        match sequence.find(|c: char| !(' '..='?').contains(&c)) {
            Some(end) if sequence[end..].starts_with(|c: char| ('@'..='~').contains(&c)) => {
                rest = &sequence[end + 1..];
            }
            _ => {
                text.push('\u{1b}');
                rest = &rest[start + 1..];
            }
        }
    }
    text.push_str(rest);
    visible(text.trim_end_matches('\r'))
}

/// Returns whether a character changes the direction of the text around it.
fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn tinted(text: &str, tone: Tone, is_coloured: bool) -> String {
    if !is_coloured {
        return text.to_owned();
    }
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Doubtful => "33",
        Tone::Quiet => "2",
        Tone::Strong => "1",
        Tone::Contrast => "97;40",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Writes to standard error, and ignores errors: a closed terminal is no reason to fail.
fn print_line(words: &str) {
    let _ = writeln!(io::stderr().lock(), "{words}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_steer_a_terminal() {
        assert_eq!(visible("a\u{1b}[2Jb\rc\u{7}"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
        assert_eq!(visible("two\nlines\tand a tab, ünïcode"), "two\nlines\tand a tab, ünïcode");
        assert_eq!(visible("\u{202e}abc"), "\u{fffd}abc");
        assert_eq!(visible("\u{9b}31m"), "\u{fffd}31m");
    }

    #[test]
    fn lines_of_programs_lose_their_colours_and_nothing_else() {
        assert_eq!(printed("\u{1b}[1;32mok\u{1b}[0m done\r"), "ok done");
        assert_eq!(printed("a\u{1b}[2Kb\u{1b}[?25lc"), "abc");
        assert_eq!(printed("cut \u{1b}[3"), "cut \u{fffd}[3");
        assert_eq!(printed("odd \u{1b}[3\u{e9}x"), "odd \u{fffd}[3\u{e9}x");
        assert_eq!(printed("title \u{1b}]0;x\u{7}"), "title \u{fffd}]0;x\u{fffd}");
    }

    #[test]
    fn colours_are_only_where_they_are_wanted() {
        assert_eq!(tinted("x", Tone::Bad, false), "x");
        assert_eq!(tinted("x", Tone::Bad, true), "\u{1b}[31mx\u{1b}[0m");
    }
}
