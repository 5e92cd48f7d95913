//! The request bodies of applications.

use launchway_application::applications::{ApplicationChange, NewApplication};
use launchway_domain::{
    applications::{
        ApplicationName, BasePath, Blueprint, Branch, BuildPack, CopyCount, DockerfilePath, Environment,
        GitCredentials, HealthCheckPath, Hostname, Labels, Port, ProxyServer, Repository, RunCommand,
        Variables, WatchPaths,
    },
    ids::ApplicationId,
};

use crate::{
    fields::{Field, Fields, Properties, Refused, Take},
    input::input,
    schema::text,
};

input! {
    pub(crate) struct CreateApplication {
        name: ApplicationName,
        source: Source,
        /// The port that the application listens on inside its container.
        port: Port,
        environment: Environment,
        rest: OptionalFields,
    }
}

input! {
    /// The optional fields of a new and of an updated application.
    struct OptionalFields {
        base_path: Option<BasePath>,
        dockerfile_path: Option<DockerfilePath>,
        domain: Option<Hostname>,
        /// Runs in the new image before it gets traffic.
        pre_run_command: Option<RunCommand>,
        /// Runs in the new image after it got traffic.
        post_run_command: Option<RunCommand>,
        /// They are stored in the history of the image, so they must not contain secrets.
        build_variables: Option<Variables>,
        environment_variables: Option<Variables>,
        /// The proxy in front of it.
        proxy_server: Option<ProxyServer>,
        labels: Option<Labels>,
        health_check_path: Option<HealthCheckPath>,
        /// True if pushes deploy.
        auto_deploy: Option<bool>,
        /// The number of copies that run; default 1. If nothing else changes, copies are started or stopped without a
        /// deployment.
        replicas: Option<CopyCount>,
        /// Patterns in the syntax of `.gitignore`, relative to the top folder of the repository. A push deploys only if
        /// it changes a path that they match; an empty array means any path.
        watch_paths: Option<WatchPaths>,
    }
}

/// The source of a new application. The meaning of `repository`, and whether `branch` is required, depend on
/// `build_pack`.
struct Source {
    build_pack: BuildPack,
    repository: Repository,
    credentials: Option<GitCredentials>,
    branch: Option<Branch>,
}

impl Take for Source {
    fn take(fields: &mut Fields, _name: &str) -> Result<Self, Refused> {
        let repository = fields.required::<String>("repository");
        let branch = fields.optional("branch");
        let build_pack = fields.required("build_pack");
        let repository = match (repository, &build_pack) {
            (Ok(raw), Ok(pack)) => Repository::parse(&raw, *pack)
                .or_else(|refused| fields.refuse("repository", refused.to_string())),
            _ => Err(Refused),
        };
        let branch = match (branch, &build_pack) {
            (
                Ok(None),
                Ok(
                    BuildPack::Dockerfile
                    | BuildPack::DockerCompose
                    | BuildPack::Static
                    | BuildPack::Nixpacks,
                ),
            ) => fields.is_required("branch"),
            (branch, _) => branch,
        };
        let (repository, credentials) = repository?;
        Ok(Self { build_pack: build_pack?, repository, credentials, branch: branch? })
    }

    fn describe(properties: &mut Properties, _name: &str, _about: &str) {
        properties.add(
            "repository",
            "A git repository, or for build pack `image` an image. Credentials in it are stored encrypted.",
            true,
            text("https://github.com/ada/shop.git"),
        );
        properties.add("branch", "Required unless the build pack is `image`.", false, Branch::schema());
        properties.add("build_pack", "The way in which the source is built.", true, BuildPack::schema());
    }
}

impl From<CreateApplication> for NewApplication {
    fn from(body: CreateApplication) -> Self {
        let CreateApplication { name, source, port, environment, rest } = body;
        let Source { build_pack, repository, credentials, branch } = source;
        let mut rest = ApplicationChange::from(rest);
        Self {
            credentials,
            build_variables: rest.build_variables.take().unwrap_or_default(),
            environment_variables: rest.environment_variables.take().unwrap_or_default(),
            blueprint: Blueprint::new(name, environment, build_pack, repository, branch, port).with(rest),
        }
    }
}

input! {
    /// Absent fields keep their values.
    pub(crate) struct UpdateApplication {
        name: Option<ApplicationName>,
        repository: Option<String>,
        branch: Option<Branch>,
        port: Option<Port>,
        environment: Option<Environment>,
        build_pack: Option<BuildPack>,
        rest: OptionalFields,
    }
}

impl From<UpdateApplication> for ApplicationChange {
    fn from(body: UpdateApplication) -> Self {
        let UpdateApplication { name, repository, branch, port, environment, build_pack, rest } = body;
        Self { name, repository, branch, port, environment, build_pack, ..rest.into() }
    }
}

impl From<OptionalFields> for ApplicationChange {
    fn from(fields: OptionalFields) -> Self {
        Self {
            base_path: fields.base_path,
            dockerfile_path: fields.dockerfile_path,
            domain: fields.domain,
            pre_run_command: fields.pre_run_command,
            post_run_command: fields.post_run_command,
            build_variables: fields.build_variables,
            environment_variables: fields.environment_variables,
            proxy_server: fields.proxy_server,
            labels: fields.labels,
            health_check_path: fields.health_check_path,
            auto_deploy: fields.auto_deploy,
            copies: fields.replicas,
            watch_paths: fields.watch_paths,
            ..Self::default()
        }
    }
}

input! {
    pub(crate) struct WhichApplication {
        pub(crate) id: ApplicationId,
    }
}
