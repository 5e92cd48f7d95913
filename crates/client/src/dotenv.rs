//! `.env` files: `NAME=value` on each line.

use std::fmt;

/// A syntax error, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Returns the variables of a file, in their order. A name may appear twice; the last one counts.
///
/// A line may begin with `export`. `#` begins a comment, on a line of its own or after a space.
/// Single quotes are literal; double quotes support the escapes `\n`, `\r`, `\t`, `\\`, `\"` and
/// `\$`. Both may span several lines. `$NAME` is not expanded.
///
/// # Errors
///
/// The first line that is invalid.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, String)>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = Reader { rest: &text, line: 1 };
    let mut variables = Vec::new();
    while let Some(line) = reader.line() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            reader.skip();
            continue;
        }
        variables.push(reader.variable()?);
    }
    Ok(variables)
}

/// Formats a variable as a line that parses to the same value.
pub(crate) fn written(name: &str, value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if value.chars().all(is_plain) {
        return format!("{name}={value}\n");
    }
    let quoted: String = value
        .chars()
        .map(|c| match c {
            '\\' | '"' | '$' => format!("\\{c}"),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            c => c.to_string(),
        })
        .collect();
    format!("{name}=\"{quoted}\"\n")
}

/// Returns whether a name is valid for a variable.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The unread rest of a text, and its line number.
struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    /// Returns the rest of the line; `None` at the end.
    fn line(&self) -> Option<&'a str> {
        (!self.rest.is_empty()).then(|| self.rest.split('\n').next().unwrap_or_default())
    }

    /// Moves to the next line.
    fn skip(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        self.line += 1;
    }

    fn problem(&self, what: impl Into<String>) -> Problem {
        Problem { line: self.line, what: what.into() }
    }

    fn variable(&mut self) -> Result<(String, String), Problem> {
        let line = self.line().unwrap_or_default();
        let Some((left, _)) = line.split_once('=') else {
            return Err(self.problem("missing `=`: a line has the form NAME=value"));
        };
        let name = left.trim();
        let name = match name.strip_prefix("export") {
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
            _ => name,
        };
        if !is_name(name) {
            // The line may be a secret without its name, so it is not repeated.
            return Err(self.problem(
                "invalid name before the `=`: use letters, digits and `_`, not beginning with a digit",
            ));
        }
        self.rest = self.rest[left.len() + 1..].trim_start_matches([' ', '\t']);
        let value = match self.rest.chars().next() {
            Some('\'') => self.quoted('\'')?,
            Some('"') => self.quoted('"')?,
            _ => self.plain(),
        };
        Ok((name.to_owned(), value))
    }

    /// Reads to the end of the line, or to a comment.
    fn plain(&mut self) -> String {
        let line = self.line().unwrap_or_default();
        let is_comment = |at: usize| line[..at].ends_with([' ', '\t']) || at == 0;
        let end = line.match_indices('#').map(|(at, _)| at).find(|at| is_comment(*at));
        let value = line[..end.unwrap_or(line.len())].trim().to_owned();
        self.skip();
        value
    }

    /// Reads a quoted value, after which only a comment may follow on the line.
    fn quoted(&mut self, quote: char) -> Result<String, Problem> {
        let begun = self.line;
        let mut value = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        loop {
            match characters.next() {
                None => {
                    let what = format!("the quote {quote} is not closed");
                    return Err(Problem { line: begun, what });
                }
                Some((at, c)) if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    break;
                }
                Some((_, '\\')) if quote == '"' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 'r')) => value.push('\r'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, c @ ('\\' | '"' | '$'))) => value.push(c),
                    Some((_, c)) => {
                        value.extend(['\\', c]);
                        self.line += usize::from(c == '\n');
                    }
                    None => value.push('\\'),
                },
                Some((_, c)) => {
                    value.push(c);
                    self.line += usize::from(c == '\n');
                }
            }
        }
        let behind = self.line().unwrap_or_default().trim_start();
        if !behind.is_empty() && !behind.starts_with('#') {
            return Err(self.problem(format!("unexpected text after the closing quote {quote}")));
        }
        self.skip();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(parse(text).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn lines_are_read_as_people_write_them() {
        reads("", &[]);
        reads("\n\n  # only words\n", &[]);
        reads("A=1\nexport B=2\n C = 3 \n", &[("A", "1"), ("B", "2"), ("C", "3")]);
        reads("export\tA=1", &[("A", "1")]);
        reads("exported=1", &[("exported", "1")]);
        reads("A=\nB=", &[("A", ""), ("B", "")]);
        reads("A=one two # words\nB=a#b\nC=#c", &[("A", "one two"), ("B", "a#b"), ("C", "")]);
        reads("URL=postgres://u:p@h/d?x=1&y=2", &[("URL", "postgres://u:p@h/d?x=1&y=2")]);
        reads("\u{feff}A=1\r\nB=2\r\n", &[("A", "1"), ("B", "2")]);
    }

    #[test]
    fn quotes_keep_what_is_in_them() {
        reads("A=' one # two '", &[("A", " one # two ")]);
        reads(r#"A="x\n\t\"\\\$y" # words"#, &[("A", "x\n\t\"\\$y")]);
        reads(r"A='x\ny'", &[("A", "x\\ny")]);
        reads(r#"A="\d""#, &[("A", "\\d")]);
        reads("KEY=\"-----BEGIN\nabc\n-----END\"\nB=2", &[("KEY", "-----BEGIN\nabc\n-----END"), ("B", "2")]);
        reads("A='one\r\ntwo'", &[("A", "one\ntwo")]);
        reads("A=$HOME\nB=\"$HOME\"", &[("A", "$HOME"), ("B", "$HOME")]);
        reads("A=''\nB=\"\"", &[("A", ""), ("B", "")]);
    }

    #[test]
    fn a_problem_names_its_line() {
        for (text, line) in [
            ("A=1\nnonsense\n", 2),
            ("A=1\n\n1B=2", 3),
            ("=x", 1),
            ("A=\"one\ntwo\"\nB-C=3", 3),
            ("A=1\nB='open\nand\nopen", 2),
            ("A='one\ntwo' three", 2),
            ("A=\"x\\", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text:?}");
        }
    }

    #[test]
    fn a_problem_repeats_no_secret() {
        let problem = parse("hunter2 x=hunter2").unwrap_err().to_string();
        assert!(!problem.contains("hunter2"), "{problem}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        for value in
            ["", "plain", "a b", "#x", "it's", "\"q\"", "one\ntwo\r\n\tthree\\n", "$HOME", "ü=1", "'"]
        {
            let text = written("A", value);
            assert_eq!(text.lines().count(), 1, "{text}");
            reads(&text, &[("A", value)]);
        }
    }
}
