//! Takes the maps of a definition apart, key by key, and gathers what is wrong.

use std::cell::RefCell;

use super::{MOST_PROBLEMS, Problem};
use crate::{
    value::InvalidValue,
    yaml::{Content, Node, shortened},
};

/// What is wrong so far.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(super) fn add(&self, line: usize, key: &str, message: impl Into<String>) {
        self.0.borrow_mut().push(Problem { line, key: key.to_owned(), message: message.into() });
    }

    /// Whether so many are known that no more have to be looked for.
    pub(super) fn are_enough(&self) -> bool {
        self.0.borrow().len() >= MOST_PROBLEMS
    }

    pub(super) fn all(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}

/// The entries of a map that nobody has taken yet.
pub(super) struct Section<'a> {
    /// Where the map stands; empty for the whole file.
    path: String,
    line: usize,
    left: Vec<(&'a str, &'a Node)>,
    /// What was asked for.
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

    /// Takes an entry. One that says nothing is as good as none.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        let place = self.left.iter().position(|(known, _)| *known == key)?;
        let (_, node) = self.left.remove(place);
        (!node.is_nothing()).then_some(node)
    }

    /// Takes an entry that has to be there.
    pub(super) fn required(&mut self, key: &'static str) -> Option<&'a Node> {
        let node = self.take(key);
        if node.is_none() {
            self.problems.add(self.line, &self.at(key), "is missing");
        }
        node
    }

    /// Takes a map that has to be there.
    pub(super) fn section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let path = self.at(key);
        self.required(key).and_then(|node| Section::of(node, &path, self.problems))
    }

    /// Takes a text that has to be there, by its rule.
    pub(super) fn required_as<T>(
        &mut self,
        key: &'static str,
        rule: impl FnOnce(String) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        let node = self.required(key)?;
        self.read(key, node, rule)
    }

    /// Takes a text that may be absent, by its rule; `None` when it was refused.
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

    /// Takes a value type that has to be there.
    pub(super) fn parsed<T: TryFrom<String, Error = InvalidValue>>(
        &mut self,
        key: &'static str,
    ) -> Option<T> {
        self.required_as(key, T::try_from)
    }

    /// Takes a truth value; one that is absent is `false`.
    pub(super) fn truth(&mut self, key: &'static str) -> Option<bool> {
        let Some(node) = self.take(key) else { return Some(false) };
        let read = truth(node);
        read.map_err(|message| self.problems.add(node.line, &self.at(key), message)).ok()
    }

    /// Refuses what nobody took.
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

/// A text.
pub(super) fn text(node: &Node) -> Result<&str, String> {
    match &node.content {
        Content::Scalar { text, .. } if text.contains('\0') => Err("must not have NUL bytes".to_owned()),
        Content::Scalar { text, .. } => Ok(text),
        _ => Err("has to be a text".to_owned()),
    }
}

/// A truth value.
pub(super) fn truth(node: &Node) -> Result<bool, String> {
    match text(node)? {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be `true` or `false`".to_owned()),
    }
}
