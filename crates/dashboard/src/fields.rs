//! Reads the values of a form, and reports all invalid fields at once, in the words of the API.

use std::{fmt::Display, str::FromStr};

use launchway_application::Error;

use crate::form::Form;

/// A field is missing or invalid; the problem is noted.
pub(crate) struct Refused;

/// Reads the fields of a form.
pub(crate) struct Fields<'a> {
    form: &'a Form,
    problems: Vec<String>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(form: &'a Form) -> Self {
        Self { form, problems: Vec::new() }
    }

    /// Reads a required value.
    pub(crate) fn required<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<T, Refused> {
        self.required_by(name, str::parse)
    }

    /// Reads an optional value; an empty field is absent.
    pub(crate) fn optional<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<Option<T>, Refused> {
        self.optional_by(name, str::parse)
    }

    /// Reads a value that may be empty.
    pub(crate) fn given<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<T, Refused> {
        self.form.text(name).parse().or_else(|invalid| self.refuse(format!("{name} {invalid}")))
    }

    /// Reads a required value by `parse`.
    pub(crate) fn required_by<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Refused> {
        if self.form.text(name).trim().is_empty() {
            return self.refuse(format!("{name} is required"));
        }
        parse(self.form.text(name)).or_else(|invalid| self.refuse(format!("{name} {invalid}")))
    }

    /// Reads an optional value by `parse`.
    pub(crate) fn optional_by<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Refused> {
        match self.form.text(name).trim().is_empty() {
            true => Ok(None),
            false => self.required_by(name, parse).map(Some),
        }
    }

    /// Notes a problem.
    pub(crate) fn refuse<T>(&mut self, problem: String) -> Result<T, Refused> {
        self.problems.push(problem);
        Err(Refused)
    }

    /// Returns whether anything was refused.
    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Returns the error of everything that was refused.
    pub(crate) fn error(self) -> Error {
        Error::Invalid(self.problems.join("; "))
    }
}

/// Reads the lines of an `.env` file: `NAME=value`, empty lines and comments.
pub(crate) fn read_env(text: &str) -> Result<std::collections::BTreeMap<String, String>, String> {
    let mut variables = std::collections::BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            return Err(format!("must be lines such as `NAME=value`, and line {} is not", number + 1));
        };
        variables.insert(name.trim().to_owned(), unquoted(value.trim()));
    }
    Ok(variables)
}

/// Returns variables as the lines of an `.env` file, which [`read_env`] reads as the same variables.
pub(crate) fn write_env<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    variables.map(|(name, value)| format!("{name}={}\n", quoted(value))).collect()
}

fn unquoted(value: &str) -> String {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    if let Some(inner) = inner('\'') {
        return inner.to_owned();
    }
    let Some(inner) = inner('"') else { return value.to_owned() };
    let (mut text, mut characters) = (String::new(), inner.chars());
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            (other, false) => text.push(other),
        }
    }
    text
}

fn quoted(value: &str) -> String {
    let is_plain = !value.is_empty()
        && value.chars().all(|c| !c.is_whitespace() && !c.is_control() && !"\"'\\#".contains(c));
    if is_plain {
        return value.to_owned();
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_env_file_is_read_as_it_was_written() {
        let values = [
            ("A", ""),
            ("B", "plain"),
            ("C", " spaces "),
            ("D", "a=b#c"),
            ("E", "line\nline\r\n\"quoted\" 'single' \\n"),
            ("F", "ü 🚀\ttab"),
            ("G", "\""),
            ("H", "'x'"),
        ];
        let text = write_env(values.into_iter());
        let read = read_env(&text).unwrap();
        assert_eq!(read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect::<Vec<_>>(), values);
    }

    #[test]
    fn comments_exports_and_quotes_of_env_files_are_read() {
        let read = read_env("# a comment\n\nexport A=1\n B = 'two words' \nC=\"x\\ny\"\n").unwrap();
        let expected = [("A", "1"), ("B", "two words"), ("C", "x\ny")];
        assert_eq!(read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect::<Vec<_>>(), expected);
        assert!(read_env("A=1\nnonsense").unwrap_err().contains("line 2"));
    }
}
