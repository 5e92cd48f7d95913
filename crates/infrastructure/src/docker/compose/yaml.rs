//! Reads YAML into a small tree that cannot grow out of proportion.
//!
//! Texts stay as they were written: `yes`, `010` and `22:30` are texts here, so that nothing depends
//! on which version of YAML somebody had in mind.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

/// The largest file, in bytes.
const LARGEST: usize = 256 * 1024;
/// How many texts, lists and maps there may be, those included that `*aliases` repeat.
const MOST_NODES: usize = 20_000;
/// How long all texts may be together, those included that `*aliases` repeat.
const MOST_TEXT: usize = 1024 * 1024;
/// How deep lists and maps may stand in each other.
const DEEPEST: usize = 20;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// A text, a number, a truth value or nothing: whoever reads it decides.
    Scalar {
        text: String,
        /// Whether it stands without quotes, so that it may be more than a text.
        is_plain: bool,
    },
    List(Vec<Node>),
    /// In the order of the file; no key is there twice.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Reads the one document of a file.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > LARGEST {
            return Err(format!("it has more than {} KiB", LARGEST / 1024));
        }
        let text = std::str::from_utf8(bytes).map_err(|_not_text| "it is no text in UTF-8".to_owned())?;
        let mut reader = Reader {
            events: Parser::new_from_str(text),
            anchors: HashMap::new(),
            nodes_left: MOST_NODES,
            text_left: MOST_TEXT,
        };
        reader.document()
    }

    /// Whether nothing is said.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Scalar { text, is_plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// How many nodes it is made of, and how long its texts are.
    fn size(&self) -> (usize, usize) {
        let add = |(nodes, text): (usize, usize), (more, longer)| (nodes + more, text + longer);
        match self {
            Self::Scalar { text, .. } => (1, text.len()),
            Self::List(items) => items.iter().map(Self::size).fold((1, 0), add),
            Self::Map(entries) => {
                entries.iter().map(|(key, node)| add(node.size(), (1, key.len()))).fold((1, 0), add)
            }
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes_left: usize,
    text_left: usize,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, String> {
        let mut document = None;
        loop {
            match self.next()?.0 {
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::StreamEnd => return document.ok_or_else(|| "it is empty".to_owned()),
                Event::DocumentStart(_) if document.is_some() => {
                    return Err("it holds more than one document".to_owned());
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    document = Some(self.node(event, &span, 0)?);
                }
                _ => return Err("it cannot be read as YAML".to_owned()),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(told(&error)),
            None => Err("it ends too early".to_owned()),
        }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, String> {
        let at = |what: &str| format!("line {}: {what}", span.start.line());
        if depth > DEEPEST {
            return Err(at("lists and maps stand too deep in each other"));
        }
        let (anchor, node) = match event {
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let node = known.ok_or_else(|| at("an alias stands for something that holds it"))?;
                self.spend(node.size())?;
                return Ok(node);
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                return Err(at("tags such as `!reset` are not allowed"));
            }
            Event::Scalar(text, style, anchor, None) => {
                self.spend((1, text.len()))?;
                let is_plain = style == ScalarStyle::Plain;
                (anchor, Node::Scalar { text: text.into_owned(), is_plain })
            }
            Event::SequenceStart(anchor, None) => {
                self.spend((1, 0))?;
                (anchor, self.list(depth)?)
            }
            Event::MappingStart(anchor, None) => {
                self.spend((1, 0))?;
                (anchor, self.map(depth)?)
            }
            _ => return Err(at("it cannot be read as YAML")),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Node, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Node::List(items)),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Node, String> {
        let (mut entries, mut merged): (Vec<(String, Node)>, _) = (Vec::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            let at = |what: String| format!("line {}: {what}", span.start.line());
            if event == Event::MappingEnd {
                break;
            }
            let Node::Scalar { text: key, .. } = self.node(event, &span, depth + 1)? else {
                return Err(at("a key has to be a text".to_owned()));
            };
            let (event, value_span) = self.next()?;
            let value = self.node(event, &value_span, depth + 1)?;
            if key == "<<" {
                merge(&mut merged, value).map_err(|what| at(what.to_owned()))?;
            } else if entries.iter().any(|(known, _)| *known == key) {
                return Err(at(format!("`{key}` is there twice")));
            } else {
                entries.push((key, value));
            }
        }
        for (key, value) in merged {
            if !entries.iter().any(|(known, _)| *known == key) {
                entries.push((key, value));
            }
        }
        Ok(Node::Map(entries))
    }

    /// Takes a node's size off what is left.
    fn spend(&mut self, (nodes, text): (usize, usize)) -> Result<(), String> {
        let too_much = || "it holds too much, counting everything that aliases repeat".to_owned();
        self.nodes_left = self.nodes_left.checked_sub(nodes).ok_or_else(too_much)?;
        self.text_left = self.text_left.checked_sub(text).ok_or_else(too_much)?;
        Ok(())
    }
}

/// Takes over the entries of a map, or of each map in a list; the first that has a key counts.
fn merge(merged: &mut Vec<(String, Node)>, value: Node) -> Result<(), &'static str> {
    match value {
        Node::Map(entries) => merged.extend(entries),
        Node::List(items) => {
            for item in items {
                let Node::Map(entries) = item else { return Err("`<<` takes maps only") };
                merged.extend(entries);
            }
        }
        Node::Scalar { .. } => return Err("`<<` takes maps only"),
    }
    Ok(())
}

fn told(error: &ScanError) -> String {
    format!("line {}: {}", error.marker().line(), error.info())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Node {
        Node::Scalar { text: text.to_owned(), is_plain: true }
    }

    fn refusal(text: &str) -> String {
        Node::read(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn texts_stay_as_they_were_written() {
        let read = Node::read(b"a: [yes, 010, '22:30', ~]\nb:\n").unwrap();
        let quoted = Node::Scalar { text: "22:30".to_owned(), is_plain: false };
        let list = Node::List(vec![plain("yes"), plain("010"), quoted, plain("~")]);
        let Node::Map(entries) = read else { panic!() };
        assert_eq!(entries[0], ("a".to_owned(), list));
        assert!(entries[1].1.is_nothing() && !plain("x").is_nothing());
    }

    #[test]
    fn maps_are_merged_and_their_own_entries_count() {
        let read = Node::read(b"x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], a: 0}").unwrap();
        let Node::Map(entries) = read else { panic!() };
        let expected = [("a", "0"), ("b", "2"), ("c", "4")];
        let expected = expected.map(|(key, text)| (key.to_owned(), plain(text)));
        assert_eq!(entries[2].1, Node::Map(expected.to_vec()));
    }

    #[test]
    fn what_is_doubtful_is_refused() {
        for (text, told) in [
            ("", "it is empty"),
            ("a: 1\n---\nb: 2", "it holds more than one document"),
            ("a: 1\na: 2", "line 2: `a` is there twice"),
            ("a: !reset null", "line 1: tags such as `!reset` are not allowed"),
            ("[a]: 1", "line 1: a key has to be a text"),
            ("a: &a [*a]", "line 1: an alias stands for something that holds it"),
            ("a:\n  <<: 1", "line 2: `<<` takes maps only"),
            (&"[".repeat(50), "line 1: lists and maps stand too deep in each other"),
            (&" ".repeat(256 * 1024 + 1), "it has more than 256 KiB"),
        ] {
            assert_eq!(refusal(text), told, "{text:.40}");
        }
        assert!(refusal("a: [").starts_with("line "));
        assert!(refusal("a: *nobody").starts_with("line 1: "));
        assert_eq!(Node::read(b"\xff").unwrap_err(), "it is no text in UTF-8");
    }

    #[test]
    fn aliases_cannot_make_a_small_file_large() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..10 {
            let below = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", vec![below; 9].join(","));
        }
        assert!(refusal(&text).contains("aliases"));
        let long = format!("a: &a '{}'\nb: [{}]", "x".repeat(100_000), vec!["*a"; 100].join(","));
        assert!(refusal(&long).contains("aliases"));
    }
}
