//! Reads the maps of a definition key by key, and collects the problems.

use std::cell::RefCell;

use super::{MOST_PROBLEMS, Problem};
use crate::{
    value::InvalidValue,
    yaml::{Content, Node, shortened},
};

/// The problems found so far.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(super) fn add(&self, line: usize, key: &str, message: impl Into<String>) {
        self.0.borrow_mut().push(Problem { line, key: key.to_owned(), message: message.into() });
    }

    /// Returns whether the maximum number of problems is reached.
    pub(super) fn are_enough(&self) -> bool {
        self.0.borrow().len() >= MOST_PROBLEMS
    }

    pub(super) fn all(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}

/// The entries of a map that were not read yet.
pub(super) struct Section<'a> {
    /// The path of the map; empty for the whole file.
    path: String,
    line: usize,
    left: Vec<(&'a str, &'a Node)>,
    /// The keys that were read, for the error message.
    known: Vec<&'static str>,
    problems: &'a Problems,
}

impl<'a> Section<'a> {
    pub(super) fn of(node: &'a Node, path: &str, problems: &'a Problems) -> Option<Self> {
        let Content::Map(entries) = &node.content else {
            problems.add(node.line, path, "has to be a map");
            return None;
        };
        let left = entries.iter().map(|(key, node)| (key.as_str(), node)).collect();
        Some(Self { path: path.to_owned(), line: node.line, left, known: Vec::new(), problems })
    }

    /// Takes an entry. An empty one counts as absent.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        let place = self.left.iter().position(|(known, _)| *known == key)?;
        let (_, node) = self.left.remove(place);
        (!node.is_nothing()).then_some(node)
    }

    /// Takes a required entry.
    pub(super) fn required(&mut self, key: &'static str) -> Option<&'a Node> {
        let node = self.take(key);
        if node.is_none() {
            self.problems.add(self.line, &self.at(key), "is missing");
        }
        node
    }

    /// Takes a required map.
    pub(super) fn section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let path = self.at(key);
        self.required(key).and_then(|node| Section::of(node, &path, self.problems))
    }

    /// Takes a required text and parses it by `rule`.
    pub(super) fn required_as<T>(
        &mut self,
        key: &'static str,
        rule: impl FnOnce(String) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        let node = self.required(key)?;
        self.read(key, node, rule)
    }

    /// Takes an optional text and parses it by `rule`; `None` if it was refused.
    pub(super) fn optional_as<T>(
        &mut self,
        key: &'static str,
        rule: impl FnOnce(String) -> Result<T, InvalidValue>,
    ) -> Option<Option<T>> {
        match self.take(key) {
            Some(node) => self.read(key, node, rule).map(Some),
            None => Some(None),
        }
    }

    /// Takes a required text and parses it as a value type.
    pub(super) fn parsed<T: TryFrom<String, Error = InvalidValue>>(
        &mut self,
        key: &'static str,
    ) -> Option<T> {
        self.required_as(key, T::try_from)
    }

    /// Takes a boolean; an absent one is `false`.
    pub(super) fn truth(&mut self, key: &'static str) -> Option<bool> {
        let Some(node) = self.take(key) else { return Some(false) };
        let read = truth(node);
        read.map_err(|message| self.problems.add(node.line, &self.at(key), message)).ok()
    }

    /// Reports the entries that were not read as unknown.
    pub(super) fn finish(self) {
        for (key, node) in self.left.iter().take_while(|_| !self.problems.are_enough()) {
            let message = format!("is not known here: allowed are `{}`", self.known.join("`, `"));
            self.problems.add(node.line, &self.at(&shortened(key)), message);
        }
    }

    fn read<T>(
        &self,
        key: &str,
        node: &Node,
        rule: impl FnOnce(String) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        let read = text(node).and_then(|text| rule(text.to_owned()).map_err(|refused| refused.to_string()));
        read.map_err(|message| self.problems.add(node.line, &self.at(key), message)).ok()
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Returns the text of a node.
pub(super) fn text(node: &Node) -> Result<&str, String> {
    match &node.content {
        Content::Scalar { text, .. } if text.contains('\0') => Err("must not have NUL bytes".to_owned()),
        Content::Scalar { text, .. } => Ok(text),
        _ => Err("has to be a text".to_owned()),
    }
}

/// Returns the boolean of a node.
pub(super) fn truth(node: &Node) -> Result<bool, String> {
    match text(node)? {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be `true` or `false`".to_owned()),
    }
}
