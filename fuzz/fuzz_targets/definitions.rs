//! Whatever is written, a definition is read or refused with its problems; and whatever the values
//! are, each of its steps is refused or stays within what it may do.
#![no_main]

use std::collections::BTreeMap;

use launchway_domain::extensions::{
    Action, Definition, FileAction, InvalidDefinition, Values, VariableKind, VariableSpec, WORKSPACE,
    WorkspacePath, check_values,
};
use libfuzzer_sys::fuzz_target;

/// The largest number of problems in one report.
const MOST_PROBLEMS: usize = 50;
const FOLDER: &str = "/srv/runs/1";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Definition::parse(text) {
        Ok(definition) => resolve(&definition, text),
        Err(InvalidDefinition(problems)) => {
            assert!((1..=MOST_PROBLEMS).contains(&problems.len()), "{problems:?}");
            assert!(problems.iter().all(|problem| problem.line > 0 && !problem.message.is_empty()));
            assert!(problems.is_sorted_by_key(|problem| problem.line));
        }
    }
});

fn resolve(definition: &Definition, text: &str) {
    assert!(definition.steps().count() <= launchway_domain::extensions::MOST_STEPS);
    let usual = with_folder(check_values(&definition.variables, &BTreeMap::new()).unwrap_or_default());
    let odd = with_folder(odd_values(&definition.variables, text));
    for step in definition.steps() {
        assert!(step.names().all(|name| usual_names(definition).any(|known| known == name)));
        let (one, other) = (step.resolve(&usual), step.resolve(&odd));
        for action in [&one, &other].into_iter().flatten() {
            stays_in_the_workspace(action);
        }
        // A shell's text is the same whatever the values are.
        if let (Ok(one @ Action::Command { .. }), Ok(other)) = (&one, &other) {
            assert_eq!(one, other);
        }
        if let Err(misuses) = other {
            assert!(!misuses.is_empty());
        }
    }
}

fn usual_names(definition: &Definition) -> impl Iterator<Item = &str> {
    definition.variables.iter().map(|variable| variable.name.as_str()).chain([WORKSPACE])
}

fn with_folder(mut values: Values) -> Values {
    values.insert(WORKSPACE.to_owned(), FOLDER.to_owned());
    values
}

/// Pieces of the input as values, those that the variables refuse left out.
fn odd_values(variables: &[VariableSpec], text: &str) -> Values {
    let pieces = text.split(['\n', ' ', ',']).chain(["../x", "a b; $(id) `id` \" ' \\", "--rm", "/etc:/etc"]);
    let pieces: Vec<&str> = pieces.collect();
    let value = |(index, variable): (usize, &VariableSpec)| {
        let piece = pieces[(index * 7 + text.len()) % pieces.len()];
        let raw = match variable.kind {
            VariableKind::Integer => text.len().to_string(),
            _ => piece.to_owned(),
        };
        Some((variable.name.clone(), variable.read(&raw).ok()?))
    };
    variables.iter().enumerate().filter_map(value).collect()
}

fn stays_in_the_workspace(action: &Action) {
    let Action::File(action) = action else { return };
    let paths: Vec<&WorkspacePath> = match action {
        FileAction::MakeFolder(path) | FileAction::Delete(path) => vec![path],
        FileAction::Write { dest, .. } => vec![dest],
        FileAction::Copy { src, dest } | FileAction::Move { src, dest } => vec![src, dest],
    };
    for path in paths {
        let path = path.as_str();
        assert!(!path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| part != ".."));
    }
}
