//! Extensions: showing, forking and removing them, asking for runs, and carrying those out.

mod catalog;
mod describing;
mod forking;
mod log;
mod requesting;
mod running;

use std::sync::Arc;

use launchway_domain::{
    auth::{Action as May, Actor, Forbidden, Permission, Resource},
    extensions::{
        Definition, Execution, ExecutionDetail, ExecutionLine, ExecutionRepository, Extension,
        ExtensionFilter, ExtensionKey, ExtensionRepository,
    },
    ids::{ExecutionId, ExtensionId, OrganizationId, SubjectId},
    jobs::{JobKind, NewJob, Pool},
    organizations::Scope,
    page::{Page, PageRequest},
    quotas::Quotas,
    secret::SecretBox,
};

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
pub struct ExtensionPorts {
    /// Reads extensions.
    pub extensions: Arc<dyn ExtensionRepository>,
    /// Reads their runs.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Seals the values that a run is given.
    pub secrets: Arc<dyn SecretBox>,
    /// The name that this installation is reached by, which leads nowhere else.
    pub public_host: Option<String>,
    /// The most that one organization has of each resource.
    pub quotas: Quotas,
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

    async fn find(&self, scope: Scope, key: &ExtensionKey) -> Result<Extension, Error> {
        self.ports.extensions.by_key(scope, key).await?.ok_or(EXTENSION)
    }

    /// A job about an extension. One at a time for each organization.
    fn job(&self, scope: Scope, extension: ExtensionId, kind: JobKind) -> NewJob {
        let now = self.tools.clock.now();
        NewJob {
            id: self.tools.ids.next().into(),
            kind,
            scope,
            subject: subject(scope.id(), extension),
            pool: Pool::Extensions,
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
