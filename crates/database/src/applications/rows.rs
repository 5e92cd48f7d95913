//! The rows of applications.

use diesel::{
    prelude::*,
    sql_types::{BigInt, Nullable, Text},
};
use launchway_domain::{
    applications::{
        Application, ApplicationName, ApplicationSecrets, ApplicationState, ApplicationStatus, AutomaticHost,
        BasePath, Blueprint, Branch, BuildPack, CopyCount, DockerfilePath, Environment, GitUrl,
        HealthCheckPath, Hostname, ImageRef, Label, Labels, Port, ProxyServer, Repository, RunCommand,
        WatchPaths,
    },
    clock::Timestamp,
    ids::{ApplicationId, ApplicationStatusId, DeploymentId, OrganizationId, UserId},
    secret::Sealed,
};

use crate::{
    columns::{DbId, DbTs},
    error::QueryError,
    schema::applications,
    statement::{Literal, literal},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = applications)]
pub(crate) struct ApplicationRow {
    #[diesel(deserialize_as = DbId)]
    id: ApplicationId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = DbId)]
    user_id: UserId,
    #[diesel(deserialize_as = String)]
    name: ApplicationName,
    repository: String,
    branch: Option<String>,
    #[diesel(deserialize_as = String)]
    base_path: BasePath,
    #[diesel(deserialize_as = String)]
    dockerfile_path: DockerfilePath,
    #[diesel(deserialize_as = String)]
    build_pack: BuildPack,
    #[diesel(deserialize_as = String)]
    environment: Environment,
    domain: Option<String>,
    #[diesel(deserialize_as = String)]
    automatic_host: AutomaticHost,
    further_domains: String,
    #[diesel(deserialize_as = i64)]
    port: Port,
    pre_run_command: Option<String>,
    post_run_command: Option<String>,
    #[diesel(deserialize_as = String)]
    proxy_server: ProxyServer,
    labels: String,
    health_check_path: Option<String>,
    auto_deploy: bool,
    build_variables: String,
    environment_variables: String,
    credentials: Option<String>,
    #[diesel(deserialize_as = DbId)]
    status_id: ApplicationStatusId,
    #[diesel(deserialize_as = String)]
    status: ApplicationState,
    #[diesel(deserialize_as = DbTs)]
    status_updated_at: Timestamp,
    live_deployment_id: Option<DbId>,
    is_stopped: bool,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
    #[diesel(select_expression = replicas(), select_expression_type = Literal<Nullable<BigInt>>)]
    replicas: Option<i64>,
    #[diesel(select_expression = watch_paths(), select_expression_type = Literal<Nullable<Text>>)]
    watch_paths: Option<String>,
}

/// Selects the number of copies of an application; null for one. Written as a literal, so that every query of
/// applications can select it.
fn replicas() -> Literal<Nullable<BigInt>> {
    literal(
        "(SELECT replicas FROM application_replicas WHERE application_replicas.application_id = applications.id)",
    )
}

/// Selects the watched paths of an application, in the same way; null for none.
fn watch_paths() -> Literal<Nullable<Text>> {
    literal(
        "(SELECT patterns FROM application_watch_paths WHERE application_watch_paths.application_id = applications.id)",
    )
}

impl TryFrom<ApplicationRow> for Application {
    type Error = QueryError;

    fn try_from(row: ApplicationRow) -> Result<Self, QueryError> {
        let labels: Vec<String> = serde_json::from_str(&row.labels).map_err(QueryError::unreadable)?;
        let blueprint = Blueprint {
            name: row.name,
            repository: repository(row.build_pack, row.repository)?,
            branch: read(row.branch)?,
            base_path: row.base_path,
            dockerfile_path: row.dockerfile_path,
            build_pack: row.build_pack,
            environment: row.environment,
            domain: read(row.domain)?,
            port: row.port,
            pre_run_command: read(row.pre_run_command)?,
            post_run_command: read(row.post_run_command)?,
            proxy_server: row.proxy_server,
            labels: Labels::try_from(labels).map_err(QueryError::unreadable)?,
            health_check_path: read(row.health_check_path)?,
            auto_deploy: row.auto_deploy,
            copies: match row.replicas {
                None => CopyCount::ONE,
                Some(count) => CopyCount::try_from(count).map_err(QueryError::unreadable)?,
            },
            watch_paths: read_watch_paths(row.watch_paths.as_deref())?,
        };
        Ok(Self {
            id: row.id,
            organization_id: row.organization_id,
            user_id: row.user_id,
            blueprint,
            automatic_host: row.automatic_host,
            further_domains: read_hostnames(&row.further_domains)?,
            secrets: ApplicationSecrets {
                build_variables: Sealed(row.build_variables),
                environment_variables: Sealed(row.environment_variables),
                credentials: row.credentials.map(Sealed),
            },
            status: ApplicationStatus {
                id: row.status_id,
                state: row.status,
                created_at: row.created_at,
                updated_at: row.status_updated_at,
            },
            live: row.live_deployment_id.map(DeploymentId::from),
            is_stopped: row.is_stopped,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

fn repository(build_pack: BuildPack, stored: String) -> Result<Repository, QueryError> {
    let repository = match build_pack {
        BuildPack::Image => ImageRef::try_from(stored).map(Repository::Image),
        BuildPack::Dockerfile | BuildPack::DockerCompose | BuildPack::Static | BuildPack::Nixpacks => {
            GitUrl::try_from(stored).map(Repository::Git)
        }
    };
    repository.map_err(QueryError::unreadable)
}

/// Reads an optional value.
pub(crate) fn read<T>(stored: Option<String>) -> Result<Option<T>, QueryError>
where
    T: TryFrom<String, Error: std::error::Error + Send + Sync + 'static>,
{
    stored.map(T::try_from).transpose().map_err(QueryError::unreadable)
}

/// Reads host names that are stored in one column.
pub(super) fn read_hostnames(stored: &str) -> Result<Vec<Hostname>, QueryError> {
    let names: Vec<String> = serde_json::from_str(stored).map_err(QueryError::unreadable)?;
    names.into_iter().map(|name| Hostname::try_from(name).map_err(QueryError::unreadable)).collect()
}

fn read_watch_paths(stored: Option<&str>) -> Result<WatchPaths, QueryError> {
    let Some(stored) = stored else { return Ok(WatchPaths::default()) };
    let patterns: Vec<String> = serde_json::from_str(stored).map_err(QueryError::unreadable)?;
    patterns.try_into().map_err(QueryError::unreadable)
}

/// The columns that users choose, except the domain: all of them change together.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = applications, treat_none_as_null = true, treat_none_as_default_value = false)]
pub(super) struct ChosenColumns<'a> {
    name: &'a str,
    repository: &'a str,
    branch: Option<&'a str>,
    base_path: &'a str,
    dockerfile_path: &'a str,
    build_pack: &'static str,
    environment: &'a str,
    port: i64,
    pre_run_command: Option<&'a str>,
    post_run_command: Option<&'a str>,
    proxy_server: &'static str,
    labels: String,
    health_check_path: Option<&'a str>,
    auto_deploy: bool,
    build_variables: &'a str,
    environment_variables: &'a str,
    credentials: Option<&'a str>,
}

impl<'a> ChosenColumns<'a> {
    pub(super) fn of(blueprint: &'a Blueprint, secrets: &'a ApplicationSecrets) -> Self {
        let labels = blueprint.labels.as_slice().iter().map(Label::as_str);
        Self {
            name: blueprint.name.as_str(),
            repository: blueprint.repository.as_str(),
            branch: blueprint.branch.as_ref().map(Branch::as_str),
            base_path: blueprint.base_path.as_str(),
            dockerfile_path: blueprint.dockerfile_path.as_str(),
            build_pack: blueprint.build_pack.as_str(),
            environment: blueprint.environment.as_str(),
            port: blueprint.port.get().into(),
            pre_run_command: blueprint.pre_run_command.as_ref().map(RunCommand::as_str),
            post_run_command: blueprint.post_run_command.as_ref().map(RunCommand::as_str),
            proxy_server: blueprint.proxy_server.as_str(),
            labels: serde_json::Value::from_iter(labels).to_string(),
            health_check_path: blueprint.health_check_path.as_ref().map(HealthCheckPath::as_str),
            auto_deploy: blueprint.auto_deploy,
            build_variables: &secrets.build_variables.0,
            environment_variables: &secrets.environment_variables.0,
            credentials: secrets.credentials.as_ref().map(|sealed| sealed.0.as_str()),
        }
    }
}
