//! The variables of a definition, and the checks of their values.

use std::{cell::Cell, collections::BTreeMap, sync::Arc};

use regex::{Error, Regex, RegexBuilder};

use super::template::{Values, is_name};
use crate::{
    value::{InvalidValue, parsed_by_conversion},
    yaml::{Aliases, Content, Node},
};

/// The length limit of a value, in bytes.
pub const LONGEST_VALUE: usize = 4096;
/// The size limits of a compiled pattern, in bytes, each with what it counts towards the budget of the
/// definition. The larger a pattern is, the longer it takes to compile and to match.
const PATTERN_SIZES: [(usize, usize); 4] =
    [(8 * 1024, 4 * 1024), (16 * 1024, 16 * 1024), (64 * 1024, 64 * 1024), (256 * 1024, 256 * 1024)];
/// The budget for the sizes of all patterns of a definition.
const PATTERNS_SIZE: usize = 512 * 1024;

/// The type of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VariableKind {
    /// Any text.
    String,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list of texts, as `["a", "b"]`.
    Array,
}

impl VariableKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::String, Self::Integer, Self::Boolean, Self::Array];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
        }
    }

    /// Parses a value into its stored form.
    fn read(self, raw: &str) -> Result<String, InvalidValue> {
        match self {
            Self::String => Ok(raw.to_owned()),
            Self::Integer => match raw.trim().parse::<i64>() {
                Ok(number) => Ok(number.to_string()),
                Err(_no_number) => Err(InvalidValue::text("a whole number", raw)),
            },
            Self::Boolean => match raw.trim() {
                value @ ("true" | "false") => Ok(value.to_owned()),
                other => Err(InvalidValue::text("`true` or `false`", other)),
            },
            Self::Array => match list(raw) {
                Some(_) => Ok(raw.trim().to_owned()),
                None => Err(InvalidValue::text(r#"a list such as `["a", "b"]`"#, raw)),
            },
        }
    }
}

parsed_by_conversion!(VariableKind);

impl TryFrom<String> for VariableKind {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == raw);
        kind.ok_or_else(|| InvalidValue::text("`string`, `integer`, `boolean` or `array`", &raw))
    }
}

/// Parses the items of a list in one line. JSON is YAML too.
fn list(raw: &str) -> Option<Vec<String>> {
    if !raw.trim_start().starts_with('[') {
        return None;
    }
    let Content::List(items) = Node::read(raw.as_bytes(), Aliases::Refused).ok()?.content else {
        return None;
    };
    let texts = items.into_iter().map(|item| match item.content {
        Content::Scalar { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

/// The default value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultValue {
    /// The default of a `string`.
    Text(String),
    /// The default of an `integer`.
    Integer(i64),
    /// The default of a `boolean`.
    Truth(bool),
    /// The default of an `array`.
    List(Vec<String>),
}

/// A regular expression that values must match as a whole.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: String,
    compiled: Arc<Regex>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns whether the whole value matches.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        self.compiled.is_match(value)
    }
}

/// The remaining size budget of the patterns of one definition.
pub(super) struct PatternRoom(Cell<usize>);

impl Default for PatternRoom {
    fn default() -> Self {
        Self(Cell::new(PATTERNS_SIZE))
    }
}

impl PatternRoom {
    /// Compiles a pattern; it uses its budget even if it is too large.
    pub(super) fn read(&self, source: String) -> Result<Pattern, InvalidValue> {
        const ALLOWED: &str = "a regular expression of at most 512 characters that stays small: no look-around, no back-references";
        const CROWDED: &str =
            "smaller, or others: the patterns of a definition may have 512 KiB together, once compiled";
        let refused = |allowed| InvalidValue::text(allowed, &source);
        if source.chars().count() > 512 {
            return Err(refused(ALLOWED));
        }
        // Compile it alone first: `a)|(b` is valid only inside the parentheses that follow.
        if source.contains(')') && matches!(build(&source, 0), Err(Error::Syntax(_))) {
            return Err(refused(ALLOWED));
        }
        let whole = format!(r"\A(?:{source})\z");
        let left = self.0.get();
        for (size, cost) in PATTERN_SIZES {
            if cost > left {
                return Err(refused(CROWDED));
            }
            self.0.set(left - cost);
            if let Ok(compiled) = build(&whole, size) {
                return Ok(Pattern { compiled: Arc::new(compiled), source });
            }
        }
        Err(refused(ALLOWED))
    }
}

fn build(pattern: &str, size: usize) -> Result<Regex, Error> {
    RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(size).nest_limit(50).build()
}

impl TryFrom<String> for Pattern {
    type Error = InvalidValue;

    fn try_from(source: String) -> Result<Self, InvalidValue> {
        PatternRoom::default().read(source)
    }
}

/// A variable of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableSpec {
    /// The name of the variable.
    pub name: String,
    /// The type of its value.
    pub kind: VariableKind,
    /// A description for users.
    pub description: String,
    /// The default value.
    pub default: Option<DefaultValue>,
    /// True if a value is required.
    pub is_required: bool,
    /// The pattern that values must match.
    pub pattern: Option<Pattern>,
    /// True if its value is a secret.
    pub is_sensitive: bool,
}

impl VariableSpec {
    /// The maximum number of variables of a definition.
    pub const MOST: usize = 100;

    /// Parses a value from a user into its stored form.
    ///
    /// # Errors
    /// A sentence that states the rule. It does not repeat a secret.
    pub fn read(&self, raw: &str) -> Result<String, InvalidValue> {
        let told = |refused: InvalidValue, allowed| {
            if self.is_sensitive { InvalidValue::secret(allowed) } else { refused }
        };
        if raw.len() > LONGEST_VALUE || raw.contains('\0') {
            return Err(InvalidValue::number(
                "at most 4,096 bytes without a NUL byte",
                format!("{} bytes", raw.len()),
            ));
        }
        if self.is_required && raw.is_empty() {
            return Err(InvalidValue::secret("a value that is not empty"));
        }
        let value = self.kind.read(raw).map_err(|refused| told(refused, "of the variable's type"))?;
        match &self.pattern {
            Some(pattern) if !pattern.matches(&value) => {
                let refused = InvalidValue::text("what the variable's `validation_pattern` describes", raw);
                Err(told(refused, "what the variable's `validation_pattern` describes"))
            }
            _ => Ok(value),
        }
    }

    /// Returns the default value as a text.
    #[must_use]
    pub fn default_text(&self) -> Option<String> {
        self.default.as_ref().map(|default| match default {
            DefaultValue::Text(text) => text.clone(),
            DefaultValue::Integer(number) => number.to_string(),
            DefaultValue::Truth(truth) => truth.to_string(),
            DefaultValue::List(items) => {
                let quoted: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                format!("[{}]", quoted.join(", "))
            }
        })
    }
}

/// Quotes a text as JSON.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// Checks the given values, and completes them with defaults.
///
/// # Errors
/// Each problem as a sentence: unknown names, missing values, and values that are not allowed.
pub fn check(specs: &[VariableSpec], given: &BTreeMap<String, String>) -> Result<Values, Vec<String>> {
    let (mut values, mut problems) = (Values::new(), Vec::new());
    for name in given.keys().filter(|name| !specs.iter().any(|spec| spec.name == **name)) {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        problems.push(format!("variables.{shown} is not a variable of this extension, which has {known}"));
    }
    for spec in specs {
        let read = match given.get(&spec.name) {
            Some(raw) => spec.read(raw).map(Some).map_err(|refused| refused.to_string()),
            None if spec.default.is_some() => Ok(spec.default_text()),
            None if spec.is_required => Err("is required".to_owned()),
            None => Ok(None),
        };
        match read {
            Ok(Some(value)) => drop(values.insert(spec.name.clone(), value)),
            Ok(None) => {}
            Err(problem) => problems.push(format!("variables.{} {problem}", spec.name)),
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}

/// Returns whether this is a valid name of a variable.
#[must_use]
pub(super) fn is_variable_name(name: &str) -> bool {
    is_name(name) && name != super::template::WORKSPACE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, kind: VariableKind) -> VariableSpec {
        VariableSpec {
            name: name.to_owned(),
            kind,
            description: String::new(),
            default: None,
            is_required: false,
            pattern: None,
            is_sensitive: false,
        }
    }

    fn pattern(source: &str) -> Result<Pattern, InvalidValue> {
        Pattern::try_from(source.to_owned())
    }

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_pattern_has_to_match_from_beginning_to_end() {
        let word = pattern("^[a-z]{1,20}$").unwrap();
        assert!(word.matches("world"));
        for value in ["", "World", "ok\nrm", "ok\n", "a b"] {
            assert!(!word.matches(value), "{value:?}");
        }
        let either = pattern("a|b").unwrap();
        assert!(either.matches("a") && either.matches("b") && !either.matches("ab") && !either.matches("xb"));
    }

    #[test]
    fn patterns_that_cost_too_much_are_refused() {
        let nested = format!("{}a{}", "(".repeat(60), ")".repeat(60));
        for source in ["((a{0,100}){0,100}){0,100}", r"\w{5000}", "a)|(b", "(?=a)", r"(a)\1", "[", &nested] {
            assert!(pattern(source).is_err(), "{source}");
        }
        assert!(pattern(&"a".repeat(512)).is_ok() && pattern(&"a".repeat(513)).is_err());
        // Linear time: the engine does not backtrack.
        assert!(!pattern("(a+)+$").unwrap().matches(&format!("{}b", "a".repeat(4000))));
    }

    #[test]
    fn the_patterns_of_a_definition_share_their_room() {
        let room = PatternRoom::default();
        assert!((0..100).all(|_| room.read("^[a-z]{1,20}$".to_owned()).is_ok()));
        let room = PatternRoom::default();
        let read = |source: &str| room.read(source.to_owned()).map_err(|refused| refused.to_string());
        assert!(read(".{1,100}").is_ok() && read(r"(\w{40}){40}").unwrap_err().contains("stays small"));
        for source in [".{1,100}", "[a-z]"] {
            assert!(read(source).unwrap_err().contains("512 KiB together"), "{source}");
        }
    }

    #[test]
    fn values_are_of_their_kind() {
        for (kind, raw, kept) in [
            (VariableKind::String, " as it is ", Some(" as it is ")),
            (VariableKind::Integer, " 042 ", Some("42")),
            (VariableKind::Integer, "-7", Some("-7")),
            (VariableKind::Integer, "4.2", None),
            (VariableKind::Integer, "9223372036854775808", None),
            (VariableKind::Boolean, "true", Some("true")),
            (VariableKind::Boolean, "yes", None),
            (VariableKind::Array, r#"["a", "b"]"#, Some(r#"["a", "b"]"#)),
            (VariableKind::Array, "[]", Some("[]")),
            (VariableKind::Array, "a, b", None),
            (VariableKind::Array, "[[a]]", None),
            (VariableKind::Array, "[a", None),
        ] {
            assert_eq!(spec("x", kind).read(raw).ok().as_deref(), kept, "{raw}");
        }
    }

    #[test]
    fn a_value_has_at_most_4096_bytes() {
        let text = spec("x", VariableKind::String);
        assert!(text.read(&"x".repeat(4096)).is_ok());
        assert!(text.read(&"x".repeat(4097)).is_err() && text.read("a\0b").is_err());
    }

    #[test]
    fn defaults_are_applied_and_every_problem_is_reported() {
        let specs = [
            VariableSpec {
                default: Some(DefaultValue::Integer(5432)),
                ..spec("port", VariableKind::Integer)
            },
            VariableSpec { is_required: true, ..spec("password", VariableKind::String) },
            spec("note", VariableKind::String),
        ];
        let values = check(&specs, &given(&[("password", "x")])).unwrap();
        assert_eq!(values, given(&[("password", "x"), ("port", "5432")]));
        let problems = check(&specs, &given(&[("port", "many"), ("nobody", "x")])).unwrap_err();
        assert_eq!(
            problems,
            [
                "variables.nobody is not a variable of this extension, which has port, password, note",
                "variables.port must be a whole number, got `many`",
                "variables.password is required",
            ]
        );
        let empty = check(&specs, &given(&[("password", "")])).unwrap_err();
        assert_eq!(empty, ["variables.password must be a value that is not empty"]);
    }

    #[test]
    fn a_refused_secret_is_not_repeated() {
        let secret = VariableSpec {
            is_sensitive: true,
            pattern: Some(pattern("[a-z]+").unwrap()),
            ..spec("password", VariableKind::String)
        };
        let told = check(&[secret], &given(&[("password", "HUNTER2")])).unwrap_err().join("");
        assert!(told.contains("validation_pattern") && !told.contains("HUNTER2"), "{told}");
    }

    #[test]
    fn a_default_that_is_a_list_is_read_back_as_it_was() {
        let items = vec!["a \"b\" \\ c".to_owned(), "ü, ]".to_owned(), "x\u{1}".to_owned()];
        let spec = VariableSpec {
            default: Some(DefaultValue::List(items.clone())),
            ..spec("x", VariableKind::Array)
        };
        let text = spec.default_text().unwrap();
        assert_eq!(list(&text).unwrap(), items);
        assert!(spec.read(&text).is_ok());
    }
}
