//! YAML: parsed into a small tree with line numbers, within size limits.
//!
//! Scalars keep their text: `yes`, `010` and `22:30` are texts here, so that nothing depends on the version
//! of YAML that the author had in mind.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

/// The size limit of a file, in bytes.
const LARGEST: usize = 256 * 1024;
/// The maximum number of scalars, lists and maps, including those that `*aliases` repeat.
const MOST_NODES: usize = 20_000;
/// The maximum total length of all texts, including those that `*aliases` repeat.
const MOST_TEXT: usize = 1024 * 1024;
/// The maximum nesting depth of lists and maps.
const DEEPEST: usize = 20;

const TOO_DEEP: &str = "lists and maps stand too deep in each other";

/// A node of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The line that it begins in, counted from 1; for an entry of a map, the line of its key.
    pub line: usize,
    /// The content.
    pub content: Content,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text, a number, a boolean or null: the reader decides.
    Scalar {
        /// The text as it was written.
        text: String,
        /// True if it has no quotes, so that it may be more than a text.
        is_plain: bool,
    },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file; no key occurs twice.
    Map(Vec<(String, Node)>),
}

/// The policy for aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aliases {
    /// Aliases by `*name`, within limits.
    Allowed,
    /// No aliases.
    Refused,
}

/// The error of a file that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Unreadable {
    /// The line; `None` if it concerns the whole file.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
}

impl Unreadable {
    fn whole(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }

    fn at(line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), message: message.into() }
    }
}

impl Node {
    /// Parses the only document of a file.
    ///
    /// # Errors
    /// [`Unreadable`] if it is not YAML, is more than one document, has tags, repeats a key, is nested too
    /// deeply or too large.
    pub fn read(bytes: &[u8], aliases: Aliases) -> Result<Self, Unreadable> {
        if bytes.len() > LARGEST {
            return Err(Unreadable::whole(format!("it has more than {} KiB", LARGEST / 1024)));
        }
        let text =
            std::str::from_utf8(bytes).map_err(|_not_text| Unreadable::whole("it is not UTF-8 text"))?;
        let mut reader = Reader {
            events: Parser::new_from_str(text),
            aliases,
            anchors: HashMap::new(),
            nodes_left: MOST_NODES,
            text_left: MOST_TEXT,
        };
        reader.document()
    }

    /// Returns an empty map.
    #[must_use]
    pub fn empty_map() -> Self {
        Self { line: 1, content: Content::Map(Vec::new()) }
    }

    /// Returns whether it is null.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, is_plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Returns the number of nodes, and the total length of the texts.
    fn size(&self) -> (usize, usize) {
        let add = |(nodes, text): (usize, usize), (more, longer)| (nodes + more, text + longer);
        match &self.content {
            Content::Scalar { text, .. } => (1, text.len()),
            Content::List(items) => items.iter().map(Self::size).fold((1, 0), add),
            Content::Map(entries) => {
                entries.iter().map(|(key, node)| add(node.size(), (1, key.len()))).fold((1, 0), add)
            }
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    aliases: Aliases,
    anchors: HashMap<usize, Node>,
    nodes_left: usize,
    text_left: usize,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, Unreadable> {
        let mut document = None;
        loop {
            match self.next()?.0 {
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::StreamEnd => return document.ok_or_else(|| Unreadable::whole("it is empty")),
                Event::DocumentStart(_) if document.is_some() => {
                    return Err(Unreadable::whole("it holds more than one document"));
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    document = Some(self.node(event, &span, 0)?);
                }
                _ => return Err(Unreadable::whole("it cannot be read as YAML")),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Unreadable> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(unreadable(&error)),
            None => Err(Unreadable::whole("it ends too early")),
        }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Unreadable> {
        let line = span.start.line();
        let at = |what: &str| Unreadable::at(line, what);
        if depth > DEEPEST {
            return Err(at(TOO_DEEP));
        }
        let (anchor, content) = match event {
            Event::Alias(_) if self.aliases == Aliases::Refused => {
                return Err(at("aliases such as `*name` are not allowed"));
            }
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let node = known.ok_or_else(|| at("an alias refers to a node that contains it"))?;
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
                (anchor, Content::Scalar { text: text.into_owned(), is_plain })
            }
            Event::SequenceStart(anchor, None) => {
                self.spend((1, 0))?;
                (anchor, Content::List(self.list(depth)?))
            }
            Event::MappingStart(anchor, None) => {
                self.spend((1, 0))?;
                (anchor, Content::Map(self.map(depth)?))
            }
            _ => return Err(at("it cannot be read as YAML")),
        };
        let node = Node { line, content };
        if anchor > 0 && self.aliases == Aliases::Allowed {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Unreadable> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(String, Node)>, Unreadable> {
        let (mut entries, mut keys, mut merged) = (Vec::new(), HashSet::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let Node { line, content: Content::Scalar { text: key, .. } } =
                self.node(event, &span, depth + 1)?
            else {
                return Err(Unreadable::at(span.start.line(), "a key has to be a text"));
            };
            let (event, value_span) = self.next()?;
            let node = Node { line, ..self.node(event, &value_span, depth + 1)? };
            if key == "<<" && self.aliases == Aliases::Allowed {
                merge(&mut merged, node).map_err(|what| Unreadable::at(line, what))?;
            } else if keys.insert(key.clone()) {
                entries.push((key, node));
            } else {
                return Err(Unreadable::at(line, format!("`{}` is there twice", shortened(&key))));
            }
        }
        entries.extend(merged.into_iter().filter(|(key, _)| keys.insert(key.clone())));
        Ok(entries)
    }

    /// Subtracts a node's size from the remaining budget.
    fn spend(&mut self, (nodes, text): (usize, usize)) -> Result<(), Unreadable> {
        let too_much = || Unreadable::whole("it holds too much, counting everything that aliases repeat");
        self.nodes_left = self.nodes_left.checked_sub(nodes).ok_or_else(too_much)?;
        self.text_left = self.text_left.checked_sub(text).ok_or_else(too_much)?;
        Ok(())
    }
}

/// Merges the entries of a map, or of each map in a list; the first entry of a key counts.
fn merge(merged: &mut Vec<(String, Node)>, node: Node) -> Result<(), &'static str> {
    match node.content {
        Content::Map(entries) => merged.extend(entries),
        Content::List(items) => {
            for item in items {
                let Content::Map(entries) = item.content else { return Err("`<<` takes maps only") };
                merged.extend(entries);
            }
        }
        Content::Scalar { .. } => return Err("`<<` takes maps only"),
    }
    Ok(())
}

/// Shortens a text of a file for a message.
#[must_use]
pub fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

fn unreadable(error: &ScanError) -> Unreadable {
    let line = error.marker().line();
    // The parser looks ahead, and has its own limit.
    match error.info() {
        "recursion limit exceeded" => Unreadable::at(line, TOO_DEEP),
        info => Unreadable::at(line, info),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: usize, text: &str) -> Node {
        Node { line, content: Content::Scalar { text: text.to_owned(), is_plain: true } }
    }

    fn read(text: &str) -> Result<Node, Unreadable> {
        Node::read(text.as_bytes(), Aliases::Allowed)
    }

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    fn entries(text: &str) -> Vec<(String, Node)> {
        let Content::Map(entries) = read(text).unwrap().content else { panic!() };
        entries
    }

    #[test]
    fn texts_stay_as_they_were_written() {
        let entries = entries("a: [yes, 010, '22:30', ~]\nb:\n");
        let quoted = Content::Scalar { text: "22:30".to_owned(), is_plain: false };
        let quoted = Node { line: 1, content: quoted };
        let list = Content::List(vec![plain(1, "yes"), plain(1, "010"), quoted, plain(1, "~")]);
        assert_eq!(entries[0], ("a".to_owned(), Node { line: 1, content: list }));
        assert!(entries[1].1.is_nothing() && !plain(1, "x").is_nothing());
    }

    #[test]
    fn an_entry_knows_the_line_of_its_key() {
        let entries = entries("# a note\na:\n\n  - x\n  - y\nb: z");
        let items = Content::List(vec![plain(4, "x"), plain(5, "y")]);
        assert_eq!(
            entries,
            [("a".to_owned(), Node { line: 2, content: items }), ("b".to_owned(), plain(6, "z"))]
        );
    }

    #[test]
    fn maps_are_merged_and_their_own_entries_count() {
        let merged = &entries("x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], a: 0}")[2];
        let expected = [("a", plain(3, "0")), ("b", plain(1, "2")), ("c", plain(2, "4"))];
        let expected = expected.map(|(key, node)| (key.to_owned(), node));
        assert_eq!(merged.1.content, Content::Map(expected.to_vec()));
    }

    #[test]
    fn what_is_doubtful_is_refused() {
        for (text, told) in [
            ("", "it is empty"),
            ("a: 1\n---\nb: 2", "it holds more than one document"),
            ("a: 1\na: 2", "line 2: `a` is there twice"),
            ("a: !reset null", "line 1: tags such as `!reset` are not allowed"),
            ("[a]: 1", "line 1: a key has to be a text"),
            ("a: &a [*a]", "line 1: an alias refers to a node that contains it"),
            ("a:\n  <<: 1", "line 2: `<<` takes maps only"),
            (&"[".repeat(50), "line 1: lists and maps stand too deep in each other"),
            (&"[".repeat(60_000), "line 1: lists and maps stand too deep in each other"),
            (&"{a: ".repeat(50_000), "line 1: lists and maps stand too deep in each other"),
            (&" ".repeat(256 * 1024 + 1), "it has more than 256 KiB"),
        ] {
            assert_eq!(refusal(text), told, "{text:.40}");
        }
        assert!(refusal("a: [").starts_with("line "));
        assert!(refusal("a: *nobody").starts_with("line 1: "));
        let not_text = Node::read(b"\xff", Aliases::Allowed).unwrap_err();
        assert_eq!(not_text.to_string(), "it is not UTF-8 text");
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

    #[test]
    fn aliases_are_refused_where_none_are_wanted() {
        let read = |text: &str| Node::read(text.as_bytes(), Aliases::Refused);
        let told = read("a: &a 1\nb: *a").unwrap_err().to_string();
        assert_eq!(told, "line 2: aliases such as `*name` are not allowed");
        assert_eq!(
            read("<<: {a: 1}").unwrap().content,
            Content::Map(vec![("<<".to_owned(), read("{a: 1}").unwrap())])
        );
    }

    #[test]
    fn twenty_levels_and_not_one_more() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&nested(21)).is_ok());
        assert!(refusal(&nested(22)).contains("too deep"));
    }
}
