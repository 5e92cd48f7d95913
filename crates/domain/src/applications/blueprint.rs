//! The configuration of an application, everything about it that users choose, and changes of it.

use super::{
    ApplicationName, BasePath, Branch, BuildPack, CopyCount, DockerfilePath, Environment, HealthCheckPath,
    Hostname, ImageRef, Labels, Port, ProxyServer, Repository, Variables, WatchPaths,
};
use crate::value::{InvalidValue, text_value};

text_value!(
    /// A command for `/bin/sh -c` in a container of the application.
    RunCommand,
    |raw| {
        if (1..=RunCommand::LONGEST).contains(&raw.len()) && !raw.contains('\0') {
            Ok(raw)
        } else {
            Err(InvalidValue::secret("a command of at most 16384 bytes without a NUL byte"))
        }
    }
);

impl RunCommand {
    /// The length limit, in bytes.
    pub const LONGEST: usize = 16 * 1024;
}

/// The configuration of an application. Its parts fit together: see [`Blueprint::check`].
///
/// ```
/// use launchway_domain::applications::Blueprint;
///
/// let [name, environment] = ["web", "production"];
/// let web = Blueprint::of_image(
///     name.parse().unwrap(),
///     environment.parse().unwrap(),
///     "nginx:1.27".parse().unwrap(),
///     80.try_into().unwrap(),
/// );
/// assert_eq!(web.check(), Ok(()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blueprint {
    /// The name of the application.
    pub name: ApplicationName,
    /// The source: a git repository or an image.
    pub repository: Repository,
    /// None for a prebuilt image.
    pub branch: Option<Branch>,
    /// The folder of the repository to build from.
    pub base_path: BasePath,
    /// The Dockerfile or compose file in that folder.
    pub dockerfile_path: DockerfilePath,
    /// The way in which the source is built.
    pub build_pack: BuildPack,
    /// The environment that it runs in.
    pub environment: Environment,
    /// The custom host name, beside its automatic one.
    pub domain: Option<Hostname>,
    /// The port that it listens on inside its container.
    pub port: Port,
    /// The command that runs before a new version starts; if it fails, the deployment fails.
    pub pre_run_command: Option<RunCommand>,
    /// The command that runs after a new version is live.
    pub post_run_command: Option<RunCommand>,
    /// The proxy in front of it.
    pub proxy_server: ProxyServer,
    /// Labels to find it by.
    pub labels: Labels,
    /// The path of the HTTP health check; without, an open port is enough.
    pub health_check_path: Option<HealthCheckPath>,
    /// True if a push deploys it.
    pub auto_deploy: bool,
    /// The number of copies that run.
    pub copies: CopyCount,
    /// The paths of the repository of which a push must change one to deploy it.
    pub watch_paths: WatchPaths,
}

/// A field of a blueprint that does not fit the others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct InvalidBlueprint {
    /// The name of the field.
    pub field: &'static str,
    /// The rule that is violated.
    pub reason: &'static str,
}

/// A partial update of an application. Absent fields keep their values.
#[derive(Debug, Clone, Default)]
pub struct ApplicationChange {
    /// The new name.
    pub name: Option<ApplicationName>,
    /// The repository as it was given. Its meaning depends on the build pack.
    pub repository: Option<String>,
    /// The branch to deploy.
    pub branch: Option<Branch>,
    /// The directory of the repository to build from.
    pub base_path: Option<BasePath>,
    /// The path of the Dockerfile or compose file inside the base path.
    pub dockerfile_path: Option<DockerfilePath>,
    /// The build pack.
    pub build_pack: Option<BuildPack>,
    /// The environment, for example production.
    pub environment: Option<Environment>,
    /// The domain that the application has beside its automatic one.
    pub domain: Option<Hostname>,
    /// The port that it listens on inside its container.
    pub port: Option<Port>,
    /// The command that runs before a new version starts.
    pub pre_run_command: Option<RunCommand>,
    /// The command that runs once a new version is live.
    pub post_run_command: Option<RunCommand>,
    /// The proxy server in front of it.
    pub proxy_server: Option<ProxyServer>,
    /// The labels to search for it by.
    pub labels: Option<Labels>,
    /// The path of the HTTP health check.
    pub health_check_path: Option<HealthCheckPath>,
    /// True if a push deploys it.
    pub auto_deploy: Option<bool>,
    /// The number of copies that run. If nothing else changes, they are started or stopped without a deployment.
    pub copies: Option<CopyCount>,
    /// The paths of which a push must change one to deploy it.
    pub watch_paths: Option<WatchPaths>,
    /// The variables of the build.
    pub build_variables: Option<Variables>,
    /// The environment variables of the containers.
    pub environment_variables: Option<Variables>,
}

impl ApplicationChange {
    /// Returns the names of the fields that are given, each with its value in the blueprint `after` the change. A field
    /// that may contain a secret has no value: commands may as well as variables.
    #[must_use]
    pub fn fields(&self, after: &Blueprint) -> Vec<(&'static str, Option<String>)> {
        let mut fields = Vec::new();
        let mut add = |is_given: bool, name: &'static str, value: Option<String>| {
            if is_given {
                fields.push((name, value));
            }
        };
        add(self.name.is_some(), "name", Some(after.name.to_string()));
        add(self.repository.is_some(), "repository", Some(after.repository.as_str().to_owned()));
        add(self.branch.is_some(), "branch", after.branch.as_ref().map(ToString::to_string));
        add(self.base_path.is_some(), "base_path", Some(after.base_path.to_string()));
        add(self.dockerfile_path.is_some(), "dockerfile_path", Some(after.dockerfile_path.to_string()));
        add(self.build_pack.is_some(), "build_pack", Some(after.build_pack.as_str().to_owned()));
        add(self.environment.is_some(), "environment", Some(after.environment.to_string()));
        add(self.domain.is_some(), "domain", after.domain.as_ref().map(ToString::to_string));
        add(self.port.is_some(), "port", Some(after.port.get().to_string()));
        add(self.pre_run_command.is_some(), "pre_run_command", None);
        add(self.post_run_command.is_some(), "post_run_command", None);
        add(self.proxy_server.is_some(), "proxy_server", Some(after.proxy_server.as_str().to_owned()));
        add(self.labels.is_some(), "labels", Some(listed(after.labels.as_slice())));
        let health_check_path = after.health_check_path.as_ref().map(ToString::to_string);
        add(self.health_check_path.is_some(), "health_check_path", health_check_path);
        add(self.auto_deploy.is_some(), "auto_deploy", Some(after.auto_deploy.to_string()));
        add(self.copies.is_some(), "replicas", Some(after.copies.get().to_string()));
        add(self.watch_paths.is_some(), "watch_paths", Some(listed(after.watch_paths.as_slice())));
        add(self.build_variables.is_some(), "build_variables", None);
        add(self.environment_variables.is_some(), "environment_variables", None);
        fields
    }
}

fn listed(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Blueprint {
    /// Returns the blueprint of a prebuilt image that listens on `port`, in `environment`, with defaults
    /// for everything else.
    #[must_use]
    pub fn of_image(name: ApplicationName, environment: Environment, image: ImageRef, port: Port) -> Self {
        Self::new(name, environment, BuildPack::Image, Repository::Image(image), None, port)
    }

    /// Returns the blueprint of a source, with defaults for everything else.
    #[must_use]
    pub fn new(
        name: ApplicationName,
        environment: Environment,
        build_pack: BuildPack,
        repository: Repository,
        branch: Option<Branch>,
        port: Port,
    ) -> Self {
        Self {
            name,
            repository,
            branch,
            base_path: BasePath::default(),
            dockerfile_path: DockerfilePath::default(),
            build_pack,
            environment,
            domain: None,
            port,
            pre_run_command: None,
            post_run_command: None,
            proxy_server: ProxyServer::default(),
            labels: Labels::default(),
            health_check_path: None,
            auto_deploy: true,
            copies: CopyCount::ONE,
            watch_paths: WatchPaths::default(),
        }
    }

    /// Returns the blueprint after a change, but with the same repository: a given one is to be parsed, and may have
    /// credentials.
    #[must_use]
    pub fn with(self, change: ApplicationChange) -> Self {
        Self {
            name: change.name.unwrap_or(self.name),
            repository: self.repository,
            branch: change.branch.or(self.branch),
            base_path: change.base_path.unwrap_or(self.base_path),
            dockerfile_path: change.dockerfile_path.unwrap_or(self.dockerfile_path),
            build_pack: change.build_pack.unwrap_or(self.build_pack),
            environment: change.environment.unwrap_or(self.environment),
            domain: change.domain.or(self.domain),
            port: change.port.unwrap_or(self.port),
            pre_run_command: change.pre_run_command.or(self.pre_run_command),
            post_run_command: change.post_run_command.or(self.post_run_command),
            proxy_server: change.proxy_server.unwrap_or(self.proxy_server),
            labels: change.labels.unwrap_or(self.labels),
            health_check_path: change.health_check_path.or(self.health_check_path),
            auto_deploy: change.auto_deploy.unwrap_or(self.auto_deploy),
            copies: change.copies.unwrap_or(self.copies),
            watch_paths: change.watch_paths.unwrap_or(self.watch_paths),
        }
    }

    /// Checks that the fields fit the build pack.
    ///
    /// # Errors
    /// All fields that do not.
    pub fn check(&self) -> Result<(), Vec<InvalidBlueprint>> {
        let mut problems = Vec::new();
        let mut require = |holds: bool, field: &'static str, reason: &'static str| {
            if !holds {
                problems.push(InvalidBlueprint { field, reason });
            }
        };
        let is_image = self.build_pack == BuildPack::Image;
        let fits = matches!(self.repository, Repository::Image(_)) == is_image;
        require(
            fits,
            "repository",
            "must be an image reference for build pack `image`, and a git repository for others",
        );
        require(is_image || self.branch.is_some(), "branch", "is required");
        if self.build_pack == BuildPack::Static {
            let nothing_runs = "must be absent for build pack `static`: nothing runs there";
            require(self.pre_run_command.is_none(), "pre_run_command", nothing_runs);
            require(self.post_run_command.is_none(), "post_run_command", nothing_runs);
            require(self.health_check_path.is_none(), "health_check_path", nothing_runs);
        }
        require(
            !is_image || self.watch_paths.is_empty(),
            "watch_paths",
            "must be absent for build pack `image`: nothing is pushed",
        );
        let is_one = self.copies == CopyCount::ONE;
        match self.build_pack {
            BuildPack::Static => require(
                is_one,
                "replicas",
                "must be 1 for build pack `static`: the proxy serves its files, and no container runs",
            ),
            BuildPack::DockerCompose => require(
                is_one,
                "replicas",
                "must be 1 for build pack `docker-compose`: two copies of its services would share volumes",
            ),
            BuildPack::Dockerfile | BuildPack::Image | BuildPack::Nixpacks => {}
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blueprint(build_pack: BuildPack) -> Blueprint {
        let (name, environment) = ("web".parse().unwrap(), "production".parse().unwrap());
        let image = "nginx:1".parse().unwrap();
        let plain = Blueprint::of_image(name, environment, image, Port::try_from(8080).unwrap());
        match build_pack {
            BuildPack::Image => plain,
            _ => Blueprint {
                repository: Repository::Git("https://example.com/x.git".to_owned().try_into().unwrap()),
                branch: Some("main".parse().unwrap()),
                build_pack,
                ..plain
            },
        }
    }

    #[test]
    fn a_prebuilt_image_needs_no_more_than_its_name_and_its_port() {
        let image = "nginx:1".parse().unwrap();
        let usual = Blueprint::of_image(
            "web".parse().unwrap(),
            "production".parse().unwrap(),
            image,
            Port::try_from(8080).unwrap(),
        );
        assert_eq!(usual, blueprint(BuildPack::Image));
    }

    #[test]
    fn what_a_build_pack_needs_is_there() {
        for pack in BuildPack::ALL {
            assert_eq!(blueprint(pack).check(), Ok(()));
        }
        let other = Blueprint { build_pack: BuildPack::Image, ..blueprint(BuildPack::Dockerfile) };
        assert_eq!(other.check().unwrap_err().len(), 1);
        let other = Blueprint { build_pack: BuildPack::Static, ..blueprint(BuildPack::Image) };
        let fields: Vec<_> = other.check().unwrap_err().iter().map(|problem| problem.field).collect();
        assert_eq!(fields, ["repository", "branch"]);
    }

    #[test]
    fn where_nothing_runs_there_is_no_command_and_no_health_check() {
        let command: RunCommand = "true".parse().unwrap();
        let site = Blueprint {
            pre_run_command: Some(command.clone()),
            post_run_command: Some(command),
            health_check_path: Some("/".parse().unwrap()),
            ..blueprint(BuildPack::Static)
        };
        let fields: Vec<_> = site.check().unwrap_err().iter().map(|problem| problem.field).collect();
        assert_eq!(fields, ["pre_run_command", "post_run_command", "health_check_path"]);
    }

    #[test]
    fn only_what_runs_as_one_container_has_several_copies() {
        for pack in BuildPack::ALL {
            let several = Blueprint { copies: CopyCount::try_from(2).unwrap(), ..blueprint(pack) };
            let fields = several.check().err().unwrap_or_default();
            let fields: Vec<_> = fields.iter().map(|problem| problem.field).collect();
            match pack {
                BuildPack::Static | BuildPack::DockerCompose => assert_eq!(fields, ["replicas"], "{pack:?}"),
                _ => assert!(fields.is_empty(), "{pack:?}"),
            }
        }
    }

    #[test]
    fn only_what_is_pushed_has_watched_paths() {
        let watch_paths = WatchPaths::try_from(vec!["src/".to_owned()]).unwrap();
        for pack in BuildPack::ALL {
            let watching = Blueprint { watch_paths: watch_paths.clone(), ..blueprint(pack) };
            let fields = watching.check().err().unwrap_or_default();
            let fields: Vec<_> = fields.iter().map(|problem| problem.field).collect();
            let expected: &[&str] = if pack == BuildPack::Image { &["watch_paths"] } else { &[] };
            assert_eq!(fields, expected, "{pack:?}");
        }
    }

    #[test]
    fn a_command_has_at_most_16_kib_and_no_nul() {
        assert!("x".repeat(16_384).parse::<RunCommand>().is_ok());
        assert!("x".repeat(16_385).parse::<RunCommand>().is_err());
        assert!("".parse::<RunCommand>().is_err());
        assert!("a\0b".parse::<RunCommand>().is_err());
        assert_eq!(" a\n b ".parse::<RunCommand>().unwrap().as_str(), " a\n b ");
    }
}
