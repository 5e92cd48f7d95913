//! The definition of an extension: a YAML file, parsed with all its problems reported.

mod parser;

use std::{collections::HashMap, time::Duration};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use self::parser::{Problems, Section, text, truth};
use super::{
    Metadata, StepKind, StepSpec, VariableKind, VariableSpec,
    steps::Property,
    template::{Template, Values, WORKSPACE},
    variables::{DefaultValue, PatternRoom, is_variable_name},
};
use crate::{
    value::{InvalidValue, plain_text},
    yaml::{Aliases, Content, Node, shortened},
};

/// The maximum number of steps of a definition.
pub const MOST_STEPS: usize = 200;
/// The maximum number of problems that are reported.
const MOST_PROBLEMS: usize = 50;
/// The upper limit of the timeout of a step, in seconds.
const LONGEST_STEP: i64 = 1800;
/// The length limit of a default that is matched against a pattern, in bytes.
const LONGEST_MATCHED: usize = 256;

/// The parsed definition of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The description of the extension.
    pub metadata: Metadata,
    /// The variables.
    pub variables: Vec<VariableSpec>,
    /// The steps that do the work.
    pub run: Vec<StepSpec>,
    /// The steps that check the result.
    pub validate: Vec<StepSpec>,
}

/// Returns the SHA-256 of a definition, in hex.
#[must_use]
pub fn content_hash(yaml: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(yaml))
}

/// A problem of a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {}{message}", if key.is_empty() { String::new() } else { format!("`{key}` ") })]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// The key, as a path such as `execution.run[0].type`; empty for the file as a whole.
    pub key: String,
    /// The error and the rule.
    pub message: String,
}

/// The error of an unusable definition, with all its problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct InvalidDefinition(pub Vec<Problem>);

impl Definition {
    /// Parses a definition.
    ///
    /// # Errors
    /// [`InvalidDefinition`] with every problem, each with its line and its key.
    pub fn parse(yaml: &str) -> Result<Self, InvalidDefinition> {
        let node = Node::read(yaml.as_bytes(), Aliases::Refused).map_err(|unreadable| {
            let problem = Problem {
                line: unreadable.line.unwrap_or(1),
                key: String::new(),
                message: unreadable.message,
            };
            InvalidDefinition(vec![problem])
        })?;
        let problems = Problems::default();
        let definition = read(&node, &problems);
        match (definition, problems.all()) {
            (Some(definition), problems) if problems.is_empty() => Ok(definition),
            (_, mut problems) => {
                problems.sort_by_key(|problem| problem.line);
                problems.truncate(MOST_PROBLEMS);
                Err(InvalidDefinition(problems))
            }
        }
    }

    /// Returns every step in the order of execution.
    pub fn steps(&self) -> impl Iterator<Item = &StepSpec> {
        self.run.iter().chain(&self.validate)
    }

    /// Returns whether a step acts on the machine itself, which requires an administrator.
    #[must_use]
    pub fn acts_on_host(&self) -> bool {
        self.steps().any(|step| step.kind.acts_on_host())
    }

    /// Returns whether it creates objects that outlive a run.
    #[must_use]
    pub fn reaches_engine(&self) -> bool {
        self.steps().any(|step| step.kind.reaches_engine())
    }
}

fn read(node: &Node, problems: &Problems) -> Option<Definition> {
    let mut file = Section::of(node, "", problems)?;
    let metadata = file.section("metadata").and_then(metadata);
    let (declared, variables) = match file.take("variables") {
        Some(node) => (names(node), variables(node, problems)),
        None => (Vec::new(), Vec::new()),
    };
    let known: Vec<&str> = declared.into_iter().chain([WORKSPACE]).collect();
    let execution = file.section("execution").and_then(|mut execution| {
        let run = execution.required("run").map(|node| steps(node, "execution.run", &known, problems));
        let validate =
            execution.take("validate").map(|node| steps(node, "execution.validate", &known, problems));
        execution.finish();
        Some((run?, validate.unwrap_or_default()))
    });
    file.finish();
    let (run, validate) = execution?;
    if run.len() + validate.len() > MOST_STEPS {
        let message =
            format!("must have at most {MOST_STEPS} steps in all, got {}", run.len() + validate.len());
        problems.add(node.line, "execution", message);
    }
    Some(Definition { metadata: metadata?, variables, run, validate })
}

fn metadata(mut section: Section<'_>) -> Option<Metadata> {
    let described = |text: String| plain_lines(&text, 0, 2000, "at most 2,000 characters");
    let short = |text: String| plain_text(&text, 0, 100, "at most 100 characters");
    let id = section.parsed("id");
    let name = section.parsed("name");
    let description = section.required_as("description", described);
    let author = section.required_as("author", short);
    let icon = section.required_as("icon", short);
    let category = section.parsed("category");
    let kind = section.parsed("type");
    let version = section.optional_as("version", version);
    let is_verified = section.truth("isVerified");
    section.finish();
    Some(Metadata {
        id: id?,
        name: name?,
        description: description?,
        author: author?,
        icon: icon?,
        category: category?,
        kind: kind?,
        version: version?.unwrap_or_default(),
        is_verified: is_verified?,
    })
}

fn version(text: String) -> Result<String, InvalidValue> {
    let is_of_versions = |byte: u8| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte);
    if (1..=32).contains(&text.len()) && text.bytes().all(is_of_versions) {
        Ok(text)
    } else {
        Err(InvalidValue::text("1 to 32 letters, digits, `.`, `+`, `-` or `_`", &text))
    }
}

/// Checks a text that may have several lines.
fn plain_lines(raw: &str, min: usize, max: usize, allowed: &'static str) -> Result<String, InvalidValue> {
    plain_text(&raw.replace(['\n', '\t'], " "), min, max, allowed)?;
    Ok(raw.trim().to_owned())
}

/// Returns the names of the variables, also of those with problems.
fn names(node: &Node) -> Vec<&str> {
    match &node.content {
        Content::Map(entries) => entries.iter().map(|(name, _)| name.as_str()).collect(),
        _ => Vec::new(),
    }
}

fn variables(node: &Node, problems: &Problems) -> Vec<VariableSpec> {
    let entries = match &node.content {
        Content::Map(entries) => entries,
        _ => {
            problems.add(node.line, "variables", "has to be a map of variables by name");
            return Vec::new();
        }
    };
    if entries.len() > VariableSpec::MOST {
        let message = format!("must be at most {} variables, got {}", VariableSpec::MOST, entries.len());
        problems.add(node.line, "variables", message);
        return Vec::new();
    }
    let room = PatternRoom::default();
    let wanted = entries.iter().take_while(|_| !problems.are_enough());
    wanted.filter_map(|(name, node)| variable(name, node, &room, problems)).collect()
}

fn variable(name: &str, node: &Node, room: &PatternRoom, problems: &Problems) -> Option<VariableSpec> {
    let path = format!("variables.{}", shortened(name));
    if !is_variable_name(name) {
        let allowed =
            "must be called by 1 to 64 letters, digits and `_`, the first no digit, and not `workspace`";
        problems.add(node.line, &path, allowed);
        return None;
    }
    let mut section = Section::of(node, &path, problems)?;
    let kind = section.parsed::<VariableKind>("type");
    let description =
        section.optional_as("description", |text| plain_lines(&text, 0, 1000, "at most 1,000 characters"));
    let (is_required, is_sensitive) = (section.truth("is_required"), section.truth("sensitive"));
    let pattern = section.optional_as("validation_pattern", |text| room.read(text));
    let default = section.take("default");
    section.finish();
    let (kind, pattern) = (kind?, pattern?.filter(|pattern| !pattern.as_str().is_empty()));
    let default = match default {
        Some(node) => match default_value(kind, node) {
            Ok(value) => Some(value),
            Err(message) => {
                problems.add(node.line, &format!("{path}.default"), message);
                return None;
            }
        },
        None => None,
    };
    let spec = VariableSpec {
        name: name.to_owned(),
        kind,
        description: description?.unwrap_or_default(),
        default,
        is_required: is_required?,
        pattern,
        is_sensitive: is_sensitive?,
    };
    // The default of a variable must satisfy its own pattern.
    if let Some(Err(refused)) = spec.default_text().map(|text| matched(&spec, &text)) {
        problems.add(node.line, &format!("{path}.default"), refused.to_string());
        return None;
    }
    Some(spec)
}

/// Parses a default, unless it is not allowed or too long to match.
fn matched(spec: &VariableSpec, text: &str) -> Result<String, InvalidValue> {
    if spec.pattern.is_some() && text.len() > LONGEST_MATCHED {
        let allowed = "at most 256 bytes where a `validation_pattern` has to match it";
        return Err(InvalidValue::number(allowed, format!("{} bytes", text.len())));
    }
    spec.read(text)
}

fn default_value(kind: VariableKind, node: &Node) -> Result<DefaultValue, String> {
    match kind {
        VariableKind::String => text(node).map(|text| DefaultValue::Text(text.to_owned())),
        VariableKind::Integer => {
            let number = text(node)?.parse();
            number.map(DefaultValue::Integer).map_err(|_no_number| "must be a whole number".to_owned())
        }
        VariableKind::Boolean => truth(node).map(DefaultValue::Truth),
        VariableKind::Array => match &node.content {
            Content::List(items) => {
                let items: Result<Vec<String>, String> =
                    items.iter().map(|item| text(item).map(str::to_owned)).collect();
                items.map(DefaultValue::List)
            }
            _ => Err("has to be a list of texts".to_owned()),
        },
    }
}

fn steps(node: &Node, path: &str, known: &[&str], problems: &Problems) -> Vec<StepSpec> {
    match &node.content {
        Content::List(items) if items.is_empty() => {
            problems.add(node.line, path, "must have at least one step")
        }
        Content::List(items) if items.len() > MOST_STEPS => {
            problems.add(
                node.line,
                path,
                format!("must have at most {MOST_STEPS} steps, got {}", items.len()),
            );
        }
        Content::List(items) => {
            let read =
                |(index, item): (usize, &Node)| step(item, &format!("{path}[{index}]"), known, problems);
            let wanted = items.iter().enumerate().take_while(|_| !problems.are_enough());
            return wanted.filter_map(read).collect();
        }
        _ => problems.add(node.line, path, "has to be a list of steps"),
    }
    Vec::new()
}

fn step(node: &Node, path: &str, known: &[&str], problems: &Problems) -> Option<StepSpec> {
    let mut section = Section::of(node, path, problems)?;
    let name = section.required_as("name", |text| plain_text(&text, 1, 100, "1 to 100 characters"));
    let kind = section.parsed::<StepKind>("type");
    let ignores_errors = section.truth("ignore_errors");
    let timeout = section.optional_as("timeout", |text| {
        let refused = || InvalidValue::text("a number of seconds between 1 and 1800", &text);
        let seconds = text.parse::<i64>().map_err(|_no_number| refused())?;
        if (1..=LONGEST_STEP).contains(&seconds) { Ok(seconds.unsigned_abs()) } else { Err(refused()) }
    });
    let properties = section.required("properties");
    section.finish();
    let (kind, properties) = (kind?, properties?);
    let inner = format!("{path}.properties");
    let entries = match &properties.content {
        Content::Map(entries) => entries,
        _ => {
            problems.add(properties.line, &inner, "has to be a map");
            return None;
        }
    };
    let mut read = Vec::new();
    for (key, node) in entries {
        let at = format!("{inner}.{}", shortened(key));
        match property(node) {
            Err(message) => problems.add(node.line, &at, message),
            Ok(property) => {
                if let Some(unknown) = property.names().find(|name| !known.contains(name)) {
                    problems.add(
                        node.line,
                        &at,
                        format!("refers to `{unknown}`, which is no variable of this definition"),
                    );
                }
                read.push((key.clone(), property));
            }
        }
    }
    if read.len() < entries.len() {
        return None;
    }
    let spec = StepSpec {
        name: name?,
        kind,
        properties: read.into_iter().collect(),
        ignores_errors: ignores_errors?,
        timeout: timeout?.map_or(StepSpec::TIMEOUT, Duration::from_secs),
    };
    check(&spec, properties, &inner, problems);
    Some(spec)
}

/// Reports the problems of a step that do not depend on values.
fn check(spec: &StepSpec, properties: &Node, path: &str, problems: &Problems) {
    let Err(misuses) = spec.resolve(&Values::new()) else { return };
    let Content::Map(entries) = &properties.content else { return };
    let lines: HashMap<&str, usize> =
        entries.iter().map(|(known, node)| (known.as_str(), node.line)).collect();
    for misuse in misuses.into_iter().take_while(|_| !problems.are_enough()) {
        let key = misuse.key;
        let has_places = spec.properties.get(&key).is_some_and(|property| property.names().next().is_some());
        // A problem that depends on a value is reported when there is one.
        if misuse.is_about_value && has_places {
            continue;
        }
        let line = lines.get(key.as_str()).copied().unwrap_or(properties.line);
        problems.add(line, &format!("{path}.{key}"), misuse.message);
    }
}

fn property(node: &Node) -> Result<Property, String> {
    let template = |node: &Node| Template::parse(text(node)?);
    match &node.content {
        Content::Scalar { .. } => template(node).map(Property::Text),
        Content::List(items) => items.iter().map(template).collect::<Result<_, _>>().map(Property::List),
        Content::Map(entries) => {
            let read = entries.iter().map(|(key, node)| Ok((key.clone(), template(node)?)));
            read.collect::<Result<_, String>>().map(Property::Map)
        }
    }
}

crate::value::parsed_by_conversion!(StepKind);

impl TryFrom<String> for StepKind {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let allowed = "one of command, file, docker, docker_compose, service, user, proxy";
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == raw);
        known.ok_or_else(|| InvalidValue::text(allowed, &raw))
    }
}

#[cfg(test)]
mod tests;
