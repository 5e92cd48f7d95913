//! Replaces `${VARIABLE}` in a compose file by the application's variables only.

use std::collections::{BTreeMap, BTreeSet};

use launchway_domain::applications::Variables;

use launchway_domain::yaml::{Content, Node};

/// The most bytes of all inserted values together.
const MOST: usize = 1024 * 1024;
/// The deepest nesting of `${A:-${B}}`.
const DEEPEST: usize = 8;

/// Replaces variables, and records the missing ones.
#[derive(Debug)]
pub(super) struct Interpolation<'a> {
    variables: BTreeMap<&'a str, &'a str>,
    unset: BTreeSet<String>,
    left: usize,
}

impl<'a> Interpolation<'a> {
    pub(super) fn new(variables: &'a Variables) -> Self {
        Self { variables: variables.iter().collect(), unset: BTreeSet::new(), left: MOST }
    }

    /// Returns the value of a variable, to pass it on.
    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        self.variables.get(name).copied()
    }

    /// Returns the referenced variables that are missing and have no default.
    pub(super) fn unset(self) -> BTreeSet<String> {
        self.unset
    }

    /// Returns the node with every text in it replaced. Keys stay unchanged.
    pub(super) fn node(&mut self, node: &Node) -> Result<Node, String> {
        let content = match &node.content {
            Content::Scalar { text, is_plain } => {
                Content::Scalar { text: self.text(text)?, is_plain: *is_plain }
            }
            Content::List(items) => {
                Content::List(items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            Content::Map(entries) => {
                let replaced = entries.iter().map(|(key, value)| Ok((key.clone(), self.node(value)?)));
                Content::Map(replaced.collect::<Result<_, String>>()?)
            }
        };
        Ok(Node { line: node.line, content })
    }

    /// Returns the text with its variables replaced, and `$$` as `$`.
    pub(super) fn text(&mut self, text: &str) -> Result<String, String> {
        self.replaced(text, 0)
    }

    fn replaced(&mut self, text: &str, depth: usize) -> Result<String, String> {
        if depth > DEEPEST {
            return Err("variables stand too deep in each other".to_owned());
        }
        let (mut done, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once('$') {
            done.push_str(before);
            if let Some(behind) = behind.strip_prefix('$') {
                done.push('$');
                rest = behind;
            } else if let Some(behind) = behind.strip_prefix('{') {
                let (inside, behind) = closed(behind).ok_or_else(|| misread(text))?;
                let value = self.braced(inside, text, depth)?;
                done.push_str(&value);
                rest = behind;
            } else {
                let (name, behind) = name_at_the_beginning_of(behind);
                if name.is_empty() {
                    return Err(misread(text));
                }
                let value = self.plain(name);
                done.push_str(&value);
                rest = behind;
            }
            if done.len() > self.left {
                return Err("the variables in it are too long together".to_owned());
            }
        }
        done.push_str(rest);
        self.left = self.left.saturating_sub(done.len());
        Ok(done)
    }

    fn plain(&mut self, name: &str) -> String {
        match self.value(name) {
            Some(value) => value.to_owned(),
            None => {
                self.unset.insert(name.to_owned());
                String::new()
            }
        }
    }

    /// Evaluates the text between `${` and `}`.
    fn braced(&mut self, inside: &str, whole: &str, depth: usize) -> Result<String, String> {
        let (name, rest) = name_at_the_beginning_of(inside);
        if name.is_empty() {
            return Err(misread(whole));
        }
        let (counts_empty_as_unset, rest) = rest.strip_prefix(':').map_or((false, rest), |rest| (true, rest));
        let value = self.value(name).filter(|value| !(counts_empty_as_unset && value.is_empty()));
        let Some(kind) = rest.chars().next() else {
            return if counts_empty_as_unset { Err(misread(whole)) } else { Ok(self.plain(name)) };
        };
        let word = rest.get(1..).unwrap_or_default();
        match (kind, value) {
            ('-' | '?', Some(value)) => Ok(value.to_owned()),
            ('-', None) | ('+', Some(_)) => self.replaced(word, depth + 1),
            ('+', None) => Ok(String::new()),
            ('?', None) => {
                let why = if word.is_empty() { "it is required" } else { word };
                Err(format!("the variable `{name}` is not set: {why}"))
            }
            _ => Err(misread(whole)),
        }
    }
}

fn name_at_the_beginning_of(text: &str) -> (&str, &str) {
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_of_names(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.starts_with(|c: char| c.is_ascii_digit()) { ("", text) } else { (name, rest) }
}

/// Splits a text at the closing brace.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    let mut before = ' ';
    for (place, c) in text.char_indices() {
        match c {
            '{' if before == '$' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((&text[..place], &text[place + 1..]));
        }
        before = c;
    }
    None
}

fn misread(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
    format!("`{shown}` refers to no variable: write `${{NAME}}`, or `$$` for a dollar sign")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn variables() -> Variables {
        let pairs = [("A", "1"), ("EMPTY", ""), ("TRICKY", "${A} $A")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        BTreeMap::from(pairs).try_into().unwrap()
    }

    #[test]
    fn variables_are_replaced_as_compose_does() {
        let variables = variables();
        for (text, expected) in [
            ("plain", "plain"),
            ("$A-${A}", "1-1"),
            ("$$A $${A}", "$A ${A}"),
            ("${X:-d}${X-d}${A:-d}${EMPTY:-d}${EMPTY-d}", "dd1d"),
            ("${X:-${A}}${X:-${Y:-z}}", "1z"),
            ("${A:+set}${X+set}${EMPTY:+set}${EMPTY+set}", "setset"),
            ("${TRICKY}", "${A} $A"),
            ("${A:?no}", "1"),
            ("${X:-a}b}", "ab}"),
            ("$X.", "."),
        ] {
            assert_eq!(Interpolation::new(&variables).text(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn only_the_variables_of_the_application_are_known() {
        let variables = variables();
        let mut interpolation = Interpolation::new(&variables);
        assert_eq!(interpolation.text("$PATH${HOME}").as_deref(), Ok(""));
        assert_eq!(interpolation.unset().into_iter().collect::<Vec<_>>(), ["HOME", "PATH"]);
    }

    #[test]
    fn what_is_missing_or_cannot_be_read_is_reported() {
        let variables = variables();
        let refusal = |text: &str| Interpolation::new(&variables).text(text).unwrap_err();
        assert_eq!(refusal("${X:?set it}"), "the variable `X` is not set: set it");
        assert_eq!(refusal("${EMPTY:?}"), "the variable `EMPTY` is not set: it is required");
        for text in ["$", "a $ b", "${", "${}", "${A", "${A:}", "${A/x}", "$1", "${1}"] {
            assert!(refusal(text).contains("refers to no variable"), "{text}");
        }
        let deep = format!("{}x{}", "${X:-".repeat(12), "}".repeat(12));
        assert_eq!(refusal(&deep), "variables stand too deep in each other");
    }

    #[test]
    fn variables_cannot_make_a_small_file_large() {
        let long: Variables = BTreeMap::from([("L".to_owned(), "x".repeat(60_000))]).try_into().unwrap();
        let mut interpolation = Interpolation::new(&long);
        let told = (0..100).find_map(|_| interpolation.text("$L$L$L").err());
        assert_eq!(told.as_deref(), Some("the variables in it are too long together"));
    }
}
