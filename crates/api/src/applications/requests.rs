//! The request bodies of applications.

use launchway_application::applications::{ApplicationChange, NewApplication};
use launchway_domain::{
    applications::{
        ApplicationName, BasePath, Blueprint, Branch, BuildPack, DockerfilePath, Environment, GitCredentials,
        HealthCheckPath, Hostname, Labels, Port, ProxyServer, Repository, RunCommand, Variables,
    },
    ids::ApplicationId,
};
use utoipa::ToSchema;

use crate::{
    body::Input,
    error::ApiError,
    fields::{Fields, Refused},
};

#[derive(ToSchema)]
pub(crate) struct CreateApplication {
    #[schema(value_type = String, max_length = 63, example = "shop")]
    name: ApplicationName,
    /// A git repository, or for build pack `image` an image. Credentials in it are stored encrypted.
    #[schema(value_type = String, example = "https://github.com/ada/shop.git")]
    repository: Repository,
    #[schema(ignore)]
    credentials: Option<GitCredentials>,
    /// Required unless the build pack is `image`.
    #[schema(value_type = Option<String>, example = "main")]
    branch: Option<Branch>,
    /// The port that the application listens on inside its container.
    #[schema(value_type = u16, minimum = 1, maximum = 65535, example = 8080)]
    port: Port,
    #[schema(value_type = String, example = "production")]
    environment: Environment,
    /// `dockerfile`, `docker-compose`, `image`, `static` or `nixpacks`.
    #[schema(value_type = String, example = "dockerfile")]
    build_pack: BuildPack,
    #[serde(flatten)]
    rest: OptionalFields,
}

/// The optional fields of a new and of an updated application.
#[derive(ToSchema)]
struct OptionalFields {
    #[schema(value_type = Option<String>, example = "/")]
    base_path: Option<BasePath>,
    #[schema(value_type = Option<String>, example = "Dockerfile")]
    dockerfile_path: Option<DockerfilePath>,
    #[schema(value_type = Option<String>, example = "shop.example.com")]
    domain: Option<Hostname>,
    /// Runs in the new image before it gets traffic.
    #[schema(value_type = Option<String>, example = "./migrate")]
    pre_run_command: Option<RunCommand>,
    /// Runs in the new image after it got traffic.
    #[schema(value_type = Option<String>)]
    post_run_command: Option<RunCommand>,
    /// They are stored in the history of the image, so they must not contain secrets.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    build_variables: Option<Variables>,
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    environment_variables: Option<Variables>,
    /// `launchway` or `caddy`.
    #[schema(value_type = Option<String>, example = "launchway")]
    proxy_server: Option<ProxyServer>,
    #[schema(value_type = Option<Vec<String>>)]
    labels: Option<Labels>,
    #[schema(value_type = Option<String>, example = "/health")]
    health_check_path: Option<HealthCheckPath>,
    /// True if pushes deploy.
    auto_deploy: Option<bool>,
}

/// The same fields before their validation.
struct Taken {
    base_path: Result<Option<BasePath>, Refused>,
    dockerfile_path: Result<Option<DockerfilePath>, Refused>,
    domain: Result<Option<Hostname>, Refused>,
    pre_run_command: Result<Option<RunCommand>, Refused>,
    post_run_command: Result<Option<RunCommand>, Refused>,
    build_variables: Result<Option<Variables>, Refused>,
    environment_variables: Result<Option<Variables>, Refused>,
    proxy_server: Result<Option<ProxyServer>, Refused>,
    labels: Result<Option<Labels>, Refused>,
    health_check_path: Result<Option<HealthCheckPath>, Refused>,
    auto_deploy: Result<Option<bool>, Refused>,
}

impl Taken {
    fn from(fields: &mut Fields) -> Self {
        Self {
            base_path: fields.optional("base_path"),
            dockerfile_path: fields.optional("dockerfile_path"),
            domain: fields.optional("domain"),
            pre_run_command: fields.optional("pre_run_command"),
            post_run_command: fields.optional("post_run_command"),
            build_variables: fields.optional("build_variables"),
            environment_variables: fields.optional("environment_variables"),
            proxy_server: fields.optional("proxy_server"),
            labels: fields.optional("labels"),
            health_check_path: fields.optional("health_check_path"),
            auto_deploy: fields.optional("auto_deploy"),
        }
    }

    fn finish(self) -> Result<OptionalFields, Refused> {
        Ok(OptionalFields {
            base_path: self.base_path?,
            dockerfile_path: self.dockerfile_path?,
            domain: self.domain?,
            pre_run_command: self.pre_run_command?,
            post_run_command: self.post_run_command?,
            build_variables: self.build_variables?,
            environment_variables: self.environment_variables?,
            proxy_server: self.proxy_server?,
            labels: self.labels?,
            health_check_path: self.health_check_path?,
            auto_deploy: self.auto_deploy?,
        })
    }
}

impl Input for CreateApplication {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let name = fields.required("name");
        let repository = fields.required::<String>("repository");
        let branch = fields.optional("branch");
        let port = fields.required("port");
        let environment = fields.required("environment");
        let build_pack = fields.required("build_pack");
        let rest = Taken::from(&mut fields);
        // The meaning of a repository depends on the build pack.
        let repository = match (repository, &build_pack) {
            (Ok(raw), Ok(pack)) => Repository::parse(&raw, *pack)
                .or_else(|refused| fields.refuse(format!("repository {refused}"))),
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
            ) => fields.refuse("branch is required".to_owned()),
            (branch, _) => branch,
        };
        fields.finish()?;
        let (repository, credentials) = repository?;
        Ok(Self {
            name: name?,
            repository,
            credentials,
            branch: branch?,
            port: port?,
            environment: environment?,
            build_pack: build_pack?,
            rest: rest.finish()?,
        })
    }
}

impl From<CreateApplication> for NewApplication {
    fn from(body: CreateApplication) -> Self {
        let CreateApplication { name, repository, credentials, branch, port, environment, build_pack, rest } =
            body;
        Self {
            blueprint: Blueprint {
                name,
                repository,
                branch,
                base_path: rest.base_path.unwrap_or_default(),
                dockerfile_path: rest.dockerfile_path.unwrap_or_default(),
                build_pack,
                environment,
                domain: rest.domain,
                port,
                pre_run_command: rest.pre_run_command,
                post_run_command: rest.post_run_command,
                proxy_server: rest.proxy_server.unwrap_or_default(),
                labels: rest.labels.unwrap_or_default(),
                health_check_path: rest.health_check_path,
                auto_deploy: rest.auto_deploy.unwrap_or(true),
            },
            credentials,
            build_variables: rest.build_variables.unwrap_or_default(),
            environment_variables: rest.environment_variables.unwrap_or_default(),
        }
    }
}

/// Absent fields keep their values.
#[derive(ToSchema)]
pub(crate) struct UpdateApplication {
    #[schema(value_type = Option<String>, max_length = 63)]
    name: Option<ApplicationName>,
    repository: Option<String>,
    #[schema(value_type = Option<String>)]
    branch: Option<Branch>,
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 65535)]
    port: Option<Port>,
    #[schema(value_type = Option<String>)]
    environment: Option<Environment>,
    #[schema(value_type = Option<String>)]
    build_pack: Option<BuildPack>,
    #[serde(flatten)]
    rest: OptionalFields,
}

impl Input for UpdateApplication {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let name = fields.optional("name");
        let repository = fields.optional("repository");
        let branch = fields.optional("branch");
        let port = fields.optional("port");
        let environment = fields.optional("environment");
        let build_pack = fields.optional("build_pack");
        let rest = Taken::from(&mut fields);
        fields.finish()?;
        Ok(Self {
            name: name?,
            repository: repository?,
            branch: branch?,
            port: port?,
            environment: environment?,
            build_pack: build_pack?,
            rest: rest.finish()?,
        })
    }
}

impl From<UpdateApplication> for ApplicationChange {
    fn from(body: UpdateApplication) -> Self {
        let UpdateApplication { name, repository, branch, port, environment, build_pack, rest } = body;
        Self {
            name,
            repository,
            branch,
            base_path: rest.base_path,
            dockerfile_path: rest.dockerfile_path,
            build_pack,
            environment,
            domain: rest.domain,
            port,
            pre_run_command: rest.pre_run_command,
            post_run_command: rest.post_run_command,
            proxy_server: rest.proxy_server,
            labels: rest.labels,
            health_check_path: rest.health_check_path,
            auto_deploy: rest.auto_deploy,
            build_variables: rest.build_variables,
            environment_variables: rest.environment_variables,
        }
    }
}

#[derive(ToSchema)]
pub(crate) struct WhichApplication {
    #[schema(value_type = String)]
    pub(crate) id: ApplicationId,
}

impl Input for WhichApplication {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let id = fields.required_id("id");
        fields.finish()?;
        Ok(Self { id: id? })
    }
}
