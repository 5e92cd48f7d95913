//! Quotas: limits on the resources of one organization, so that no tenant takes the machine from the
//! others.
//!
//! **Invariant:** only `Quota::check` decides whether a quota allows something. For stored resources the
//! check is a guard in the commit that adds to them (`Write::Require`), never a read before it (decision
//! 40).

use std::fmt;

use async_trait::async_trait;

use crate::{
    clock::Timestamp,
    organizations::Scope,
    store::{self, StoreError},
    value::named,
};

named!(
    /// A resource that is limited per organization.
    Resource,
    "a resource that has a quota",
    {
        Applications => "applications",
        // Deployments that run at once.
        Builds => "builds",
        // Open streams of logs on one server process.
        LogStreams => "log_streams",
        // Open streams of logs of one user, in all of the user's organizations together.
        UserLogStreams => "user_log_streams",
        // The same of everybody on one server process. No organization's, and no part of its usage.
        ServerLogStreams => "server_log_streams",
        // Ports of the host that containers of extensions publish.
        ExtensionPorts => "extension_ports",
        ExtensionForks => "extension_forks",
        // Workspaces of runs of extensions that wait, run, or completed within the retention.
        ExtensionWorkspaces => "extension_workspaces",
        // Bytes of the logs of applications. The oldest lines make room, so nothing is refused.
        LogBytes => "log_bytes",
        // Bytes of the images of deployments.
        ImageBytes => "image_bytes",
    }
);

impl Resource {
    /// Returns the unit that use and limit are counted in.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Applications
            | Self::Builds
            | Self::LogStreams
            | Self::UserLogStreams
            | Self::ServerLogStreams
            | Self::ExtensionPorts
            | Self::ExtensionForks
            | Self::ExtensionWorkspaces => Unit::Count,
            Self::LogBytes | Self::ImageBytes => Unit::Bytes,
        }
    }
}

named!(
    /// A unit of quotas.
    Unit,
    "a unit of quotas",
    {
        Count => "count",
        Bytes => "bytes",
    }
);

impl Unit {
    /// Returns `amount` in this unit, as a person reads it.
    #[must_use]
    pub fn shown(self, amount: u64) -> String {
        const SCALES: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match (self, SCALES.into_iter().find(|(scale, _)| amount >= *scale)) {
            (Self::Count, _) => amount.to_string(),
            (Self::Bytes, None) => format!("{amount} B"),
            (Self::Bytes, Some((scale, name))) => {
                let (whole, rest) = (amount / scale, amount % scale);
                format!("{whole}.{} {name}", rest * 10 / scale)
            }
        }
    }
}

/// The limit of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The resource.
    pub resource: Resource,
    /// The limit for one organization; 0 for none.
    pub limit: u64,
}

impl Quota {
    /// Returns whether there is no limit.
    #[must_use]
    pub fn is_unlimited(self) -> bool {
        self.limit == 0
    }

    /// Checks whether an organization that uses `used` may have `wanted` more. `wanted` of 0 is always
    /// allowed: existing resources are kept.
    ///
    /// # Errors
    /// [`QuotaExceeded`] if the limit would be exceeded.
    pub fn check(self, used: u64, wanted: u64) -> Result<(), QuotaExceeded> {
        let Self { resource, limit } = self;
        if self.is_unlimited() || wanted == 0 || used.saturating_add(wanted) <= limit {
            return Ok(());
        }
        Err(QuotaExceeded { resource, used, wanted, limit })
    }
}

/// The error for a quota that is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct QuotaExceeded {
    /// The resource.
    pub resource: Resource,
    /// The amount in use.
    pub used: u64,
    /// The additional amount that was requested.
    pub wanted: u64,
    /// The limit.
    pub limit: u64,
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, used, wanted, limit } = self;
        let whose = match resource {
            Resource::UserLogStreams => "user",
            Resource::ServerLogStreams => "server",
            _ => "organization",
        };
        let shown = |amount: &u64| resource.unit().shown(*amount);
        write!(
            f,
            "the quota `{}` of this {whose} is reached: {} of {} are in use, and {} more would be needed",
            resource.as_str(),
            shown(used),
            shown(limit),
            shown(wanted)
        )
    }
}

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
    pub fn require(
        self,
        scope: Scope,
        resource: Resource,
        wanted: u64,
        at: Timestamp,
    ) -> Option<store::Write> {
        let quota = self.of(resource);
        (!quota.is_unlimited()).then(|| Write::Require { scope, quota, wanted, at }.into())
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

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Quota(write)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_quota_is_decided_on_both_sides_of_its_limit() {
        for resource in Resource::ALL {
            for (limit, used, wanted, is_allowed) in [
                (0, u64::MAX, u64::MAX, true),
                (1, 0, 1, true),
                (1, 0, 2, false),
                (1, 1, 1, false),
                (100, 99, 1, true),
                (100, 100, 1, false),
                (100, 90, 10, true),
                (100, 90, 11, false),
                (100, 250, 0, true),
                (100, 250, 1, false),
                (u64::MAX, u64::MAX, 1, true),
                (u64::MAX - 1, u64::MAX, 1, false),
            ] {
                let quota = Quota { resource: *resource, limit };
                let decided = quota.check(used, wanted);
                assert_eq!(decided.is_ok(), is_allowed, "{resource:?}: {used} + {wanted} of {limit}");
                if let Err(exceeded) = decided {
                    assert_eq!((exceeded.used, exceeded.wanted, exceeded.limit), (used, wanted, limit));
                }
            }
        }
    }

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
    }

    #[test]
    fn a_refusal_names_the_quota_its_use_and_its_limit() {
        let told = |resource, limit| Quota { resource, limit }.check(limit, 1).unwrap_err().to_string();
        assert_eq!(
            told(Resource::Applications, 100),
            "the quota `applications` of this organization is reached: 100 of 100 are in use, and 1 more would be needed"
        );
        let quota = Quota { resource: Resource::ImageBytes, limit: 5 << 30 };
        assert_eq!(
            quota.check(4 << 30, 3 << 29).unwrap_err().to_string(),
            "the quota `image_bytes` of this organization is reached: 4.0 GiB of 5.0 GiB are in use, and 1.5 GiB more would be needed"
        );
        assert!(told(Resource::UserLogStreams, 2).contains("of this user is reached"));
        assert_eq!(
            Quotas::default().of(Resource::ServerLogStreams).check(256, 1).unwrap_err().to_string(),
            "the quota `server_log_streams` of this server is reached: 256 of 256 are in use, and 1 more would be needed"
        );
    }

    #[test]
    fn bytes_are_shown_in_the_unit_that_fits() {
        for (amount, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (3 << 19, "1.5 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(Unit::Bytes.shown(amount), shown);
        }
        assert_eq!(Unit::Count.shown(2048), "2048");
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
            Some(Write::Require { scope, quota, wanted: 1, at }.into())
        );
    }
}
