//! The build arguments that `FROM` may use.

use std::{collections::HashMap, iter::Peekable, str::Chars};

use crate::applications::Variables;

/// The longest expanded word; a reference is shorter.
const MAX_LENGTH: usize = 4096;
/// The deepest default inside another default.
const MAX_DEPTH: usize = 10;

/// The arguments that a builder predefines.
const BUILTIN: &[&str] = &[
    "BUILDARCH",
    "BUILDOS",
    "BUILDPLATFORM",
    "BUILDVARIANT",
    "TARGETARCH",
    "TARGETOS",
    "TARGETPLATFORM",
    "TARGETSTAGE",
    "TARGETVARIANT",
];

/// The value of an argument that is declared before the first stage.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Known(String),
    Unset,
    Unknown,
}

/// The arguments that are declared before the first stage.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    given: HashMap<&'a str, &'a str>,
    declared: HashMap<String, Value>,
    /// A declaration has a name that is not known, so that every value is uncertain.
    is_uncertain: bool,
}

impl<'a> Arguments<'a> {
    pub(super) fn given(variables: &'a Variables) -> Self {
        Self { given: variables.iter().collect(), declared: HashMap::new(), is_uncertain: false }
    }

    /// Declares the arguments of an `ARG` before the first stage.
    pub(super) fn declare(&mut self, words: &[String]) {
        for word in words {
            let (name, default) =
                word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let is_name =
                name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            self.is_uncertain |= !is_name || word.contains(['\\', '`']);
            let value = match (self.given.get(name), default) {
                (Some(given), _) => Value::Known((*given).to_owned()),
                (None, Some(default)) => self.expand(default).map_or(Value::Unknown, Value::Known),
                // Builders disagree about whether this removes an earlier default.
                (None, None) if self.declared.contains_key(name) => Value::Unknown,
                (None, None) => Value::Unset,
            };
            self.declared.insert(name.to_owned(), value);
        }
    }

    /// Returns whether this is the machine's own platform, by an argument that the builder sets.
    pub(super) fn is_native_platform(&self, word: &str) -> bool {
        let name = word.trim_matches(['$', '{', '}']);
        let is_variable = word == format!("${name}") || word == format!("${{{name}}}");
        let is_changed = self.is_uncertain
            || self.given.contains_key(name)
            || self.declared.get(name).is_some_and(|value| *value != Value::Unset);
        is_variable && matches!(name, "BUILDPLATFORM" | "TARGETPLATFORM") && !is_changed
    }

    /// Expands the variables of a word and removes its quotes; `None` if the result is uncertain.
    pub(super) fn expand(&self, word: &str) -> Option<String> {
        self.until(None, &mut word.chars().peekable(), 0)
    }

    fn until(&self, end: Option<char>, chars: &mut Peekable<Chars<'_>>, depth: usize) -> Option<String> {
        let mut whole = String::new();
        let mut quote = None;
        while let Some(c) = chars.next() {
            match c {
                _ if quote.is_none() && end == Some(c) => return Some(whole),
                _ if quote == Some(c) => quote = None,
                '\\' | '`' => return None,
                _ if !c.is_ascii() || c.is_ascii_control() => return None,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '$' if quote != Some('\'') => whole.push_str(&self.variable(chars, depth)?),
                c => whole.push(c),
            }
            if whole.len() > MAX_LENGTH {
                return None;
            }
        }
        (end.is_none() && quote.is_none()).then_some(whole)
    }

    /// Expands `$NAME`, `${NAME}`, `${NAME:-other}` or `${NAME:+other}`, behind the `$`.
    fn variable(&self, chars: &mut Peekable<Chars<'_>>, depth: usize) -> Option<String> {
        if self.is_uncertain || depth >= MAX_DEPTH {
            return None;
        }
        let has_braces = chars.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        // The engine accepts non-ASCII letters in a name.
        let goes_on = chars.peek().is_some_and(|c| !c.is_ascii());
        if goes_on || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if BUILTIN.contains(&name.as_str()) {
            return None;
        }
        let value = match self.declared.get(&name) {
            Some(Value::Known(value)) => Some(value.clone()),
            Some(Value::Unknown) => return None,
            Some(Value::Unset) | None => None,
        };
        if !has_braces {
            return value;
        }
        match chars.next()? {
            '}' => value,
            ':' => {
                let operator = chars.next()?;
                let other = self.until(Some('}'), chars, depth + 1)?;
                let value = value.filter(|value| !value.is_empty());
                match operator {
                    '-' => Some(value.unwrap_or(other)),
                    '+' => Some(value.map_or_else(String::new, |_| other)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
