//! The fields of a form that is made from the variables of an extension.

use launchway_domain::extensions::{DefaultValue, LONGEST_VALUE, VariableKind, VariableSpec};

use super::VARIABLE;
use crate::form::Form;

/// A field of the form.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) about: String,
    /// A rule for values, beside those of the type.
    pub(super) rule: String,
    /// `text`, `password`, `number` or `boolean`.
    pub(super) kind: &'static str,
    pub(super) value: String,
    pub(super) is_required: bool,
    pub(super) longest: usize,
}

impl Input {
    /// Returns the field of a variable, with what was typed into a form that was refused. Secrets are typed again.
    pub(super) fn new(variable: &VariableSpec, refused: Option<&Form>) -> Self {
        let name = format!("{VARIABLE}{}", variable.name);
        let typed = refused.map(|form| form.text(&name).to_owned());
        let value = match variable.is_sensitive {
            true => String::new(),
            false => typed.unwrap_or_else(|| variable.default.as_ref().map(text).unwrap_or_default()),
        };
        Self {
            name,
            label: variable.name.replace(['_', '-'], " "),
            about: variable.description.clone(),
            rule: rule(variable),
            kind: match variable.kind {
                _ if variable.is_sensitive => "password",
                VariableKind::Integer => "number",
                VariableKind::Boolean => "boolean",
                VariableKind::String | VariableKind::Array => "text",
            },
            value,
            // A default counts if the field is empty.
            is_required: variable.is_required && variable.default.is_none(),
            longest: LONGEST_VALUE,
        }
    }
}

/// Returns a default as a user would type it.
fn text(default: &DefaultValue) -> String {
    match default {
        DefaultValue::Text(text) => text.clone(),
        DefaultValue::Integer(number) => number.to_string(),
        DefaultValue::Truth(truth) => truth.to_string(),
        DefaultValue::List(items) => serde_json::Value::from(items.as_slice()).to_string(),
    }
}

/// Returns the rule of the values. The server checks it: patterns of browsers have another syntax.
fn rule(variable: &VariableSpec) -> String {
    if variable.kind == VariableKind::Array {
        return r#"a list such as ["a", "b"]"#.to_owned();
    }
    variable.pattern.as_ref().map(|pattern| pattern.as_str().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use launchway_domain::extensions::Definition;

    use super::*;

    const DEFINITION: &str = "\
metadata: {id: note, name: Note, description: A note, author: Ada, icon: n, category: Utility, type: run, version: 1.0.0, isVerified: false}
variables:
  text_of_note: {type: string, description: The text, is_required: true, validation_pattern: '^[a-z]+$'}
  copies: {type: integer, description: How many, default: 2, is_required: true}
  loud: {type: boolean, description: In capitals, default: false, is_required: false}
  tags: {type: array, description: Tags, default: [a, b], is_required: false}
  key: {type: string, description: A secret, is_required: true, sensitive: true}
execution:
  run:
    - {name: Say it, type: command, properties: {cmd: 'true'}}
";

    fn inputs(refused: Option<&Form>) -> Vec<Input> {
        let definition = Definition::parse(DEFINITION).unwrap();
        definition.variables.iter().map(|variable| Input::new(variable, refused)).collect()
    }

    #[test]
    fn a_field_has_the_rules_of_its_variable() {
        let inputs = inputs(None);
        let shown: Vec<_> = inputs
            .iter()
            .map(|one| (one.label.as_str(), one.kind, one.value.as_str(), one.is_required))
            .collect();
        let expected = [
            ("text of note", "text", "", true),
            ("copies", "number", "2", false),
            ("loud", "boolean", "false", false),
            ("tags", "text", r#"["a","b"]"#, false),
            ("key", "password", "", true),
        ];
        assert_eq!(shown, expected);
        assert_eq!(inputs.first().map(|one| one.rule.as_str()), Some("^[a-z]+$"));
    }

    #[test]
    fn a_refused_form_keeps_all_but_secrets() {
        let form = Form::default().with("variable.copies", "many").with("variable.key", "secret");
        let values: Vec<_> = inputs(Some(&form)).into_iter().map(|one| one.value).collect();
        assert_eq!(values, ["", "many", "", "", ""]);
    }
}
