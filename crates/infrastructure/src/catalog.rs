//! The catalog: the definitions that are included with Launchway, from the folder `catalog`.

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../catalog/", $name)))),+]
    };
}

/// The name and the text of each file, sorted by name.
pub const FILES: &[(&str, &str)] = files![
    "adminer.yaml",
    "clickhouse.yaml",
    "drawio.yaml",
    "forgejo.yaml",
    "gotenberg.yaml",
    "gotify.yaml",
    "grafana.yaml",
    "hello-note.yaml",
    "it-tools.yaml",
    "linkding.yaml",
    "mailpit.yaml",
    "mariadb-dump.yaml",
    "mariadb.yaml",
    "meilisearch.yaml",
    "memcached.yaml",
    "memos.yaml",
    "miniflux.yaml",
    "mongodb.yaml",
    "n8n.yaml",
    "navidrome.yaml",
    "node-exporter.yaml",
    "paperless-ngx.yaml",
    "placeholder-page.yaml",
    "postgres-dump.yaml",
    "postgres.yaml",
    "privatebin.yaml",
    "prometheus.yaml",
    "registry.yaml",
    "seaweedfs.yaml",
    "sftpgo.yaml",
    "umami.yaml",
    "uptime-kuma.yaml",
    "valkey.yaml",
    "vaultwarden.yaml",
    "wbo.yaml",
    "whoami.yaml",
    "wikijs.yaml",
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, path::Path};

    use launchway_domain::extensions::{
        Action, ComposeAction, ComposeText, Definition, DockerAction, ExtensionKind, InvalidDefinition,
        Values, WORKSPACE, check_values,
    };

    use super::*;
    use crate::extensions::rehearse;

    fn definitions() -> impl Iterator<Item = (&'static str, Definition)> {
        FILES.iter().map(|(name, text)| match Definition::parse(text) {
            Ok(definition) => (*name, definition),
            Err(InvalidDefinition(problems)) => panic!("{name}: {problems:#?}"),
        })
    }

    /// Valid values for all variables, with defaults where there are some.
    fn values(definition: &Definition) -> Values {
        let answer = |name: &str| match name {
            "domain" => "app.example.com".to_owned(),
            "access_key" => "an-access-key".to_owned(),
            _ => "aVeryLong0AndQuiteSecretText1".repeat(2),
        };
        let asked = definition.variables.iter().filter(|variable| variable.default.is_none());
        let given: BTreeMap<String, String> =
            asked.map(|variable| (variable.name.clone(), answer(&variable.name))).collect();
        let mut values = check_values(&definition.variables, &given).unwrap();
        values.insert(WORKSPACE.to_owned(), "/srv/runs/1".to_owned());
        values
    }

    fn actions(definition: &Definition) -> Vec<Action> {
        let values = values(definition);
        let resolved = definition.steps().map(|step| match step.resolve(&values) {
            Ok(action) => action,
            Err(misuses) => panic!("{}, {}: {misuses:#?}", definition.metadata.id, step.name),
        });
        resolved.collect()
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_catalog() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog");
        let mut there: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        let known: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, there);
    }

    #[test]
    fn the_documentation_lists_every_definition() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/extensions.md");
        let page = fs::read_to_string(page).unwrap();
        for name in FILES.iter().filter_map(|(name, _)| name.strip_suffix(".yaml")) {
            assert!(page.contains(&format!("\n| `{name}` | ")), "docs/extensions.md has no row for `{name}`");
        }
    }

    #[test]
    fn a_file_is_called_after_what_it_defines() {
        for (name, definition) in definitions() {
            assert_eq!(name, format!("{}.yaml", definition.metadata.id));
        }
    }

    #[test]
    fn every_definition_goes_through_a_rehearsal() {
        for (name, definition) in definitions() {
            let mut values = values(&definition);
            values.remove(WORKSPACE);
            assert_eq!(rehearse(&definition, &values), Ok(()), "{name}");
        }
    }

    #[test]
    fn every_definition_has_a_purpose_and_a_check() {
        for (name, definition) in definitions() {
            assert!(!definition.metadata.description.is_empty(), "{name}");
            assert!(!definition.metadata.version.is_empty(), "{name}");
            assert!(!definition.validate.is_empty(), "{name} has no `validate`");
            assert!(definition.variables.iter().all(|variable| !variable.description.is_empty()), "{name}");
        }
    }

    #[test]
    fn secrets_have_no_default_and_a_pattern() {
        for (name, definition) in definitions() {
            for variable in &definition.variables {
                let sounds_secret =
                    ["password", "secret", "token", "_key"].iter().any(|word| variable.name.contains(word));
                // The name of a key is no secret.
                assert!(!sounds_secret || variable.is_sensitive || variable.name == "access_key", "{name}");
                if variable.is_sensitive {
                    assert!(variable.default.is_none() && variable.is_required, "{name}: {}", variable.name);
                    assert!(variable.pattern.is_some(), "{name}: {}", variable.name);
                    assert!(variable.read("").is_err(), "{name}: {}", variable.name);
                }
            }
        }
    }

    #[test]
    fn every_step_resolves_with_valid_answers() {
        for (name, definition) in definitions() {
            assert_eq!(actions(&definition).len(), definition.steps().count(), "{name}");
        }
    }

    #[test]
    fn admins_may_run_every_extension_but_the_note() {
        for (name, definition) in definitions() {
            assert_eq!(definition.acts_on_host(), name == "hello-note.yaml", "{name}");
        }
    }

    #[test]
    fn an_installation_lasts_and_a_run_leaves_no_container() {
        for (name, definition) in definitions() {
            let lasts = actions(&definition).iter().any(|action| match action {
                Action::Docker(DockerAction::Run(container)) => container.is_detached,
                Action::Compose(ComposeAction::Up { .. }) => true,
                _ => false,
            });
            assert_eq!(lasts, definition.metadata.kind == ExtensionKind::Install, "{name}");
        }
    }

    #[test]
    fn several_can_live_side_by_side() {
        for (name, definition) in definitions().filter(|(_, it)| it.metadata.kind == ExtensionKind::Install) {
            let own = values(&definition).remove("name").unwrap_or_else(|| panic!("{name} has no `name`"));
            for action in actions(&definition) {
                match action {
                    Action::Docker(DockerAction::Run(container)) => {
                        assert!(container.name.as_str().starts_with(&own), "{name}");
                        let is_own = |volume: &str| volume.starts_with(&format!("{own}-"));
                        assert!(
                            container.volumes.iter().all(|mount| is_own(mount.volume.as_str())),
                            "{name}"
                        );
                    }
                    Action::Compose(ComposeAction::Up { project, .. }) => assert_eq!(project.as_str(), own),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn images_are_pinned() {
        let is_pinned = |image: &str| {
            let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag);
            tag.contains(|c: char| c.is_ascii_digit()) && !tag.contains("latest")
        };
        for (name, definition) in definitions() {
            for action in actions(&definition) {
                match action {
                    Action::Docker(DockerAction::Pull(image)) => assert!(is_pinned(image.as_str()), "{name}"),
                    Action::Docker(DockerAction::Run(container)) => {
                        assert!(is_pinned(container.image.as_str()), "{name}");
                    }
                    Action::Compose(ComposeAction::Up { file: ComposeText::Inline(text), .. }) => {
                        let images = text.lines().filter_map(|line| line.trim().strip_prefix("image: "));
                        assert!(images.clone().count() > 0 && images.clone().all(is_pinned), "{name}");
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn no_value_is_part_of_a_script_and_no_secret_of_a_command() {
        for (name, definition) in definitions() {
            let values = values(&definition);
            let secrets = definition.variables.iter().filter(|variable| variable.is_sensitive);
            let secrets: Vec<&str> = secrets.map(|variable| variable.name.as_str()).collect();
            for step in definition.steps() {
                let Some(command) = step.properties.get("command") else { continue };
                let Ok(Action::Docker(DockerAction::Run(container))) = step.resolve(&values) else {
                    panic!()
                };
                let runs_script = container.command.first().is_some_and(|first| first == "sh");
                assert!(!runs_script || command.names().next().is_none(), "{name}: {}", step.name);
                // Commands are visible in a list of processes.
                assert!(command.names().all(|used| !secrets.contains(&used)), "{name}: {}", step.name);
            }
        }
    }
}
