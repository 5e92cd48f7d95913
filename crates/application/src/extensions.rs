//! Extensions: use cases to read, fork and delete them, and to request and execute runs.

mod catalog;
mod description;
mod forks;
mod log;
mod requests;
mod runs;

use std::sync::Arc;

use launchway_domain::{
    auth::{Action as May, Actor, Forbidden, Permission, Resource},
    extensions::{
        Definition, Execution, ExecutionDetail, ExecutionLine, ExecutionRepository, Extension,
        ExtensionFilter, ExtensionKey, ExtensionRepository, PortCheck,
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
    runs::{RunPorts, Runs},
};
use crate::{Error, ServiceContext};

const CREATE: Permission = Permission::new(Resource::Extension, May::Create);
const READ: Permission = Permission::new(Resource::Extension, May::Read);
const UPDATE: Permission = Permission::new(Resource::Extension, May::Update);
const DELETE: Permission = Permission::new(Resource::Extension, May::Delete);

const EXTENSION: Error = Error::NotFound("the extension");
const EXECUTION: Error = Error::NotFound("the execution");

/// The number of lines of a run that are returned at once.
const LINES: i64 = 1000;

/// The ports of the use cases of extensions.
pub struct ExtensionPorts {
    /// Reads extensions.
    pub extensions: Arc<dyn ExtensionRepository>,
    /// Reads the runs of extensions.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Encrypts the values of a run.
    pub secrets: Arc<dyn SecretBox>,
    /// The host name of the installation itself, which extensions may not use.
    pub public_host: Option<String>,
    /// The quotas of each organization.
    pub quotas: Quotas,
    /// Decides about host ports before a run exists.
    pub port_check: Arc<dyn PortCheck>,
}

/// Reads and forks extensions, and requests runs.
pub struct Extensions {
    ports: ExtensionPorts,
    context: ServiceContext,
}

impl Extensions {
    /// Returns the use cases over `ports`.
    pub fn new(ports: ExtensionPorts, context: ServiceContext) -> Self {
        Self { ports, context }
    }

    /// Returns a page of the extensions of the actor's organization and the catalog, by name.
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

    /// Returns an extension of the catalog or of the actor's organization.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that key, [`Error::Forbidden`] without the permission
    /// `extension:read`.
    pub async fn get(&self, actor: &Actor, key: &ExtensionKey) -> Result<Extension, Error> {
        self.find(actor.require(READ)?, key).await
    }

    /// Returns an extension by its id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `extension:read`.
    pub async fn by_id(&self, actor: &Actor, id: ExtensionId) -> Result<Extension, Error> {
        self.ports.extensions.by_id(actor.require(READ)?, id).await?.ok_or(EXTENSION)
    }

    /// Checks that the actor may read extensions.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `extension:read`.
    pub fn may_read(&self, actor: &Actor) -> Result<(), Error> {
        actor.require(READ)?;
        Ok(())
    }

    /// Returns a page of the runs of an extension by the actor's organization, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such extension, [`Error::Forbidden`] without the permission
    /// `extension:read`.
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

    /// Returns a run of the actor's organization, with its related records.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `extension:read`.
    pub async fn execution_detail(&self, actor: &Actor, id: ExecutionId) -> Result<ExecutionDetail, Error> {
        let scope = actor.require(READ)?;
        self.ports.executions.detail(scope, id).await?.ok_or(EXECUTION)
    }

    /// Returns the lines of a run after number `after`, oldest first, and the number to continue from.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such run, [`Error::Forbidden`] without the
    /// permission `extension:read`.
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

    /// Returns a job on an extension. One runs at a time for each organization.
    fn job(&self, scope: Scope, extension: ExtensionId, kind: JobKind) -> NewJob {
        let now = self.context.clock.now();
        NewJob {
            id: self.context.ids.next().into(),
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

/// Returns the job subject of an extension for one organization. Entries of the catalog are shared, and
/// organizations must not wait for each other.
fn subject(organization: OrganizationId, extension: ExtensionId) -> SubjectId {
    let (organization, extension) = (uuid::Uuid::from(organization), uuid::Uuid::from(extension));
    SubjectId::from(uuid::Uuid::from_u128(organization.as_u128() ^ extension.as_u128().rotate_left(64)))
}

/// Checks that only administrators of the installation run definitions that act on the host.
fn may_act_on_host(actor: &Actor, definition: &Definition) -> Result<(), Error> {
    if definition.acts_on_host() && !actor.administers_installation() {
        return Err(Forbidden::NotAnAdministrator.into());
    }
    Ok(())
}
