//! The stored form of applications.

use launchway_domain::{
    applications::{
        Application, ApplicationSecrets, ApplicationStatus, Blueprint, BuildPack, CopyCount, GitUrl,
        Hostname, ImageRef, Label, Port, Repository,
    },
    secret::Sealed,
};
use serde::{Deserialize, Serialize};

use super::{Invalid, Value, id, micros, optional, text, timestamp};

#[derive(Serialize, Deserialize)]
pub(super) struct ApplicationValue {
    id: String,
    organization_id: String,
    user_id: String,
    name: String,
    repository: String,
    branch: Option<String>,
    base_path: String,
    dockerfile_path: String,
    build_pack: String,
    environment: String,
    domain: Option<String>,
    port: u16,
    pre_run_command: Option<String>,
    post_run_command: Option<String>,
    proxy_server: String,
    labels: Vec<String>,
    health_check_path: Option<String>,
    auto_deploy: bool,
    /// Absent in records of earlier versions.
    #[serde(default = "one")]
    copies: u16,
    /// Absent in records of earlier versions.
    #[serde(default)]
    watch_paths: Vec<String>,
    automatic_host: String,
    further_domains: Vec<String>,
    build_variables: String,
    environment_variables: String,
    credentials: Option<String>,
    status_id: String,
    state: String,
    state_created_at: i64,
    state_updated_at: i64,
    live: Option<String>,
    is_stopped: bool,
    created_at: i64,
    updated_at: i64,
}

fn one() -> u16 {
    1
}

impl From<&Application> for ApplicationValue {
    fn from(one: &Application) -> Self {
        let blueprint = &one.blueprint;
        Self {
            id: one.id.to_string(),
            organization_id: one.organization_id.to_string(),
            user_id: one.user_id.to_string(),
            name: blueprint.name.to_string(),
            repository: blueprint.repository.as_str().to_owned(),
            branch: blueprint.branch.as_ref().map(ToString::to_string),
            base_path: blueprint.base_path.to_string(),
            dockerfile_path: blueprint.dockerfile_path.to_string(),
            build_pack: blueprint.build_pack.as_str().to_owned(),
            environment: blueprint.environment.to_string(),
            domain: blueprint.domain.as_ref().map(ToString::to_string),
            port: blueprint.port.get(),
            pre_run_command: blueprint.pre_run_command.as_ref().map(ToString::to_string),
            post_run_command: blueprint.post_run_command.as_ref().map(ToString::to_string),
            proxy_server: blueprint.proxy_server.as_str().to_owned(),
            labels: blueprint.labels.as_slice().iter().map(Label::to_string).collect(),
            health_check_path: blueprint.health_check_path.as_ref().map(ToString::to_string),
            auto_deploy: blueprint.auto_deploy,
            copies: blueprint.copies.get(),
            watch_paths: blueprint.watch_paths.as_slice().iter().map(ToString::to_string).collect(),
            automatic_host: one.automatic_host.to_string(),
            further_domains: one.further_domains.iter().map(Hostname::to_string).collect(),
            build_variables: one.secrets.build_variables.0.clone(),
            environment_variables: one.secrets.environment_variables.0.clone(),
            credentials: one.secrets.credentials.as_ref().map(|sealed| sealed.0.clone()),
            status_id: one.status.id.to_string(),
            state: one.status.state.as_str().to_owned(),
            state_created_at: micros(one.status.created_at),
            state_updated_at: micros(one.status.updated_at),
            live: one.live.as_ref().map(ToString::to_string),
            is_stopped: one.is_stopped,
            created_at: micros(one.created_at),
            updated_at: micros(one.updated_at),
        }
    }
}

impl Value<Application> for ApplicationValue {
    fn into_record(self) -> Result<Application, Invalid> {
        let build_pack: BuildPack = text(self.build_pack)?;
        let repository = match build_pack {
            BuildPack::Image => Repository::Image(text::<ImageRef>(self.repository)?),
            _ => Repository::Git(text::<GitUrl>(self.repository)?),
        };
        let blueprint = Blueprint {
            name: text(self.name)?,
            repository,
            branch: optional(self.branch)?,
            base_path: text(self.base_path)?,
            dockerfile_path: text(self.dockerfile_path)?,
            build_pack,
            environment: text(self.environment)?,
            domain: optional(self.domain)?,
            port: Port::try_from(self.port)?,
            pre_run_command: optional(self.pre_run_command)?,
            post_run_command: optional(self.post_run_command)?,
            proxy_server: text(self.proxy_server)?,
            labels: self.labels.try_into()?,
            health_check_path: optional(self.health_check_path)?,
            auto_deploy: self.auto_deploy,
            copies: CopyCount::try_from(i64::from(self.copies))?,
            watch_paths: self.watch_paths.try_into()?,
        };
        Ok(Application {
            id: id(&self.id)?,
            organization_id: id(&self.organization_id)?,
            user_id: id(&self.user_id)?,
            blueprint,
            automatic_host: text(self.automatic_host)?,
            further_domains: self.further_domains.into_iter().map(text).collect::<Result<_, _>>()?,
            secrets: ApplicationSecrets {
                build_variables: Sealed(self.build_variables),
                environment_variables: Sealed(self.environment_variables),
                credentials: self.credentials.map(Sealed),
            },
            status: ApplicationStatus {
                id: id(&self.status_id)?,
                state: text(self.state)?,
                created_at: timestamp(self.state_created_at)?,
                updated_at: timestamp(self.state_updated_at)?,
            },
            live: self.live.as_deref().map(id).transpose()?,
            is_stopped: self.is_stopped,
            created_at: timestamp(self.created_at)?,
            updated_at: timestamp(self.updated_at)?,
        })
    }
}
