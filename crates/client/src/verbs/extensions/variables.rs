//! The variables of an extension, from arguments, a file, or prompts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::Extension;
use crate::{
    dotenv,
    failure::{Failure, Kind, Outcome},
    prompt,
    screen::{Screen, Tone, visible},
};

pub(super) type Values = BTreeMap<String, String>;

#[derive(Deserialize)]
pub(super) struct Variable {
    pub(super) variable_name: String,
    pub(super) variable_type: String,
    pub(super) description: String,
    default_value: Value,
    pub(super) is_required: bool,
    validation_pattern: String,
}

impl Variable {
    /// Returns the default value, as it would be typed.
    pub(super) fn usual(&self) -> Option<String> {
        match &self.default_value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

/// Returns the values of arguments and of a file; arguments take precedence.
pub(super) fn given(arguments: &[String], file: Option<&str>) -> Outcome<Values> {
    let mut values = Values::new();
    if let Some(file) = file {
        let text = prompt::file(file)?;
        let read = dotenv::parse(&text)
            .map_err(|problem| Failure::new(Kind::Usage, format!("{file}, {problem}")))?;
        values.extend(read);
    }
    for argument in arguments {
        let Some((name, value)) = argument.split_once('=') else {
            return Err(Failure::new(Kind::Usage, format!("--set {argument} has no value"))
                .hint("use --set name=value, or omit it to be asked; use --file for secrets"));
        };
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(values)
}

/// Asks for required values that are missing, on a terminal.
pub(super) fn complete(extension: &Extension, values: &mut Values, screen: &Screen) -> Outcome {
    let open = extension
        .variables
        .iter()
        .filter(|variable| variable.is_required && !values.contains_key(&variable.variable_name));
    let open: Vec<&Variable> = open.collect();
    if !screen.is_interactive() {
        let missing: Vec<_> = open.iter().filter(|variable| variable.usual().is_none()).collect();
        return match missing.is_empty() {
            true => Ok(()),
            false => {
                let names: Vec<_> = missing.iter().map(|one| format!("`{}`", one.variable_name)).collect();
                let sentence = format!("{} requires values for {}", extension.extension_id, names.join(", "));
                Err(Failure::new(Kind::Usage, sentence)
                    .hint("use --set name=value, or --file with an .env file or - for standard input"))
            }
        };
    }
    for variable in open {
        ask(extension, variable, values, screen)?;
    }
    Ok(())
}

/// Asks again for values that the server rejected. Returns `false` if the variable is unknown.
pub(super) fn correct(
    extension: &Extension,
    refusal: &Failure,
    values: &mut Values,
    screen: &Screen,
) -> Outcome<bool> {
    let message = refusal.to_string();
    let names = refused(&message);
    let wrong: Vec<_> =
        extension.variables.iter().filter(|one| names.contains(one.variable_name.as_str())).collect();
    if wrong.is_empty() || wrong.len() < names.len() {
        return Ok(false);
    }
    screen.print_failure(refusal);
    for variable in wrong {
        ask(extension, variable, values, screen)?;
    }
    Ok(true)
}

/// Returns the variables in an error message: `variables.port must be …; variables.name is required`.
fn refused(message: &str) -> BTreeSet<&str> {
    let named = message.split("; ").filter_map(|problem| problem.strip_prefix("variables."));
    named.filter_map(|problem| problem.split(' ').next()).collect()
}

fn ask(extension: &Extension, variable: &Variable, values: &mut Values, screen: &Screen) -> Outcome {
    let name = &variable.variable_name;
    screen.remark(&format!("{} {}", screen.tint_remark(&visible(name), Tone::Strong), about(variable)));
    let usual = variable.usual();
    let value = match is_sensitive(extension, name) {
        true => loop {
            match (prompt::secret(name)?, &usual) {
                (value, Some(usual)) if value.is_empty() => break usual.clone(),
                (value, None) if value.is_empty() => {}
                (value, _) => break value,
            }
        },
        false => prompt::text(screen, name, usual.as_deref())?,
    };
    values.insert(name.clone(), value);
    Ok(())
}

fn about(variable: &Variable) -> String {
    let Variable { description, variable_type, validation_pattern, .. } = variable;
    let kind = match validation_pattern.as_str() {
        "" => variable_type.clone(),
        pattern => format!("{variable_type}, matches {pattern}"),
    };
    visible(&format!("{} ({kind})", description.trim()))
}

/// Returns whether a value is a secret, which only the definition itself declares.
fn is_sensitive(extension: &Extension, name: &str) -> bool {
    let definition: Value = serde_json::from_str(&extension.parsed_content).unwrap_or_default();
    definition["variables"][name]["sensitive"].as_bool().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_its_variables() {
        let message = "variables.who must be what the variable's `validation_pattern` describes, got `A`; \
                       variables.port is required";
        assert_eq!(refused(message), BTreeSet::from(["who", "port"]));
        assert!(refused("step 1 `x`: image is not allowed").is_empty());
    }

    #[test]
    fn arguments_win_over_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values.env");
        std::fs::write(&path, "name=shop\nport=5432\n").unwrap();
        let values = given(&["port=5433".to_owned()], path.to_str()).unwrap();
        assert_eq!(values, Values::from([("name".into(), "shop".into()), ("port".into(), "5433".into())]));
        std::fs::write(&path, "name=shop\nnonsense").unwrap();
        assert!(given(&[], path.to_str()).unwrap_err().to_string().contains("line 2"));
        assert_eq!(given(&["port".to_owned()], None).unwrap_err().kind, Kind::Usage);
    }

    #[test]
    fn what_is_usual_is_shown_as_it_would_be_typed() {
        let usual = |default_value| {
            Variable {
                variable_name: "x".into(),
                variable_type: "string".into(),
                description: String::new(),
                default_value,
                is_required: true,
                validation_pattern: String::new(),
            }
            .usual()
        };
        assert_eq!(usual(json!("text")).as_deref(), Some("text"));
        assert_eq!(usual(json!(5432)).as_deref(), Some("5432"));
        assert_eq!(usual(json!(["a", "b"])).as_deref(), Some(r#"["a","b"]"#));
        assert_eq!(usual(Value::Null), None);
    }
}
