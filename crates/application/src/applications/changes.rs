//! Use cases that update and delete an application.

use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationName, BasePath, Blueprint, Branch, BuildPack, CopyCount,
        DockerfilePath, Environment, HealthCheckPath, Hostname, Labels, Port, ProxyServer, Repository,
        RunCommand, Variables, WatchPaths, Write,
    },
    audit::{Action as Did, Event, Resource as Audited},
    auth::Actor,
    clock::Timestamp,
    deployments::{DeploymentKind, Write as DeploymentWrite},
    ids::ApplicationId,
    jobs::{JobKind, Write as JobWrite},
    organizations::Scope,
    store::{self, StoreError},
};

use super::{APPLICATION, Applications, DELETE, OpenSecrets, ShownVariables, UPDATE, conflicts, titled};
use crate::{
    Error, ServiceContext,
    deployments::{Request, job_about},
};

/// The number of attempts at an update while the same application is changed concurrently.
const TRIES: u32 = 8;

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
    /// Returns the blueprint and the secrets after the change, and the names of the fields that are given.
    fn apply(
        self,
        old: Blueprint,
        old_secrets: &OpenSecrets,
    ) -> Result<(Blueprint, OpenSecrets, Vec<&'static str>), Error> {
        let mut given = Vec::new();
        let mut note = |is_given: bool, name: &'static str| {
            if is_given {
                given.push(name);
            }
        };
        note(self.name.is_some(), "name");
        note(self.repository.is_some(), "repository");
        note(self.branch.is_some(), "branch");
        note(self.base_path.is_some(), "base_path");
        note(self.dockerfile_path.is_some(), "dockerfile_path");
        note(self.build_pack.is_some(), "build_pack");
        note(self.environment.is_some(), "environment");
        note(self.domain.is_some(), "domain");
        note(self.port.is_some(), "port");
        note(self.pre_run_command.is_some(), "pre_run_command");
        note(self.post_run_command.is_some(), "post_run_command");
        note(self.proxy_server.is_some(), "proxy_server");
        note(self.labels.is_some(), "labels");
        note(self.health_check_path.is_some(), "health_check_path");
        note(self.auto_deploy.is_some(), "auto_deploy");
        note(self.copies.is_some(), "replicas");
        note(self.watch_paths.is_some(), "watch_paths");
        note(self.build_variables.is_some(), "build_variables");
        note(self.environment_variables.is_some(), "environment_variables");

        let build_pack = self.build_pack.unwrap_or(old.build_pack);
        let mut credentials = old_secrets.credentials.clone();
        let repository = match self.repository {
            Some(raw) => {
                let (repository, given) = Repository::parse(&raw, build_pack)
                    .map_err(|refused| Error::Invalid(format!("repository {refused}")))?;
                credentials = given;
                repository
            }
            None => old.repository,
        };
        let blueprint = Blueprint {
            name: self.name.unwrap_or(old.name),
            repository,
            branch: self.branch.or(old.branch),
            base_path: self.base_path.unwrap_or(old.base_path),
            dockerfile_path: self.dockerfile_path.unwrap_or(old.dockerfile_path),
            build_pack,
            environment: self.environment.unwrap_or(old.environment),
            domain: self.domain.or(old.domain),
            port: self.port.unwrap_or(old.port),
            pre_run_command: self.pre_run_command.or(old.pre_run_command),
            post_run_command: self.post_run_command.or(old.post_run_command),
            proxy_server: self.proxy_server.unwrap_or(old.proxy_server),
            labels: self.labels.unwrap_or(old.labels),
            health_check_path: self.health_check_path.or(old.health_check_path),
            auto_deploy: self.auto_deploy.unwrap_or(old.auto_deploy),
            copies: self.copies.unwrap_or(old.copies),
            watch_paths: self.watch_paths.unwrap_or(old.watch_paths),
        };
        let OpenSecrets { build_variables, environment_variables, .. } = old_secrets.clone();
        let secrets = OpenSecrets {
            build_variables: self.build_variables.unwrap_or(build_variables),
            environment_variables: self.environment_variables.unwrap_or(environment_variables),
            credentials,
            former: Vec::new(),
        };
        Ok((blueprint, secrets.instead_of(old_secrets), given))
    }
}

/// The result of one attempt at an update.
#[derive(Debug, PartialEq, Eq)]
enum Made {
    Yes,
    /// Another request changed or deleted the application since it was read.
    ChangedMeanwhile,
}

impl Applications {
    /// Updates an application of the actor's organization, and requests a deployment of it unless `redeploy` is
    /// false, or is not given and only the number of copies changes: then they are started or stopped. Concurrent changes are kept: the update is then applied on top of them.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Invalid`] when nothing would change and
    /// `redeploy` is not true, [`Error::Invalid`] and [`Error::Conflict`] as for a new one, [`Error::QuotaExceeded`] when it is to be deployed and the images of the organization
    /// take as many bytes as they may, [`Error::Conflict`] when it was last changed at another time than
    /// `unchanged_since`, [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn update(
        &self,
        actor: &Actor,
        id: ApplicationId,
        change: ApplicationChange,
        redeploy: Option<bool>,
        unchanged_since: Option<Timestamp>,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        let scope = actor.require(UPDATE)?;
        for _ in 0..TRIES {
            let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
            if unchanged_since.is_some_and(|seen| seen != application.updated_at) {
                break;
            }
            if self.change(actor, scope, application, change.clone(), redeploy).await? == Made::Yes {
                return self.written(actor, id).await;
            }
        }
        Err(Error::Conflict("the application was changed in the meantime: read it again".to_owned()))
    }

    async fn change(
        &self,
        actor: &Actor,
        scope: Scope,
        application: Application,
        change: ApplicationChange,
        redeploy: Option<bool>,
    ) -> Result<Made, Error> {
        let id = application.id;
        let before = self.vault.open(&application)?;
        let (blueprint, secrets, given) = change.apply(application.blueprint.clone(), &before)?;
        self.check(id, &blueprint)?;
        let is_same = blueprint == application.blueprint && secrets == before;
        if is_same && redeploy != Some(true) {
            return Err(Error::Invalid("there is nothing to change".to_owned()));
        }
        let former = Blueprint { copies: blueprint.copies, ..application.blueprint.clone() };
        let is_scaled = blueprint.copies != application.blueprint.copies;
        // Another number of copies needs no other version.
        let redeploy = redeploy.unwrap_or(!is_scaled || former != blueprint || secrets != before);
        let what = format!("changed {}", titled(&blueprint));
        let event =
            given.iter().fold(Event::new(Did::Update, Audited::Application, id, what), |event, name| {
                match shown(&blueprint, name) {
                    Some(value) => event.with(name, value),
                    None => event.with_changed_secret(name),
                }
            });
        let conflict = conflicts(&blueprint);
        let update = Write::Update {
            scope,
            id,
            seen: Some(application.updated_at),
            blueprint: Box::new(blueprint),
            secrets: self.vault.seal(id, &secrets)?,
            at: self.context.clock.now(),
        };
        let mut writes = vec![update.into()];
        if redeploy {
            let request = Request::of(&application, DeploymentKind::Fresh, &self.context);
            writes.extend(request.image_room(self.policy.quotas, &application, &self.context));
            writes.extend(request.writes(actor, &self.context));
        } else if is_scaled && application.live.is_some() && !application.is_stopped {
            writes.push(JobWrite::Enqueue(job_about(&application, JobKind::Reconcile, &self.context)).into());
        }
        writes.push(self.context.record(actor.author(), event));
        match self.context.store.commit(writes).await {
            Err(StoreError::Stale) => return Ok(Made::ChangedMeanwhile),
            committed => committed.map_err(conflict)?,
        }
        self.context.wake.notify();
        if given.contains(&"domain") {
            self.update_routes(scope, id).await;
        }
        Ok(Made::Yes)
    }

    /// Deletes an application of the actor's organization, and its previews. Their resources on the engine are removed
    /// in the background.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `deploy:delete`.
    pub async fn delete(&self, actor: &Actor, id: ApplicationId) -> Result<(), Error> {
        let scope = actor.require(DELETE)?;
        for _ in 0..TRIES {
            let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
            #[cfg(feature = "webhooks")]
            let previews = self.previews_of(scope, id).await?;
            #[cfg(not(feature = "webhooks"))]
            let previews: Vec<Application> = Vec::new();
            let mut writes = deletion(&application, &self.context);
            let mut entries = vec![self.context.record(actor.author(), deleted(&application))];
            for preview in &previews {
                writes.extend(deletion(preview, &self.context));
                let event = deleted(preview).with("preview_of", id);
                entries.push(self.context.record(actor.author(), event));
            }
            writes.extend(entries);
            match self.context.store.commit(writes).await {
                // One of the previews may have been deleted in the meantime.
                Err(StoreError::Stale) if !previews.is_empty() => {}
                Err(StoreError::Stale) => return Err(APPLICATION),
                committed => {
                    committed?;
                    self.context.wake.notify();
                    return Ok(());
                }
            }
        }
        Err(Error::Conflict("the previews of the application change too often: try again".to_owned()))
    }
}

/// Returns the writes that delete an application, without the entry of the audit log.
pub(crate) fn deletion(application: &Application, context: &ServiceContext) -> Vec<store::Write> {
    let (id, at) = (application.id, context.clock.now());
    let scope = Scope::of_record(application.organization_id);
    vec![
        // First, so that running jobs get the request to cancel before the application is deleted.
        JobWrite::RequestCancelAll { scope, subject: id.into(), at }.into(),
        DeploymentWrite::FollowJobs { application: Some(id), at }.into(),
        Write::Delete { scope, id, at }.into(),
        JobWrite::Enqueue(job_about(application, JobKind::Remove, context)).into(),
    ]
}

/// Returns the event of the deletion of an application.
pub(crate) fn deleted(application: &Application) -> Event {
    let what = format!("deleted {}", titled(&application.blueprint));
    Event::new(Did::Delete, Audited::Application, application.id, what)
}

/// Returns a field of a blueprint as the audit log may show it: no field that may contain a secret, which
/// commands may as well as variables.
fn shown(blueprint: &Blueprint, field: &str) -> Option<String> {
    Some(match field {
        "name" => blueprint.name.to_string(),
        "repository" => blueprint.repository.as_str().to_owned(),
        "branch" => blueprint.branch.as_ref()?.to_string(),
        "base_path" => blueprint.base_path.to_string(),
        "dockerfile_path" => blueprint.dockerfile_path.to_string(),
        "build_pack" => blueprint.build_pack.as_str().to_owned(),
        "environment" => blueprint.environment.to_string(),
        "domain" => blueprint.domain.as_ref()?.to_string(),
        "port" => blueprint.port.get().to_string(),
        "proxy_server" => blueprint.proxy_server.as_str().to_owned(),
        "labels" => {
            blueprint.labels.as_slice().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        "health_check_path" => blueprint.health_check_path.as_ref()?.to_string(),
        "auto_deploy" => blueprint.auto_deploy.to_string(),
        "replicas" => blueprint.copies.get().to_string(),
        "watch_paths" => {
            blueprint.watch_paths.as_slice().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        _ => return None,
    })
}
