//! Organizations and their members.

mod deploy_keys;
#[cfg(feature = "accounts")]
mod invitations;
#[cfg(feature = "accounts")]
mod members;

use std::{borrow::Cow, sync::Arc};

use launchway_domain::{
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    auth::{Action, Actor, Permission, Resource},
    idempotency::IdempotencyKey,
    ids::OrganizationId,
    organizations::{
        Description, Membership, Organization, OrganizationDetail, OrganizationName, OrganizationRepository,
        Role, Scope, Write,
    },
    store::{Rule, StoreError, Unique},
};

pub use self::deploy_keys::DeployKeys;
#[cfg(feature = "accounts")]
pub use self::{
    invitations::SentInvitation,
    members::{Added, AddedMember, NewMember},
};
use crate::{Error, ServiceContext};

const CREATE: Permission = Permission::new(Resource::Organization, Action::Create);
const READ: Permission = Permission::new(Resource::Organization, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Organization, Action::Update);
const DELETE: Permission = Permission::new(Resource::Organization, Action::Delete);

pub(crate) const ORGANIZATION: Error = Error::NotFound("the organization");

/// The request to create an organization.
#[derive(Debug)]
pub struct NewOrganization {
    /// The name of the organization.
    pub name: OrganizationName,
    /// The purpose of the organization.
    pub description: Description,
}

/// A partial update of an organization.
#[derive(Debug, Default)]
pub struct OrganizationChange {
    /// The new name.
    pub name: Option<OrganizationName>,
    /// The new description.
    pub description: Option<Description>,
}

/// Creates, reads, updates and deletes organizations, and manages their members.
pub struct Organizations {
    organizations: Arc<dyn OrganizationRepository>,
    context: ServiceContext,
}

impl Organizations {
    /// Returns the use cases over `organizations`.
    pub fn new(organizations: Arc<dyn OrganizationRepository>, context: ServiceContext) -> Self {
        Self { organizations, context }
    }

    /// Creates an organization with the actor as its admin.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the name is in use, ignoring case; [`Error::Repeated`] when `key` was used;
    /// [`Error::Forbidden`] without the permission `organization:create`.
    pub async fn create(
        &self,
        actor: &Actor,
        new: NewOrganization,
        key: Option<IdempotencyKey>,
    ) -> Result<OrganizationDetail, Error> {
        actor.require(CREATE)?;
        let now = self.context.clock.now();
        let NewOrganization { name, description } = new;
        let organization = Organization::new(self.context.ids.next().into(), name, description, now);
        let id = organization.id;
        let membership =
            Membership::new(self.context.ids.next().into(), id, actor.user_id(), Role::Admin, now);
        let what = format!("created the organization `{}`", organization.name);
        let event = Event::new(Did::Create, Audited::Organization, id, what).with("name", &organization.name);
        // The first entry in the audit log of the new organization.
        let author = Author { chain: Chain::Organization(id), ..actor.author() };
        let taken = name_is_taken(&organization.name);
        let mut writes: Vec<_> = self.context.claim(key, id.into()).into_iter().collect();
        writes.extend([
            Write::Insert(organization).into(),
            Write::InsertMembership(membership).into(),
            self.context.record(author, event),
        ]);
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Taken(Unique::OrganizationName) => taken,
            error => error.into(),
        })?;
        self.detail_of(Scope::of_record(id)).await
    }

    /// Returns an organization with its members: that of `id`, or the actor's current one.
    ///
    /// # Errors
    /// [`Error::NotFound`] unless the actor is a member, [`Error::Forbidden`] without the permission
    /// `organization:read`.
    pub async fn detail(
        &self,
        actor: &Actor,
        id: Option<OrganizationId>,
    ) -> Result<OrganizationDetail, Error> {
        let scope = acting_in(actor, id)?.require(READ)?;
        self.detail_of(scope).await
    }

    /// Updates the actor's current organization.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the name is in use, ignoring case; [`Error::Forbidden`] without the
    /// permission `organization:update`.
    pub async fn update(
        &self,
        actor: &Actor,
        change: OrganizationChange,
    ) -> Result<OrganizationDetail, Error> {
        let scope = actor.require(UPDATE)?;
        let OrganizationChange { name, description } = change;
        if name.is_none() && description.is_none() {
            return self.detail_of(scope).await;
        }
        let mut event =
            Event::new(Did::Update, Audited::Organization, scope.id(), "changed the organization");
        if let Some(name) = &name {
            event = event.with("name", name);
        }
        if let Some(description) = &description {
            event = event.with("description", description);
        }
        let taken = name.as_ref().map(name_is_taken);
        let at = self.context.clock.now();
        let writes = vec![
            Write::Update { scope, name, description, at }.into(),
            self.context.record(actor.author(), event),
        ];
        self.context.store.commit(writes).await.map_err(|error| match (error, taken) {
            (StoreError::Taken(Unique::OrganizationName), Some(taken)) => taken,
            (StoreError::Stale, _) => ORGANIZATION,
            (error, _) => error.into(),
        })?;
        self.detail_of(scope).await
    }

    /// Deletes an organization.
    ///
    /// # Errors
    /// [`Error::NotFound`] unless the actor is a member, [`Error::Forbidden`] without the permission
    /// `organization:delete` there, [`Error::Conflict`] when they have no other, or it has applications or
    /// resources of an extension.
    pub async fn delete(&self, actor: &Actor, id: OrganizationId) -> Result<(), Error> {
        let actor = acting_in(actor, Some(id))?;
        let scope = actor.require(DELETE)?;
        if actor.profile().memberships.len() == 1 {
            // A user without an organization cannot create one either.
            return Err(Error::Conflict("this is your only organization: make another one first".to_owned()));
        }
        let event = Event::new(Did::Delete, Audited::Organization, id, "deleted the organization");
        let writes = vec![
            Write::Delete { scope, at: self.context.clock.now() }.into(),
            self.context.record(actor.author(), event),
        ];
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => ORGANIZATION,
            StoreError::Refused(Rule::HasApplications) => {
                Error::Conflict("the organization has applications: delete them first".to_owned())
            }
            StoreError::Refused(Rule::HasExtensions) => Error::Conflict(
                "the organization has resources of extensions: uninstall them with their volumes first"
                    .to_owned(),
            ),
            error => error.into(),
        })
    }

    async fn detail_of(&self, scope: Scope) -> Result<OrganizationDetail, Error> {
        self.organizations.detail(scope).await?.ok_or(ORGANIZATION)
    }
}

/// Returns the actor in the organization `id`, or in their current one. Fails with `NotFound` if they are
/// not a member.
pub(crate) fn acting_in(actor: &Actor, id: Option<OrganizationId>) -> Result<Cow<'_, Actor>, Error> {
    match id {
        None => Ok(Cow::Borrowed(actor)),
        Some(id) => actor.acting_in(id).map(Cow::Owned).ok_or(ORGANIZATION),
    }
}

fn name_is_taken(name: &OrganizationName) -> Error {
    Error::Conflict(format!("an organization named `{name}` exists already"))
}
