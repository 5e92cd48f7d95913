//! Extensions: showing, forking and removing them, asking for runs, and carrying those out.

mod catalog;
mod describing;
mod log;
mod running;

use std::{collections::BTreeMap, sync::Arc};

use launchway_domain::{
    applications::Hostname,
    audit::{Action as Did, Event, Resource as Audited},
    auth::{Action as May, Actor, Forbidden, Permission, Resource},
    extensions::{
        Action, Definition, Execution, ExecutionDetail, ExecutionLine, ExecutionRepository, ExecutionState,
        ExecutionStep, Extension, ExtensionFilter, ExtensionKey, ExtensionRepository, Phase, ProxyAction,
        StepSpec, Validation, Values, WORKSPACE, Write, check_values,
    },
    idempotency::IdempotencyKey,
    ids::{ExecutionId, ExtensionId, OrganizationId, SubjectId},
    jobs::{JobKind, NewJob, Write as JobWrite},
    logs::MASK,
    organizations::Scope,
    page::{Page, PageRequest},
    secret::SecretBox,
    store::{StoreError, Unique},
};

use self::describing::described;
pub use self::{
    catalog::{Catalog, CatalogFile},
    running::{RunPorts, Runs},
};
use crate::{Error, Tools};

const CREATE: Permission = Permission::new(Resource::Extension, May::Create);
const READ: Permission = Permission::new(Resource::Extension, May::Read);
const UPDATE: Permission = Permission::new(Resource::Extension, May::Update);
const DELETE: Permission = Permission::new(Resource::Extension, May::Delete);

const EXTENSION: Error = Error::NotFound("the extension");
const EXECUTION: Error = Error::NotFound("the execution");

/// How many lines of a run are given at once.
const LINES: i64 = 1000;

/// What extensions are shown with.
#[expect(missing_docs, reason = "the types say it")]
pub struct ExtensionPorts {
    pub extensions: Arc<dyn ExtensionRepository>,
    pub executions: Arc<dyn ExecutionRepository>,
    pub secrets: Arc<dyn SecretBox>,
    /// The name that this installation is reached by, which leads nowhere else.
    pub public_host: Option<String>,
}

/// Shows extensions, forks them, and asks for runs.
pub struct Extensions {
    ports: ExtensionPorts,
    tools: Tools,
}

impl Extensions {
    /// Works with `ports`.
    pub fn new(ports: ExtensionPorts, tools: Tools) -> Self {
        Self { ports, tools }
    }

    /// A page of what the actor's organization can run, by name.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `extension:read`.
    pub async fn list(
        &self,
        actor: &Actor,
        filter: &ExtensionFilter,
        page: PageRequest,
    ) -> Result<Page<Extension>, Error> {
        let scope = actor.require(READ)?;
        Ok(self.ports.extensions.page(scope, filter, page).await?)
    }

    /// One extension of the catalog or of the actor's organization.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that key, [`Error::Forbidden`] without the
    /// permission `extension:read`.
    pub async fn get(&self, actor: &Actor, key: &ExtensionKey) -> Result<Extension, Error> {
        self.find(actor.require(READ)?, key).await
    }

    /// The same by its id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the
    /// permission `extension:read`.
    pub async fn by_id(&self, actor: &Actor, id: ExtensionId) -> Result<Extension, Error> {
        self.ports.extensions.by_id(actor.require(READ)?, id).await?.ok_or(EXTENSION)
    }

    /// That the actor may look at extensions.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `extension:read`.
    pub fn may_read(&self, actor: &Actor) -> Result<(), Error> {
        actor.require(READ)?;
        Ok(())
    }

    /// Makes a fork for the actor's organization: of `yaml`, or an exact copy without.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Conflict`] when it is a fork
    /// itself, [`Error::Invalid`] when `yaml` is no definition, [`Error::Repeated`] when
    /// `idempotency` was used, [`Error::Forbidden`] without the permission `extension:create`, or
    /// when `yaml` acts on the machine and the actor does not administer it.
    pub async fn fork(
        &self,
        actor: &Actor,
        key: &ExtensionKey,
        yaml: Option<String>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Extension, Error> {
        let scope = actor.require(CREATE)?;
        let source = self.find(scope, key).await?;
        if source.parent.is_some() {
            return Err(Error::Conflict(format!("`{key}` is a fork itself: fork what it came from")));
        }
        let fork = self.forked(actor, scope, &source, yaml)?;
        let (id, forked) = (fork.id, fork.key.clone());
        let event =
            Event::new(Did::Create, Audited::Extension, &forked, format!("forked the extension `{key}`"))
                .with("parent_extension_id", key)
                .with("content_hash", &fork.content_hash);
        let mut writes: Vec<_> = self.tools.claim(idempotency, id.into()).into_iter().collect();
        writes.push(Write::Fork(Box::new(fork)).into());
        writes.push(self.tools.record(actor.author(), event));
        self.tools.store.commit(writes).await.map_err(|error| match error {
            StoreError::Taken(Unique::IdempotencyKey) => Error::Repeated,
            error => error.into(),
        })?;
        self.find(scope, &forked).await
    }

    /// The fork as it will be.
    fn forked(
        &self,
        actor: &Actor,
        scope: Scope,
        source: &Extension,
        yaml: Option<String>,
    ) -> Result<Extension, Error> {
        let now = self.tools.clock.now();
        let mut fork = match yaml {
            None => Extension { name: source.name.forked(), ..source.clone() },
            Some(yaml) => {
                let definition = Definition::parse(&yaml)
                    .map_err(|invalid| Error::Invalid(format!("yaml_content is no definition: {invalid}")))?;
                may_act_on_host(actor, &definition)?;
                let author = actor.user().username.as_str().to_owned();
                Extension { author, ..described(&definition, yaml, &self.tools) }
            }
        };
        fork.id = self.tools.ids.next().into();
        for variable in &mut fork.variables {
            variable.id = self.tools.ids.next().into();
            variable.created_at = now;
        }
        Ok(Extension {
            organization_id: Some(scope.id()),
            key: source.key.fork(self.tools.entropy.bits_256()),
            parent: Some(source.key.clone()),
            is_verified: false,
            created_at: now,
            updated_at: now,
            ..fork
        })
    }

    /// Deletes a fork of the actor's organization, and has everything removed that it made; its
    /// volumes only if that is wanted.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such fork, [`Error::Conflict`] for an entry of the
    /// catalog, [`Error::Forbidden`] without the permission `extension:delete`.
    pub async fn delete(
        &self,
        actor: &Actor,
        key: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<Extension, Error> {
        let scope = actor.require(DELETE)?;
        let extension = self.find(scope, key).await?;
        if extension.organization_id.is_none() {
            return Err(Error::Conflict(format!("`{key}` is in the catalog: only forks can be deleted")));
        }
        let now = self.tools.clock.now();
        let event =
            Event::new(Did::Delete, Audited::Extension, key, format!("deleted the extension `{key}`"))
                .with("volumes", with_volumes);
        let job = self.job(scope, extension.id, JobKind::UninstallExtension);
        let writes = vec![
            JobWrite::RequestCancelAll { scope, subject: job.subject, at: now }.into(),
            Write::Delete { scope, key: key.clone(), at: now }.into(),
            JobWrite::Enqueue(NewJob { payload: uninstallation(key, with_volumes, true), ..job }).into(),
            Write::FollowJobs { at: now }.into(),
            self.tools.record(actor.author(), event),
        ];
        self.tools.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => EXTENSION,
            error => error.into(),
        })?;
        self.tools.bell.ring();
        Ok(Extension { deleted_at: Some(now), ..extension })
    }

    /// Has everything removed that an extension made for the actor's organization; its volumes only
    /// if that is wanted. A run that is under way is cancelled.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Forbidden`] without the
    /// permission `extension:delete`.
    pub async fn uninstall(
        &self,
        actor: &Actor,
        key: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<Extension, Error> {
        let scope = actor.require(DELETE)?;
        let extension = self.find(scope, key).await?;
        let now = self.tools.clock.now();
        let what = format!("asked to remove what the extension `{key}` made");
        let event = Event::new(Did::Delete, Audited::Extension, key, what).with("volumes", with_volumes);
        let job = self.job(scope, extension.id, JobKind::UninstallExtension);
        let writes = vec![
            JobWrite::RequestCancelAll { scope, subject: job.subject, at: now }.into(),
            JobWrite::Enqueue(NewJob { payload: uninstallation(key, with_volumes, false), ..job }).into(),
            Write::FollowJobs { at: now }.into(),
            self.tools.record(actor.author(), event),
        ];
        self.tools.store.commit(writes).await?;
        self.tools.bell.ring();
        Ok(extension)
    }

    /// Asks for a run.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Conflict`] when its definition
    /// cannot be used, [`Error::Invalid`] when the values are not what it asks for,
    /// [`Error::Repeated`] when `idempotency` was used, [`Error::Forbidden`] without the permission
    /// `extension:create`, or when it acts on the machine and the actor does not administer it.
    pub async fn run(
        &self,
        actor: &Actor,
        key: &ExtensionKey,
        given: &BTreeMap<String, String>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<ExecutionDetail, Error> {
        let scope = actor.require(CREATE)?;
        let extension = self.find(scope, key).await?;
        let definition = match extension.validation {
            Validation::Invalid => Err(()),
            _ => Definition::parse(&extension.yaml).map_err(drop),
        };
        let definition = definition.map_err(|()| {
            Error::Conflict(format!("the definition of `{key}` cannot be used: see its `validation_errors`"))
        })?;
        may_act_on_host(actor, &definition)?;
        let values = check_values(&definition.variables, given)
            .map_err(|problems| Error::Invalid(problems.join("; ")))?;
        self.check_steps(&definition, &values)?;

        let job = self.job(scope, extension.id, JobKind::RunExtension);
        let execution = self.execution(actor, scope, &extension, &definition, &values, &job)?;
        let (id, steps) = (execution.id, self.steps(execution.id, &definition));
        let what = format!("ran the extension `{key}`");
        let event = Event::new(Did::Create, Audited::Execution, id, what)
            .with("extension_id", key)
            .with("content_hash", &extension.content_hash);
        let installs = definition.reaches_engine();
        let mut writes: Vec<_> = self.tools.claim(idempotency, id.into()).into_iter().collect();
        writes.push(JobWrite::Enqueue(NewJob { payload: id.to_string(), ..job }).into());
        writes.push(Write::Request { execution: Box::new(execution), steps, installs }.into());
        writes.push(self.tools.record(actor.author(), event));
        self.tools.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => EXTENSION,
            StoreError::Taken(Unique::IdempotencyKey) => Error::Repeated,
            error => error.into(),
        })?;
        self.tools.bell.ring();
        self.ports.executions.detail(scope, id).await?.ok_or(EXECUTION)
    }

    /// A page of the runs of an extension by the actor's organization, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Forbidden`] without the
    /// permission `extension:read`.
    pub async fn executions(
        &self,
        actor: &Actor,
        key: &ExtensionKey,
        page: PageRequest,
    ) -> Result<Page<(Execution, String)>, Error> {
        let scope = actor.require(READ)?;
        let extension = self.find(scope, key).await?;
        Ok(self.ports.executions.page(scope, extension.id, page).await?)
    }

    /// One run of the actor's organization, with everything around it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the
    /// permission `extension:read`.
    pub async fn execution_detail(&self, actor: &Actor, id: ExecutionId) -> Result<ExecutionDetail, Error> {
        let scope = actor.require(READ)?;
        self.ports.executions.detail(scope, id).await?.ok_or(EXECUTION)
    }

    /// The lines of a run behind number `after`, oldest first, and the number to go on from.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such run, [`Error::Forbidden`]
    /// without the permission `extension:read`.
    pub async fn lines(
        &self,
        actor: &Actor,
        id: ExecutionId,
        after: i64,
    ) -> Result<(Vec<ExecutionLine>, i64), Error> {
        let scope = actor.require(READ)?;
        let lines = self.ports.executions.lines(scope, id, after, LINES).await?.ok_or(EXECUTION)?;
        let next = lines.last().map_or(after, |line| line.seq);
        Ok((lines, next))
    }

    /// Ends a run that waits, or lets its worker end it and take back what it did.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such run, [`Error::Conflict`] when
    /// it is over, [`Error::Forbidden`] without the permission `extension:update`.
    pub async fn cancel(&self, actor: &Actor, id: ExecutionId) -> Result<ExecutionDetail, Error> {
        let scope = actor.require(UPDATE)?;
        let (execution, _) = self.ports.executions.get(scope, id).await?.ok_or(EXECUTION)?;
        let over =
            |state: ExecutionState| Error::Conflict(format!("the execution is {} already", state.as_str()));
        if execution.state.is_over() {
            return Err(over(execution.state));
        }
        let at = self.tools.clock.now();
        let event = Event::new(Did::Update, Audited::Execution, id, format!("cancelled the execution {id}"));
        let writes = vec![
            JobWrite::RequestCancel { scope, id: execution.job_id, at }.into(),
            Write::FollowJobs { at }.into(),
            self.tools.record(actor.author(), event),
        ];
        match self.tools.store.commit(writes).await {
            // It came to its end meanwhile.
            Err(StoreError::Stale) => {
                let state = self.ports.executions.get(scope, id).await?.map(|(execution, _)| execution.state);
                return Err(state.map_or(EXECUTION, over));
            }
            outcome => outcome?,
        }
        self.tools.bell.ring();
        self.ports.executions.detail(scope, id).await?.ok_or(EXECUTION)
    }

    async fn find(&self, scope: Scope, key: &ExtensionKey) -> Result<Extension, Error> {
        self.ports.extensions.by_key(scope, key).await?.ok_or(EXTENSION)
    }

    /// What can be said about the steps before any of them is carried out.
    fn check_steps(&self, definition: &Definition, values: &Values) -> Result<(), Error> {
        let mut values = values.clone();
        // Any folder will do to see whether paths stay in it.
        values.insert(WORKSPACE.to_owned(), "/workspace".to_owned());
        let mut problems = Vec::new();
        for (index, step) in definition.steps().enumerate() {
            match step.resolve(&values) {
                Ok(Action::Proxy(ProxyAction::Add { domain, .. })) if self.is_our_own(&domain) => problems
                    .push(format!(
                        "step {} `{}`: domain must not be the name that this installation is reached by",
                        index + 1,
                        step.name
                    )),
                Ok(_) => {}
                Err(misuses) => problems.extend(misuses.into_iter().map(|misuse| {
                    let key = misuse.key.unwrap_or_default();
                    format!("step {} `{}`: {key} {}", index + 1, step.name, misuse.message)
                })),
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Error::Invalid(hidden(definition, &values, problems.join("; "))))
        }
    }

    fn is_our_own(&self, domain: &Hostname) -> bool {
        Some(domain.as_str()) == self.ports.public_host.as_deref()
    }

    fn execution(
        &self,
        actor: &Actor,
        scope: Scope,
        extension: &Extension,
        definition: &Definition,
        values: &Values,
        job: &NewJob,
    ) -> Result<Execution, Error> {
        let id: ExecutionId = self.tools.ids.next().into();
        let shown: Values = values
            .iter()
            .map(|(name, value)| {
                let is_secret =
                    definition.variables.iter().any(|spec| spec.name == *name && spec.is_sensitive);
                (name.clone(), if is_secret { MASK.to_owned() } else { value.clone() })
            })
            .collect();
        let sealed_values = self.ports.secrets.seal(&Execution::place(id), json(values).as_bytes())?;
        Ok(Execution {
            id,
            scope,
            extension_id: extension.id,
            user_id: actor.user_id(),
            job_id: job.id,
            state: ExecutionState::Pending,
            server_hostname: String::new(),
            exit_code: 0,
            error_message: String::new(),
            shown_values: json(&shown),
            sealed_values,
            definition: extension.yaml.clone(),
            log_seq: 0,
            started_at: None,
            completed_at: None,
            created_at: self.tools.clock.now(),
        })
    }

    fn steps(&self, execution_id: ExecutionId, definition: &Definition) -> Vec<ExecutionStep> {
        let phases = [(Phase::Run, &definition.run), (Phase::Validate, &definition.validate)];
        let steps = phases.into_iter().flat_map(|(phase, steps)| steps.iter().map(move |step| (phase, step)));
        let step = |(order, (phase, spec)): (i32, (Phase, &StepSpec))| ExecutionStep {
            id: self.tools.ids.next().into(),
            execution_id,
            name: spec.name.clone(),
            order,
            phase,
            state: ExecutionState::Pending,
            exit_code: 0,
            started_at: None,
            completed_at: None,
            created_at: self.tools.clock.now(),
        };
        (1..).zip(steps).map(step).collect()
    }

    /// A job about an extension. One at a time for each organization.
    fn job(&self, scope: Scope, extension: ExtensionId, kind: JobKind) -> NewJob {
        let now = self.tools.clock.now();
        NewJob {
            id: self.tools.ids.next().into(),
            kind,
            scope,
            subject: subject(scope.id(), extension),
            replaceable: false,
            payload: String::new(),
            run_at: now,
            enqueued_at: now,
        }
    }
}

/// What the jobs of an extension for an organization work on: an entry of the catalog is everyone's,
/// and nobody has to wait for others.
fn subject(organization: OrganizationId, extension: ExtensionId) -> SubjectId {
    let (organization, extension) = (uuid::Uuid::from(organization), uuid::Uuid::from(extension));
    SubjectId::from(uuid::Uuid::from_u128(organization.as_u128() ^ extension.as_u128().rotate_left(64)))
}

/// What acts on the machine is for who administers it.
fn may_act_on_host(actor: &Actor, definition: &Definition) -> Result<(), Error> {
    if definition.acts_on_host() && !actor.administers_installation() {
        return Err(Forbidden::NotAnAdministrator.into());
    }
    Ok(())
}

/// A message without the values of sensitive variables.
fn hidden(definition: &Definition, values: &Values, message: String) -> String {
    let sensitive = definition.variables.iter().filter(|spec| spec.is_sensitive);
    let secrets = sensitive.filter_map(|spec| values.get(&spec.name)).filter(|value| !value.is_empty());
    secrets.fold(message, |message, secret| message.replace(secret.as_str(), MASK))
}

/// What the job of an uninstallation has to know.
fn uninstallation(key: &ExtensionKey, with_volumes: bool, is_deleted: bool) -> String {
    serde_json::json!({ "extension": key.as_str(), "volumes": with_volumes, "deleted": is_deleted })
        .to_string()
}

/// Texts by name as a JSON object.
fn json(values: &Values) -> String {
    let entries = values.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
    serde_json::Value::Object(entries.collect()).to_string()
}
