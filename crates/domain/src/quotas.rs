//! Quotas: limits on the resources of one organization, so that no tenant takes the machine from the
//! others.
//!
//! **Invariant:** only `Quota::check` decides whether a quota allows something. For stored resources the
//! check is a guard in the commit that adds to them (`Write::Require`), never a read before it (decision
//! 40).

use async_trait::async_trait;

pub use crate::limits::{Quota, QuotaExceeded, Resource, Unit};
use crate::{clock::Timestamp, organizations::Scope, store_error::StoreError};

/// The most open log streams of one server process, for everybody together.
const SERVER_LOG_STREAMS: u64 = 256;

/// Every limit; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Applications of an organization.
    pub applications: u64,
    /// Deployments of an organization that run at once.
    pub builds: u64,
    /// Open streams of logs of an organization.
    pub log_streams: u64,
    /// Open streams of logs of a user.
    pub user_log_streams: u64,
    /// Ports of the host that containers of an organization's extensions publish.
    pub extension_ports: u64,
    /// Forks of extensions that an organization has.
    pub extension_forks: u64,
    /// Workspaces of an organization's runs of extensions.
    pub extension_workspaces: u64,
    /// Bytes of the logs of an organization's applications.
    pub log_bytes: u64,
    /// Bytes of the images of an organization's deployments.
    pub image_bytes: u64,
}

impl Quotas {
    /// Returns the quota of `resource`.
    #[must_use]
    pub fn of(self, resource: Resource) -> Quota {
        let limit = match resource {
            Resource::Applications => self.applications,
            Resource::Builds => self.builds,
            Resource::LogStreams => self.log_streams,
            Resource::UserLogStreams => self.user_log_streams,
            Resource::ServerLogStreams => SERVER_LOG_STREAMS,
            Resource::ExtensionPorts => self.extension_ports,
            Resource::ExtensionForks => self.extension_forks,
            Resource::ExtensionWorkspaces => self.extension_workspaces,
            Resource::LogBytes => self.log_bytes,
            Resource::ImageBytes => self.image_bytes,
        };
        Quota { resource, limit }
    }

    /// Returns the write that fails unless the organization may have `wanted` more of `resource`; `None`
    /// without a limit. It has to precede the writes that need it.
    #[must_use]
    pub fn require(self, scope: Scope, resource: Resource, wanted: u64, at: Timestamp) -> Option<Write> {
        let quota = self.of(resource);
        (!quota.is_unlimited()).then_some(Write::Require { scope, quota, wanted, at })
    }
}

/// The use of one resource by an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The quota.
    pub quota: Quota,
    /// The amount in use.
    pub used: u64,
}

/// Reads the usage of each resource by an organization.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UsageRepository: Send + Sync {
    /// Returns the use of every resource whose use is stored, as `commit` last made it durable, at the time
    /// `at`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn usage(&self, scope: Scope, at: Timestamp) -> Result<Vec<(Resource, u64)>, StoreError>;
}

/// Guards of units of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Changes nothing, but fails unless the organization may have `wanted` more. Until the unit is
    /// durable, no other unit can use the same amount. [`StoreError::QuotaExceeded`] otherwise.
    Require {
        /// The organization.
        scope: Scope,
        /// The limit.
        quota: Quota,
        /// The amount that the unit adds.
        wanted: u64,
        /// The time of the unit.
        at: Timestamp,
    },
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// The resources whose limit is a setting.
    fn settable() -> impl Iterator<Item = Resource> {
        Resource::ALL.iter().copied().filter(|resource| *resource != Resource::ServerLogStreams)
    }

    #[test]
    fn every_resource_has_a_limit_of_its_own() {
        let quotas = Quotas {
            applications: 1,
            builds: 2,
            log_streams: 3,
            user_log_streams: 4,
            extension_ports: 5,
            extension_forks: 6,
            extension_workspaces: 7,
            log_bytes: 8,
            image_bytes: 9,
        };
        let limits: Vec<u64> = settable().map(|resource| quotas.of(resource).limit).collect();
        assert_eq!(limits, (1..=limits.len() as u64).collect::<Vec<_>>());
        assert_eq!(limits.len(), Resource::ALL.len() - 1);
        assert_eq!(quotas.of(Resource::ServerLogStreams).limit, 256);
    }

    #[test]
    fn without_a_limit_nothing_is_required() {
        let (scope, at) = (Scope::of_record(Uuid::nil().into()), Timestamp::UNIX_EPOCH);
        for resource in settable() {
            assert_eq!(Quotas::default().require(scope, resource, 1, at), None);
        }
        let quotas = Quotas { applications: 3, ..Quotas::default() };
        let quota = Quota { resource: Resource::Applications, limit: 3 };
        assert_eq!(
            quotas.require(scope, Resource::Applications, 1, at),
            Some(Write::Require { scope, quota, wanted: 1, at })
        );
    }
}
