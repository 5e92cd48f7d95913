//! Use cases that fork, delete and uninstall extensions.

use launchway_domain::{
    audit::{Action as Did, Event, Resource as Audited},
    auth::Actor,
    extensions::{Definition, Extension, ExtensionKey, Write},
    idempotency::IdempotencyKey,
    jobs::{JobKind, NewJob, Write as JobWrite},
    organizations::Scope,
    quotas::Resource as Limited,
};

use super::{CREATE, DELETE, EXTENSION, Extensions, description::described, may_act_on_host};
use crate::Error;

impl Extensions {
    /// Creates a fork for the actor's organization: of `yaml`, or an exact copy if it is absent.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Conflict`] when it is a fork itself,
    /// [`Error::QuotaExceeded`] when the organization has as many as it may have, [`Error::Invalid`] when
    /// `yaml` is no definition, [`Error::Repeated`] when `idempotency` was used, [`Error::Forbidden`]
    /// without the permission `extension:create`, or when `yaml` acts on the machine and the actor does not
    /// administer it.
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
            return Err(Error::Conflict(format!(
                "`{key}` is a fork: only extensions of the catalog can be forked"
            )));
        }
        let fork = self.forked(actor, scope, &source, yaml)?;
        let id = fork.id;
        let event =
            Event::new(Did::Create, Audited::Extension, &fork.key, format!("forked the extension `{key}`"))
                .with("parent_extension_id", key)
                .with("content_hash", &fork.content_hash);
        let mut writes: Vec<_> = self.context.claim(idempotency, id.into()).into_iter().collect();
        let at = self.context.clock.now();
        writes.extend(self.ports.quotas.require(scope, Limited::ExtensionForks, 1, at).map(Into::into));
        writes.push(Write::Fork(Box::new(fork.clone())).into());
        writes.push(self.context.record(actor.author(), event));
        self.context.store.commit(writes).await?;
        Ok(fork)
    }

    /// Returns the record of the fork.
    fn forked(
        &self,
        actor: &Actor,
        scope: Scope,
        source: &Extension,
        yaml: Option<String>,
    ) -> Result<Extension, Error> {
        let now = self.context.clock.now();
        let mut fork = match yaml {
            None => Extension { name: source.name.forked(), ..source.clone() },
            Some(yaml) => {
                let definition = Definition::parse(&yaml).map_err(|invalid| {
                    Error::Invalid(format!("yaml_content is not a valid definition: {invalid}"))
                })?;
                may_act_on_host(actor, &definition)?;
                let author = actor.user().username.as_str().to_owned();
                Extension { author, ..described(&definition, yaml, &self.context) }
            }
        };
        fork.id = self.context.ids.next().into();
        for variable in &mut fork.variables {
            variable.id = self.context.ids.next().into();
            variable.created_at = now;
        }
        Ok(Extension {
            organization_id: Some(scope.id()),
            key: source.key.fork(self.context.entropy.bits_256()),
            parent: Some(source.key.clone()),
            is_verified: false,
            created_at: now,
            updated_at: now,
            ..fork
        })
    }

    /// Deletes a fork of the actor's organization and everything that it created; its volumes only if
    /// requested.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such fork, [`Error::Conflict`] for an entry of the catalog,
    /// [`Error::Forbidden`] without the permission `extension:delete`.
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
        let now = self.context.clock.now();
        let event =
            Event::new(Did::Delete, Audited::Extension, key, format!("deleted the extension `{key}`"))
                .with("volumes", with_volumes);
        let job = self.job(scope, extension.id, JobKind::UninstallExtension);
        self.context.homes.bind_extension(scope.id(), job.subject).await?;
        let writes = vec![
            JobWrite::RequestCancelAll { scope, subject: job.subject, at: now }.into(),
            Write::Delete { scope, key: key.clone(), at: now }.into(),
            JobWrite::Enqueue(NewJob { payload: uninstallation(key, with_volumes, true), ..job }).into(),
            Write::FollowJobs { at: now }.into(),
            self.context.record(actor.author(), event),
        ];
        self.context.commit(writes, EXTENSION).await?;
        self.context.wake.notify();
        Ok(Extension { deleted_at: Some(now), ..extension })
    }

    /// Uninstalls everything that an extension created for the actor's organization; its volumes only if
    /// requested. A running run is cancelled.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Forbidden`] without the permission
    /// `extension:delete`.
    pub async fn uninstall(
        &self,
        actor: &Actor,
        key: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<Extension, Error> {
        let scope = actor.require(DELETE)?;
        let extension = self.find(scope, key).await?;
        let now = self.context.clock.now();
        let what = format!("requested the removal of the resources of the extension `{key}`");
        let event = Event::new(Did::Delete, Audited::Extension, key, what).with("volumes", with_volumes);
        let job = self.job(scope, extension.id, JobKind::UninstallExtension);
        self.context.homes.bind_extension(scope.id(), job.subject).await?;
        let writes = vec![
            JobWrite::RequestCancelAll { scope, subject: job.subject, at: now }.into(),
            JobWrite::Enqueue(NewJob { payload: uninstallation(key, with_volumes, false), ..job }).into(),
            Write::FollowJobs { at: now }.into(),
            self.context.record(actor.author(), event),
        ];
        self.context.store.commit(writes).await?;
        self.context.wake.notify();
        Ok(extension)
    }
}

/// Returns the payload of the job of an uninstallation.
fn uninstallation(key: &ExtensionKey, with_volumes: bool, is_deleted: bool) -> String {
    serde_json::json!({ "extension": key.as_str(), "volumes": with_volumes, "deleted": is_deleted })
        .to_string()
}
