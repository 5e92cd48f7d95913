//! The limit of a resource, and the error for exceeding it.

use std::fmt;

use crate::value::named;

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

#[cfg(test)]
mod tests {
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
            told(Resource::ServerLogStreams, 256),
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
}
