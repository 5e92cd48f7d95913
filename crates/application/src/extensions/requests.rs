//! Use cases that request and cancel runs.

use std::collections::BTreeMap;

use launchway_domain::{
    applications::Hostname,
    audit::{Action as Did, Event, Resource as Audited},
    auth::Actor,
    extensions::{
        Action, Definition, Execution, ExecutionDetail, ExecutionState, ExecutionStep, Extension,
        ExtensionKey, Misuse, Phase, PortError, PortRefusal, ProxyAction, StepSpec, Validation, Values,
        WORKSPACE, Write, check_values,
    },
    idempotency::IdempotencyKey,
    ids::ExecutionId,
    jobs::{JobKind, NewJob, Write as JobWrite},
    logs::MASK,
    organizations::Scope,
    quotas::Resource as Limited,
    store::StoreError,
};

use super::{CREATE, EXECUTION, EXTENSION, Extensions, UPDATE, may_act_on_host};
use crate::Error;

impl Extensions {
    /// Requests a run.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Conflict`] when its definition cannot
    /// be used, a host port is not free or this machine runs no applications, [`Error::QuotaExceeded`] when the
    /// organization keeps as many
    /// workspaces, or holds as many host ports, as it may, [`Error::Invalid`] when the values are not what
    /// it asks for or name a host port that may not be published, [`Error::Repeated`] when `idempotency`
    /// was used, [`Error::Forbidden`] without the permission `extension:create`, or when it acts on the
    /// machine and the actor does not administer it.
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
            Error::Conflict(format!("the definition of `{key}` is invalid: see its `validation_errors`"))
        })?;
        may_act_on_host(actor, &definition)?;
        let values = checked(&definition, given).await?;
        self.check_steps(scope, key, &definition, &values).await?;

        let job = self.job(scope, extension.id, JobKind::RunExtension);
        let execution = self.execution(actor, scope, &extension, &definition, &values, &job)?;
        let (id, steps) = (execution.id, self.steps(execution.id, &definition));
        let what = format!("ran the extension `{key}`");
        let event = Event::new(Did::Create, Audited::Execution, id, what)
            .with("extension_id", key)
            .with("content_hash", &extension.content_hash);
        let installs = definition.reaches_engine();
        let home = match installs {
            true => self.context.homes.of_extensions(scope.id()).await?.map(|home| (home, job.subject)),
            false => None,
        };
        let mut writes: Vec<_> = self.context.claim(idempotency, id.into()).into_iter().collect();
        let at = self.context.clock.now();
        writes.extend(self.ports.quotas.require(scope, Limited::ExtensionWorkspaces, 1, at).map(Into::into));
        writes.push(JobWrite::Enqueue(NewJob { payload: id.to_string(), ..job }).into());
        writes.push(Write::Request { execution: Box::new(execution), steps, installs, home }.into());
        writes.push(self.context.record(actor.author(), event));
        self.context.commit(writes, EXTENSION).await?;
        self.context.wake.notify();
        self.ports.executions.detail(scope, id).await?.ok_or(EXECUTION)
    }

    /// Cancels a run: at once if it is pending, otherwise through its worker, which rolls it back.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such run, [`Error::Conflict`] when it has
    /// finished, [`Error::Forbidden`] without the permission `extension:update`.
    pub async fn cancel(&self, actor: &Actor, id: ExecutionId) -> Result<ExecutionDetail, Error> {
        let scope = actor.require(UPDATE)?;
        let (execution, _) = self.ports.executions.get(scope, id).await?.ok_or(EXECUTION)?;
        let over =
            |state: ExecutionState| Error::Conflict(format!("the execution is {} already", state.as_str()));
        if execution.state.is_final() {
            return Err(over(execution.state));
        }
        let at = self.context.clock.now();
        let event = Event::new(Did::Update, Audited::Execution, id, format!("cancelled the execution {id}"));
        let writes = vec![
            JobWrite::RequestCancel { scope, id: execution.job_id, at }.into(),
            Write::FollowJobs { at }.into(),
            self.context.record(actor.author(), event),
        ];
        match self.context.store.commit(writes).await {
            // It finished in the meantime.
            Err(StoreError::Stale) => {
                let state = self.ports.executions.get(scope, id).await?.map(|(execution, _)| execution.state);
                return Err(state.map_or(EXECUTION, over));
            }
            outcome => outcome?,
        }
        self.context.wake.notify();
        self.ports.executions.detail(scope, id).await?.ok_or(EXECUTION)
    }

    /// Checks the steps before any of them runs.
    async fn check_steps(
        &self,
        scope: Scope,
        key: &ExtensionKey,
        definition: &Definition,
        values: &Values,
    ) -> Result<(), Error> {
        let mut values = values.clone();
        // Any directory works for the check that paths stay inside it.
        values.insert(WORKSPACE.to_owned(), "/workspace".to_owned());
        let (mut problems, mut actions) = (Vec::new(), Vec::new());
        for (index, step) in definition.steps().enumerate() {
            match step.resolve(&values) {
                Ok(Action::Proxy(ProxyAction::Add { domain, .. })) if self.is_our_own(&domain) => problems
                    .push(format!(
                        "step {} `{}`: domain must not be the host name of this installation",
                        index + 1,
                        step.name
                    )),
                Ok(action) => actions.push(action),
                Err(misuses) => problems.extend(misuses.into_iter().map(|misuse| {
                    let told = shown(definition, step, &misuse);
                    format!("step {} `{}`: {} {told}", index + 1, step.name, misuse.key)
                })),
            }
        }
        if !problems.is_empty() {
            return Err(Error::Invalid(problems.join("; ")));
        }
        self.ports.port_check.check(scope.id(), key, &actions, &values).await.map_err(refused_port)
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
        let id: ExecutionId = self.context.ids.next().into();
        let shown: Values = values
            .iter()
            .map(|(name, value)| {
                let is_secret =
                    definition.variables.iter().any(|spec| spec.name == *name && spec.is_sensitive);
                (name.clone(), if is_secret { MASK.to_owned() } else { value.clone() })
            })
            .collect();
        let sealed_values =
            self.ports.secrets.seal(&Execution::associated_data(id), json(values).as_bytes())?;
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
            created_at: self.context.clock.now(),
        })
    }

    fn steps(&self, execution_id: ExecutionId, definition: &Definition) -> Vec<ExecutionStep> {
        let phases = [(Phase::Run, &definition.run), (Phase::Validate, &definition.validate)];
        let steps = phases.into_iter().flat_map(|(phase, steps)| steps.iter().map(move |step| (phase, step)));
        let step = |(order, (phase, spec)): (i32, (Phase, &StepSpec))| ExecutionStep {
            id: self.context.ids.next().into(),
            execution_id,
            name: spec.name.clone(),
            order,
            phase,
            state: ExecutionState::Pending,
            exit_code: 0,
            started_at: None,
            completed_at: None,
            created_at: self.context.clock.now(),
        };
        (1..).zip(steps).map(step).collect()
    }
}

/// Completes and checks the given values on a blocking thread: long patterns and values take a while.
async fn checked(definition: &Definition, given: &BTreeMap<String, String>) -> Result<Values, Error> {
    let (specs, given) = (definition.variables.clone(), given.clone());
    let checked = tokio::task::spawn_blocking(move || check_values(&specs, &given)).await;
    let checked = checked.map_err(|broken| Error::Internal(broken.into()))?;
    checked.map_err(|problems| Error::Invalid(problems.join("; ")))
}

/// The answer to a run that would not get its host ports.
fn refused_port(error: PortError) -> Error {
    match error {
        PortError::Refused(PortRefusal::Quota(exceeded)) => Error::QuotaExceeded(exceeded),
        PortError::Refused(refusal @ (PortRefusal::OutOfRange { .. } | PortRefusal::Reserved(_))) => {
            Error::Invalid(refusal.to_string())
        }
        PortError::Refused(refusal @ (PortRefusal::Taken(_) | PortRefusal::RangeFull(_))) => {
            Error::Conflict(refusal.to_string())
        }
        PortError::Store(error) => error.into(),
    }
}

/// Returns the error of a step, without its secret values.
fn shown<'a>(definition: &Definition, step: &StepSpec, misuse: &'a Misuse) -> &'a str {
    let is_secret =
        |name: &str| definition.variables.iter().any(|spec| spec.name == name && spec.is_sensitive);
    match step.properties.get(&misuse.key) {
        Some(property) if property.names().any(is_secret) => {
            "is not allowed with the value of a sensitive variable"
        }
        _ => &misuse.message,
    }
}

/// Returns values by name as a JSON object.
fn json(values: &Values) -> String {
    let entries = values.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
    serde_json::Value::Object(entries.collect()).to_string()
}
