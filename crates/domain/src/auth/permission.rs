//! Permissions: `resource:action`.

use std::fmt;

use crate::value::InvalidValue;

/// The resource of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Users and their settings.
    User,
    /// The organization and its members.
    Organization,
    /// Applications, their deployments and their logs.
    Deploy,
    /// Extensions and their runs.
    Extension,
    /// Notification channels and their settings.
    Notification,
    /// The audit log.
    Audit,
    /// The metrics of the installation, which belong to no organization.
    Metrics,
}

impl Resource {
    /// The resources of an organization.
    const ALL: [Self; 6] =
        [Self::User, Self::Organization, Self::Deploy, Self::Extension, Self::Notification, Self::Audit];
}

/// The action of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Create it.
    Create,
    /// Read it.
    Read,
    /// Change it.
    Update,
    /// Delete it.
    Delete,
}

impl Action {
    const ALL: [Self; 4] = [Self::Create, Self::Read, Self::Update, Self::Delete];
}

/// The permission to do one kind of action to one kind of resource.
///
/// ```
/// use launchway_domain::auth::{Action, Permission, Resource};
///
/// let permission: Permission = "deploy:create".parse().unwrap();
/// assert_eq!(permission, Permission::new(Resource::Deploy, Action::Create));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// The resource.
    pub resource: Resource,
    /// The action.
    pub action: Action,
}

impl Permission {
    /// Returns the permission to do `action` to `resource`.
    #[must_use]
    pub const fn new(resource: Resource, action: Action) -> Self {
        Self { resource, action }
    }

    /// The permission to read the metrics of the installation. No role has it: an administrator of the
    /// installation puts it into an API token.
    pub const METRICS: Self = Self::new(Resource::Metrics, Action::Read);

    /// Returns every permission in an organization.
    pub fn all() -> impl Iterator<Item = Self> {
        Resource::ALL.into_iter().flat_map(|resource| Action::ALL.map(|action| Self { resource, action }))
    }

    /// Returns the name, as `resource:action`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        NAMES[self.resource as usize][self.action as usize]
    }

    fn bit(self) -> u32 {
        1 << (self.resource as u32 * 4 + self.action as u32)
    }
}

/// The names by resource, then by action. Static because every response about a member lists them.
const NAMES: [[&str; 4]; 7] = [
    ["user:create", "user:read", "user:update", "user:delete"],
    ["organization:create", "organization:read", "organization:update", "organization:delete"],
    ["deploy:create", "deploy:read", "deploy:update", "deploy:delete"],
    ["extension:create", "extension:read", "extension:update", "extension:delete"],
    ["notification:create", "notification:read", "notification:update", "notification:delete"],
    ["audit:create", "audit:read", "audit:update", "audit:delete"],
    ["metrics:create", "metrics:read", "metrics:update", "metrics:delete"],
];

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Permission {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        let mut known = Self::all().chain([Self::METRICS]);
        known.find(|permission| permission.as_str() == raw.trim()).ok_or_else(|| {
            InvalidValue::text(
                "`resource:action` with a resource of user, organization, deploy, extension, notification or \
                 audit and an action of create, read, update or delete, or `metrics:read`",
                raw,
            )
        })
    }
}

/// A set of permissions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions(u32);

impl Permissions {
    /// Returns whether `permission` is in the set.
    #[must_use]
    pub fn contain(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// Returns whether every permission of `others` is in the set.
    #[must_use]
    pub fn contain_all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the permissions in the order of the API.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::all().chain([Permission::METRICS]).filter(move |permission| self.contain(*permission))
    }

    /// Returns the names in the order of the API.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(Permission::as_str).collect()
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | permission.bit()))
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn there_are_24_permissions_and_each_is_read_as_it_is_written() {
        assert_eq!(Permission::all().count(), 24);
        for permission in Permission::all().chain([Permission::METRICS]) {
            assert_eq!(permission.to_string().parse(), Ok(permission));
        }
    }

    #[test]
    fn a_permission_is_named_after_its_resource_and_action() {
        for permission in Permission::all() {
            let name = format!("{:?}:{:?}", permission.resource, permission.action).to_lowercase();
            assert_eq!(permission.as_str(), name);
        }
    }

    #[test]
    fn an_unknown_permission_is_refused() {
        for text in ["", "deploy", "deploy:", "deploy:run", "root:read", "deploy:read:all", "metrics:update"]
        {
            assert!(text.parse::<Permission>().is_err(), "{text}");
        }
    }

    #[test]
    fn metrics_are_in_a_set_and_in_no_role() {
        let set = Permissions::from_iter([Permission::METRICS]);
        assert_eq!(set.names(), ["metrics:read"]);
        assert!(!Permissions::from_iter(Permission::all()).contain(Permission::METRICS));
    }

    proptest! {
        #[test]
        fn a_set_holds_exactly_what_was_put_in(bits in 0u32..1 << 24, others in 0u32..1 << 24) {
            let chosen: Vec<_> = Permission::all().filter(|p| bits & p.bit() != 0).collect();
            let set: Permissions = chosen.iter().copied().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), chosen);
            prop_assert_eq!(set.contain_all(Permissions(others)), set.and(Permissions(others)) == Permissions(others));
        }
    }
}
