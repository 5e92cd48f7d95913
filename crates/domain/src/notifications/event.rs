//! Events that users are notified of.

use std::collections::BTreeMap;

use crate::{
    clock::Timestamp,
    ids::{EventId, OrganizationId, UserId},
    organizations::Role,
    users::User,
    value::named,
};

named!(
    /// The kind of an event.
    EventKind,
    "the name of an event",
    {
        DeploymentSucceeded => "deployment.succeeded",
        DeploymentFailed => "deployment.failed",
        DeploymentCancelled => "deployment.cancelled",
        ApplicationRecovered => "application.recovered",
        CertificateExpiring => "certificate.expiring",
        ExtensionCompleted => "extension.completed",
        ExtensionFailed => "extension.failed",
        MemberAdded => "member.added",
        MemberRemoved => "member.removed",
        LoginNewDevice => "login.new_device",
        // Never stored: a user tests a channel.
        Test => "test",
    }
);

named!(
    /// The name of a field of an event, as receivers see it.
    Fact,
    "the name of a fact",
    {
        Organization => "organization",
        OrganizationId => "organization_id",
        Application => "application",
        ApplicationId => "application_id",
        Environment => "environment",
        Host => "host",
        DeploymentId => "deployment_id",
        RollbackTo => "rollback_to",
        Branch => "branch",
        Commit => "commit_hash",
        Extension => "extension",
        ExtensionKey => "extension_id",
        ExecutionId => "execution_id",
        ExitCode => "exit_code",
        RequestedBy => "requested_by",
        Seconds => "duration_seconds",
        Reason => "reason",
        User => "user",
        UserId => "user_id",
        Email => "email",
        Role => "role",
        By => "by",
        Address => "address",
        UserAgent => "user_agent",
        NotAfter => "not_after",
    }
);

/// The fields of an event at the time when it happened: the records may be gone by the time of the
/// delivery.
pub type Facts = BTreeMap<Fact, String>;

/// An event that is sent to every active channel of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The id of the event.
    pub id: EventId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The kind of the event.
    pub kind: EventKind,
    /// The fields.
    pub facts: Facts,
    /// When it happened.
    pub at: Timestamp,
}

impl Event {
    /// Returns the id by which receivers recognise repeated deliveries of the event.
    #[must_use]
    pub fn message_id(&self) -> String {
        // Without hyphens or dots: a dot separates the parts of the signed text.
        format!("msg_{}", uuid::Uuid::from(self.id).simple())
    }

    /// Adds a field. An empty value is left out.
    #[must_use]
    pub fn with(mut self, fact: Fact, value: impl ToString) -> Self {
        let value = value.to_string();
        if !value.is_empty() {
            self.facts.insert(fact, value);
        }
        self
    }

    /// Creates an event of an organization.
    #[must_use]
    pub fn new(id: EventId, organization_id: OrganizationId, kind: EventKind, at: Timestamp) -> Self {
        let event = Self { id, organization_id, kind, facts: Facts::new(), at };
        event.with(Fact::OrganizationId, organization_id)
    }

    /// Adds the fields of a user who was added to the organization by `by`.
    #[must_use]
    pub fn member_added(self, (email, role): (&str, Role), user_id: UserId, by: &User) -> Self {
        self.with(Fact::Email, email)
            .with(Fact::UserId, user_id)
            .with(Fact::Role, role.as_str())
            .with(Fact::By, &by.username)
    }

    /// Adds the fields of a user who was removed from the organization by `by`.
    #[must_use]
    pub fn member_removed(self, member: &User, by: &User) -> Self {
        self.about(member).with(Fact::By, &by.username)
    }

    /// Adds the fields of a user.
    pub(super) fn about(self, user: &User) -> Self {
        self.with(Fact::User, &user.username).with(Fact::UserId, user.id).with(Fact::Email, &user.email)
    }
}

/// The time for which a device is known after it was last seen.
pub const DEVICE_KNOWN_FOR: chrono::TimeDelta = chrono::TimeDelta::days(90);

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_message_is_recognised_by_an_id_without_a_dot() {
        let id = Uuid::from_u128(0x0190_b2c4_0000_7000_8000_0000_0000_000a);
        let event = Event::new(id.into(), Uuid::nil().into(), EventKind::MemberAdded, Timestamp::UNIX_EPOCH);
        assert_eq!(event.message_id(), "msg_0190b2c400007000800000000000000a");
    }

    #[test]
    fn what_is_empty_is_not_known() {
        let nil = Uuid::nil();
        let event = Event::new(nil.into(), nil.into(), EventKind::DeploymentFailed, Timestamp::UNIX_EPOCH)
            .with(Fact::Commit, "")
            .with(Fact::Environment, "production");
        let known: Vec<_> = event.facts.keys().map(|fact| fact.as_str()).collect();
        assert_eq!(known, ["organization_id", "environment"]);
    }
}
