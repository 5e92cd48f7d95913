//! The roles of members.

use crate::{
    auth::{Action, Permission, Permissions, Resource},
    value::InvalidValue,
};

/// The role of a member. It counts in that organization only.
///
/// ```
/// use launchway_domain::{auth::Permission, organizations::Role};
///
/// let deploy: Permission = "deploy:create".parse().unwrap();
/// assert!(Role::Member.permissions().contain(deploy));
/// assert!(!Role::Viewer.permissions().contain(deploy));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Has every permission.
    Admin,
    /// Deploys, and reads everything.
    Member,
    /// Reads, but neither the audit log nor secrets.
    Viewer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Member, Self::Viewer];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Viewer => "viewer",
        }
    }

    /// Returns the permissions of the role.
    #[must_use]
    pub fn permissions(self) -> Permissions {
        let allows: fn(Permission) -> bool = match self {
            Self::Admin => |_| true,
            Self::Member => |permission| {
                permission.action == Action::Read
                    || permission.resource == Resource::Deploy
                    || (permission.resource == Resource::User && permission.action == Action::Update)
            },
            Self::Viewer => {
                |permission| permission.action == Action::Read && permission.resource != Resource::Audit
            }
        };
        Permission::all().filter(|permission| allows(*permission)).collect()
    }
}

impl std::str::FromStr for Role {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == raw)
            .ok_or_else(|| InvalidValue::text("`admin`, `member` or `viewer`", raw))
    }
}

impl TryFrom<String> for Role {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        raw.trim().parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(role: Role) -> Vec<String> {
        role.permissions().iter().map(|permission| permission.to_string()).collect()
    }

    #[test]
    fn an_admin_may_do_everything() {
        assert_eq!(names(Role::Admin).len(), 24);
    }

    #[test]
    fn a_member_reads_everything_deploys_and_updates_itself() {
        let expected = [
            "user:read",
            "user:update",
            "organization:read",
            "deploy:create",
            "deploy:read",
            "deploy:update",
            "deploy:delete",
            "extension:read",
            "notification:read",
            "audit:read",
        ];
        assert_eq!(names(Role::Member), expected);
    }

    #[test]
    fn a_viewer_reads_everything_but_the_audit_log() {
        let expected =
            ["user:read", "organization:read", "deploy:read", "extension:read", "notification:read"];
        assert_eq!(names(Role::Viewer), expected);
    }

    #[test]
    fn roles_are_read_as_they_are_written() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!("owner".parse::<Role>().is_err());
    }
}
