mod accepted;
mod properties;
mod refused;

use std::collections::BTreeMap;

use super::*;
use crate::applications::Variables;

/// Returns the rules for a build with these variables, by the legacy builder.
fn legacy(variables: &Variables) -> Policy<'_> {
    Policy { variables, builder: DockerfileBuilder::Legacy, cache_scope: "launchway-1" }
}

/// Returns the same by BuildKit.
fn buildkit(variables: &Variables) -> Policy<'_> {
    Policy { builder: DockerfileBuilder::BuildKit, ..legacy(variables) }
}

fn variables(pairs: &[(&str, &str)]) -> Variables {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect::<BTreeMap<_, _>>().try_into().unwrap()
}

fn check(text: &str, pairs: &[(&str, &str)]) -> Result<CheckedDockerfile, Rejection> {
    Dockerfile::parse(text.as_bytes()).and_then(|tree| buildkit(&variables(pairs)).check(tree))
}

fn rendered(text: &str) -> String {
    check(text, &[]).unwrap_or_else(|rejection| panic!("{text:?}: {rejection}")).render()
}

/// Returns the names of the images that a file needs.
fn images(text: &str, pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let checked = check(text, pairs).map_err(|rejection| rejection.reason)?;
    let mut images: Vec<String> =
        checked.images().iter().map(|base| base.image.as_str().to_owned()).collect();
    images.dedup();
    Ok(images)
}

/// Returns the instructions without their lines.
fn instructions(tree: &Dockerfile) -> Vec<&Instruction> {
    tree.statements.iter().map(|statement| &statement.instruction).collect()
}
