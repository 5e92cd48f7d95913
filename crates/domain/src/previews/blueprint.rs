//! The configuration of a preview.

use super::PreviewSettings;
use crate::{
    applications::{ApplicationName, Blueprint, Branch, CopyCount, Environment},
    value::InvalidValue,
    webhooks::RequestNumber,
};

/// The environment of the previews of applications in production.
const ENVIRONMENT: &str = "preview";
/// The length limit of the name of an application.
const LONGEST_NAME: usize = 63;
/// The length limit of an environment.
const LONGEST_ENVIRONMENT: usize = 50;

impl PreviewSettings {
    /// Returns the blueprint of the preview of a request for an application: that of the application with the branch of
    /// the request, without its domain, in one copy. Pushes do not deploy it, the changes of its request do.
    ///
    /// # Errors
    /// [`InvalidValue`] if its name would not be valid, which the rules of names exclude.
    pub fn blueprint(
        &self,
        parent: &Blueprint,
        number: RequestNumber,
        branch: Branch,
    ) -> Result<Blueprint, InvalidValue> {
        let keep = |command: &Option<_>| command.clone().filter(|_| self.runs_commands);
        Ok(Blueprint {
            name: name(&parent.name, number)?,
            environment: environment(&parent.environment)?,
            branch: Some(branch),
            domain: None,
            pre_run_command: keep(&parent.pre_run_command),
            post_run_command: keep(&parent.post_run_command),
            auto_deploy: false,
            copies: CopyCount::ONE,
            ..parent.clone()
        })
    }
}

fn name(parent: &ApplicationName, number: RequestNumber) -> Result<ApplicationName, InvalidValue> {
    let mut name = format!("pr-{number}-{parent}");
    name.truncate(LONGEST_NAME);
    name.trim_end().to_owned().try_into()
}

fn environment(parent: &Environment) -> Result<Environment, InvalidValue> {
    let mut environment = match parent.as_str() {
        "production" => ENVIRONMENT.to_owned(),
        parent => format!("{ENVIRONMENT}-{parent}"),
    };
    environment.truncate(LONGEST_ENVIRONMENT);
    environment.trim_end_matches('-').to_owned().try_into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        applications::{BuildPack, Repository},
        clock::Timestamp,
        previews::{PreviewLifetime, PreviewLimit},
        secret::Sealed,
    };

    fn settings(runs_commands: bool) -> PreviewSettings {
        PreviewSettings {
            application: uuid::Uuid::nil().into(),
            is_enabled: true,
            limit: PreviewLimit::default(),
            lifetime: PreviewLifetime::default(),
            shared: Default::default(),
            runs_commands,
            build_variables: Sealed(String::new()),
            environment_variables: Sealed(String::new()),
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn parent(name: &str, environment: &str) -> Blueprint {
        let image = "nginx:1".parse().unwrap();
        let port = 80.try_into().unwrap();
        let plain = Blueprint::of_image(name.parse().unwrap(), environment.parse().unwrap(), image, port);
        Blueprint {
            repository: Repository::Git("https://example.com/x.git".to_owned().try_into().unwrap()),
            branch: Some("main".parse().unwrap()),
            build_pack: BuildPack::Dockerfile,
            domain: Some("shop.example.com".parse().unwrap()),
            pre_run_command: Some("./migrate".parse().unwrap()),
            post_run_command: Some("./announce".parse().unwrap()),
            copies: 3.try_into().unwrap(),
            ..plain
        }
    }

    fn of(parent: &Blueprint, number: i64) -> Blueprint {
        let (number, branch) = (number.try_into().unwrap(), "feature/a".parse().unwrap());
        settings(false).blueprint(parent, number, branch).unwrap()
    }

    #[test]
    fn a_preview_has_another_name_branch_and_environment() {
        let parent = parent("shop", "production");
        let preview = of(&parent, 7);
        assert_eq!(preview.check(), Ok(()));
        let expected = Blueprint {
            name: "pr-7-shop".parse().unwrap(),
            environment: "preview".parse().unwrap(),
            branch: Some("feature/a".parse().unwrap()),
            domain: None,
            pre_run_command: None,
            post_run_command: None,
            auto_deploy: false,
            copies: CopyCount::ONE,
            ..parent
        };
        assert_eq!(preview, expected);
    }

    #[test]
    fn commands_run_only_if_the_settings_say_so() {
        let parent = parent("shop", "production");
        let (number, branch) = (7.try_into().unwrap(), "main".parse().unwrap());
        let preview = settings(true).blueprint(&parent, number, branch).unwrap();
        assert_eq!(preview.pre_run_command, parent.pre_run_command);
        assert_eq!(preview.post_run_command, parent.post_run_command);
    }

    #[test]
    fn every_parent_has_a_valid_preview() {
        for (name, environment) in [
            ("a".repeat(63), "b".repeat(50)),
            (format!("{} {}", "a".repeat(50), "b".repeat(12)), format!("{}-c", "b".repeat(41))),
            ("x".to_owned(), "staging".to_owned()),
        ] {
            for number in [1, RequestNumber::MOST] {
                let preview = of(&parent(&name, &environment), number);
                assert!(preview.name.as_str().starts_with(&format!("pr-{number}-")), "{}", preview.name);
                assert!(preview.environment.as_str().starts_with("preview-"), "{}", preview.environment);
            }
        }
    }
}
