//! Usage of the quotas of organizations.

use std::sync::Arc;

use launchway_domain::{
    auth::{Action, Actor, Permission, Resource as Permitted},
    clock::Clock,
    ids::OrganizationId,
    quotas::{Quotas, Resource, Usage, UsageRepository},
};

use crate::{Error, logs::LogStreams, organizations::acting_in};

const READ: Permission = Permission::new(Permitted::Organization, Action::Read);

/// Reads the quota usage of an organization.
pub struct QuotaUsage {
    repository: Arc<dyn UsageRepository>,
    streams: Arc<LogStreams>,
    quotas: Quotas,
    clock: Arc<dyn Clock>,
}

impl QuotaUsage {
    /// Returns the use case over stored records in `repository` and open streams in `streams`.
    pub fn new(
        repository: Arc<dyn UsageRepository>,
        streams: Arc<LogStreams>,
        quotas: Quotas,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { repository, streams, quotas, clock }
    }

    /// Returns usage and limit of every quota: of the organization `id`, or of the actor's current one.
    /// Streams are those of this server process; those of the user are the actor's own.
    ///
    /// # Errors
    /// [`Error::NotFound`] unless the actor is a member, [`Error::Forbidden`] without the permission
    /// `organization:read`.
    pub async fn usage(&self, actor: &Actor, id: Option<OrganizationId>) -> Result<Vec<Usage>, Error> {
        let scope = acting_in(actor, id)?.require(READ)?;
        let stored = self.repository.usage(scope, self.clock.now()).await?;
        let usage = |resource: &Resource| {
            let used = match resource {
                Resource::LogStreams => self.streams.of_organization(scope.id()),
                Resource::UserLogStreams => self.streams.of_user(actor.user_id()),
                resource => stored.iter().find(|(stored, _)| stored == resource)?.1,
            };
            Some(Usage { quota: self.quotas.of(*resource), used })
        };
        Ok(Resource::ALL.iter().filter_map(usage).collect())
    }
}
