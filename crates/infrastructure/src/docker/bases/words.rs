//! The words of an instruction: its options, and the variables in them.

use std::{collections::HashMap, iter::Peekable, str::Chars};

use launchway_domain::applications::Variables;

use super::script::is_space;

/// How long an expanded word may be; a reference is shorter.
const LONGEST: usize = 4096;
/// How deep a default may stand in another.
const DEEPEST: usize = 10;

/// What a builder sets by itself, each its own way.
const OF_THE_BUILDER: &[&str] = &[
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

/// An option of an instruction, such as `--from=x`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flag {
    /// Without quotes.
    pub(super) text: String,
    /// It was written with quotes or escapes.
    pub(super) is_odd: bool,
}

/// The options at the beginning, and what follows them, as docker separates the two.
pub(super) fn flags(rest: &str) -> (Vec<Flag>, &str) {
    let mut found = Vec::new();
    let mut rest = rest.trim_start();
    while rest.starts_with("--") {
        let mut flag = Flag { text: String::new(), is_odd: false };
        let mut quote = None;
        let mut end = rest.len();
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match (quote, c) {
                (None, c) if c.is_whitespace() => {
                    end = at;
                    break;
                }
                (None, '"' | '\'') => (quote, flag.is_odd) = (Some(c), true),
                (Some(open), c) if open == c => quote = None,
                (_, '\\') => {
                    flag.is_odd = true;
                    flag.text.extend(chars.next().map(|(_, c)| c));
                }
                (_, c) => flag.text.push(c),
            }
        }
        rest = rest.get(end..).unwrap_or_default().trim_start();
        if flag.text == "--" {
            break;
        }
        found.push(flag);
    }
    (found, rest)
}

/// What is known of an argument that is declared before the first stage.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Is(String),
    NotSet,
    Unknown,
}

/// The arguments that references may use.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    given: HashMap<&'a str, &'a str>,
    declared: HashMap<String, Value>,
    /// A declaration was not understood, and might have been of any name.
    is_doubtful: bool,
}

impl<'a> Arguments<'a> {
    pub(super) fn given(variables: &'a Variables) -> Self {
        Self { given: variables.iter().collect(), declared: HashMap::new(), is_doubtful: false }
    }

    /// Takes note of `ARG rest`.
    pub(super) fn declare(&mut self, rest: &str) {
        for word in words(rest) {
            let (name, default) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let is_name =
                name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            self.is_doubtful |= !is_name || word.contains(['\\', '`']);
            let value = match (self.given.get(name), default) {
                (Some(given), _) => Value::Is((*given).to_owned()),
                (None, Some(default)) => self.expand(default).map_or(Value::Unknown, Value::Is),
                // Whether this takes an earlier default away depends on the builder.
                (None, None) if self.declared.contains_key(name) => Value::Unknown,
                (None, None) => Value::NotSet,
            };
            self.declared.insert(name.to_owned(), value);
        }
    }

    /// Whether this is the machine's own platform, by a name that only BuildKit knows.
    pub(super) fn is_of_the_builder(&self, word: &str) -> bool {
        let name = word.trim_matches(['$', '{', '}']);
        let is_variable = word == format!("${name}") || word == format!("${{{name}}}");
        let is_changed =
            self.is_doubtful || self.given.contains_key(name) || self.declared.contains_key(name);
        is_variable && matches!(name, "BUILDPLATFORM" | "TARGETPLATFORM") && !is_changed
    }

    /// The word without quotes and variables; `None` if it is not certain what docker makes of it.
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
            if whole.len() > LONGEST {
                return None;
            }
        }
        (end.is_none() && quote.is_none()).then_some(whole)
    }

    /// What stands for `$NAME`, `${NAME}`, `${NAME:-other}` or `${NAME:+other}`, behind the `$`.
    fn variable(&self, chars: &mut Peekable<Chars<'_>>, depth: usize) -> Option<String> {
        if self.is_doubtful || depth >= DEEPEST {
            return None;
        }
        let has_braces = chars.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        // Docker takes letters of every alphabet for a part of the name.
        let goes_on = chars.peek().is_some_and(|c| !c.is_ascii());
        if goes_on || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if OF_THE_BUILDER.contains(&name.as_str()) {
            return None;
        }
        let value = match self.declared.get(&name) {
            Some(Value::Is(value)) => Some(value.clone()),
            Some(Value::Unknown) => return None,
            Some(Value::NotSet) | None => None,
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

/// The words of a text, whose quotes may hold spaces.
fn words(text: &str) -> Vec<&str> {
    let mut quote = None;
    let ends = |c: char| {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        quote.is_none() && (is_space(c) || c.is_whitespace())
    };
    text.split(ends).filter(|word| !word.is_empty()).collect()
}
