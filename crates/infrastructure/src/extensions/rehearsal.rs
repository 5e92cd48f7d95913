//! Checks a definition without executing anything.

use launchway_docker::{check_file, may_be_named};
use launchway_domain::{
    applications::{ImageRef, Variables},
    extensions::{Action, ComposeAction, ComposeText, Definition, DockerAction, StepSpec, Values, WORKSPACE},
};

/// The workspace of the run.
const ANYWHERE: &str = "/workspace";

/// Checks every step of a definition with `values`, as far as possible without an engine: the result of
/// rendering each step, and the compose files in it.
///
/// # Errors
/// A message for each problem, with the number and the name of its step.
pub fn rehearse(definition: &Definition, values: &Values) -> Result<(), Vec<String>> {
    let mut problems = Vec::new();
    let known: Option<Variables> = match values.clone().try_into() {
        Ok(known) => Some(known),
        Err(error) => {
            problems.push(format!("the values {error}"));
            None
        }
    };
    let mut all = values.clone();
    all.insert(WORKSPACE.to_owned(), ANYWHERE.to_owned());
    for (number, step) in definition.steps().enumerate() {
        let told = step_problems(step, &all, known.as_ref());
        let place = |problem| format!("step {} (`{}`): {problem}", number + 1, step.name);
        problems.extend(told.into_iter().map(place));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn step_problems(step: &StepSpec, all: &Values, known: Option<&Variables>) -> Vec<String> {
    let action = match step.resolve(all) {
        Ok(action) => action,
        Err(misuses) => {
            let told = misuses.into_iter().map(|misuse| format!("`{}` {}", misuse.key, misuse.message));
            return told.collect();
        }
    };
    match (action, known) {
        (Action::Compose(ComposeAction::Up { file: ComposeText::Inline(text), .. }), Some(known)) => {
            check_file(&text, known).err().into_iter().collect()
        }
        (Action::Docker(DockerAction::Pull(image)), _) => unnameable(&image),
        (Action::Docker(DockerAction::Run(spec)), _) => unnameable(&spec.image),
        _ => Vec::new(),
    }
}

fn unnameable(image: &ImageRef) -> Vec<String> {
    match may_be_named(image) {
        true => Vec::new(),
        false => vec![format!("there is no image `{}`", image.as_str())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(steps: &str) -> Definition {
        let yaml = format!(
            "metadata: {{id: x, name: X, description: d, author: a, icon: i, category: Utility, type: install, isVerified: false}}\n\
             variables:\n  tag: {{type: string, description: d, is_required: false}}\n\
             execution:\n  run:\n{steps}"
        );
        Definition::parse(&yaml).unwrap()
    }

    fn rehearsed(steps: &str, tag: &str) -> Result<(), Vec<String>> {
        rehearse(&definition(steps), &Values::from([("tag".to_owned(), tag.to_owned())]))
    }

    #[test]
    fn what_every_step_would_do_is_looked_at() {
        let steps = r#"
    - {name: Pull, type: docker, properties: {action: pull, image: "postgres:{{ tag }}"}}
    - {name: Run, type: docker, properties: {action: run, name: db, image: postgres, volumes: ["data:/data"]}}
    - name: Up
      type: docker_compose
      properties:
        action: up
        project: shop
        content: |
          services: {db: {image: "postgres:${tag}", ports: ["5432:5432"]}}
    - {name: Say, type: command, properties: {cmd: "echo {{ tag }} > {{ workspace }}/x"}}
"#;
        assert_eq!(rehearsed(steps, "16"), Ok(()));
        let told = rehearsed(steps, "1 6").unwrap_err();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("step 1 (`Pull`): `image` ") && told[1].starts_with("step 3 (`Up`): "));
    }

    #[test]
    fn compose_files_pass_the_list_of_what_is_allowed() {
        for (service, told) in [
            ("{image: a, privileged: true}", "the service `db` may not have `privileged`"),
            ("{image: launchway/a:b}", "the service `db`: there is no image `launchway/a:b`"),
            ("{build: .}", "the service `db` may not have `build`"),
        ] {
            let steps = format!(
                "    - {{name: Up, type: docker_compose, properties: {{action: up, project: p, content: 'services: {{db: {service}}}'}}}}\n"
            );
            let problems = rehearsed(&steps, "").unwrap_err();
            assert!(problems[0].starts_with(&format!("step 1 (`Up`): {told}")), "{problems:?}");
        }
        let steps =
            "    - {name: Pull, type: docker, properties: {action: pull, image: 'docker.io/launchway/a'}}\n";
        assert!(rehearsed(steps, "").unwrap_err()[0].ends_with("there is no image `docker.io/launchway/a`"));
    }
}
