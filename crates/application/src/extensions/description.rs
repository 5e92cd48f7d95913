//! Converts a definition to the record of an extension.

use launchway_domain::extensions::{
    Category, DefaultValue, Definition, Extension, ExtensionKey, ExtensionKind, ExtensionVariable,
    InvalidDefinition, Pattern, Property, StepSpec, Template, Validation, VariableSpec, content_hash,
};
use serde_json::{Map, Value, json};

use crate::ServiceContext;

/// Returns the extension that `yaml` defines. The caller sets its owner and its origin.
pub(super) fn described(definition: &Definition, yaml: String, context: &ServiceContext) -> Extension {
    let now = context.clock.now();
    let variables = definition.variables.iter().map(|spec| ExtensionVariable {
        id: context.ids.next().into(),
        name: spec.name.clone(),
        kind: spec.kind,
        description: spec.description.clone(),
        default: spec.default.as_ref().map(|default| default_json(default).to_string()),
        is_required: spec.is_required,
        pattern: spec.pattern.as_ref().map(|pattern| pattern.as_str().to_owned()).unwrap_or_default(),
        created_at: now,
    });
    let metadata = definition.metadata.clone();
    Extension {
        id: context.ids.next().into(),
        organization_id: None,
        key: metadata.id,
        parent: None,
        name: metadata.name,
        description: metadata.description,
        author: metadata.author,
        icon: metadata.icon,
        category: metadata.category,
        kind: metadata.kind,
        version: metadata.version,
        is_verified: metadata.is_verified,
        content_hash: content_hash(&yaml),
        parsed: parsed(definition).to_string(),
        yaml,
        validation: Validation::Valid,
        validation_errors: "[]".to_owned(),
        variables: variables.collect(),
        created_at: now,
        updated_at: now,
        deleted_at: None,
    }
}

/// Returns an extension whose definition is invalid, with the errors.
pub(super) fn unusable(
    key: ExtensionKey,
    yaml: String,
    invalid: &InvalidDefinition,
    context: &ServiceContext,
) -> Extension {
    let now = context.clock.now();
    let errors: Vec<Value> = invalid
        .0
        .iter()
        .map(|problem| json!({ "line": problem.line, "key": problem.key, "message": problem.message }))
        .collect();
    Extension {
        id: context.ids.next().into(),
        organization_id: None,
        parent: None,
        name: (&key).into(),
        key,
        description: String::new(),
        author: String::new(),
        icon: String::new(),
        category: Category::Other,
        kind: ExtensionKind::Run,
        version: String::new(),
        is_verified: false,
        content_hash: content_hash(&yaml),
        yaml,
        parsed: "{}".to_owned(),
        validation: Validation::Invalid,
        validation_errors: Value::from(errors).to_string(),
        variables: Vec::new(),
        created_at: now,
        updated_at: now,
        deleted_at: None,
    }
}

/// Returns the parsed definition as JSON.
fn parsed(definition: &Definition) -> Value {
    let metadata = &definition.metadata;
    let variables = definition.variables.iter().map(|spec| (spec.name.clone(), variable(spec)));
    let steps = |steps: &[StepSpec]| steps.iter().map(step).collect::<Vec<_>>();
    json!({
        "metadata": {
            "id": metadata.id.as_str(),
            "name": metadata.name.as_str(),
            "description": metadata.description,
            "author": metadata.author,
            "icon": metadata.icon,
            "category": metadata.category.as_str(),
            "type": metadata.kind.as_str(),
            "version": metadata.version,
            "isVerified": metadata.is_verified,
        },
        "variables": Value::Object(variables.collect()),
        "execution": { "run": steps(&definition.run), "validate": steps(&definition.validate) },
    })
}

fn variable(spec: &VariableSpec) -> Value {
    json!({
        "type": spec.kind.as_str(),
        "description": spec.description,
        "default": spec.default.as_ref().map(default_json),
        "is_required": spec.is_required,
        "validation_pattern": spec.pattern.as_ref().map(Pattern::as_str).unwrap_or_default(),
        "sensitive": spec.is_sensitive,
    })
}

fn default_json(default: &DefaultValue) -> Value {
    match default {
        DefaultValue::Text(text) => text.as_str().into(),
        DefaultValue::Integer(number) => (*number).into(),
        DefaultValue::Truth(truth) => (*truth).into(),
        DefaultValue::List(items) => items.as_slice().into(),
    }
}

fn step(spec: &StepSpec) -> Value {
    let properties: Map<String, Value> =
        spec.properties.iter().map(|(key, value)| (key.clone(), property(value))).collect();
    json!({
        "name": spec.name,
        "type": spec.kind.as_str(),
        "properties": properties,
        "ignore_errors": spec.ignores_errors,
        "timeout": spec.timeout.as_secs(),
    })
}

fn property(property: &Property) -> Value {
    match property {
        Property::Text(template) => template.as_str().into(),
        Property::List(templates) => templates.iter().map(Template::as_str).collect::<Vec<_>>().into(),
        Property::Map(entries) => {
            let entries = entries.iter().map(|(key, template)| (key.clone(), template.as_str().into()));
            Value::Object(entries.collect())
        }
    }
}
