//! Ids: one type for each kind of record, and the port that generates them.

use uuid::Uuid;

/// Generates ids for new records.
///
/// Promises: ids are UUID version 7, never repeat, and later ids sort after earlier ones of the same
/// process.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Ids: Send + Sync {
    /// Returns the next unused id.
    fn next(&self) -> Uuid;
}

/// A function that generates ids is an implementation, if it keeps the promises.
impl<F: Fn() -> Uuid + Send + Sync> Ids for F {
    fn next(&self) -> Uuid {
        self()
    }
}

/// The error for a text that is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a UUID")]
pub struct InvalidId;

macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;

            fn from_str(raw: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(raw.trim()).map(Self).map_err(|_not_a_uuid| InvalidId)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

typed_id!(
    /// Identifies a [`User`](crate::users::User).
    UserId
);
typed_id!(
    /// Identifies the [`Settings`](crate::users::Settings) of a user.
    SettingsId
);
typed_id!(
    /// Identifies an [`Organization`](crate::organizations::Organization).
    OrganizationId
);
typed_id!(
    /// Identifies a [`Membership`](crate::organizations::Membership).
    MembershipId
);
typed_id!(
    /// Identifies an [`Invitation`](crate::organizations::Invitation).
    InvitationId
);
typed_id!(
    /// Identifies a [`Session`](crate::auth::Session).
    SessionId
);
typed_id!(
    /// Identifies an [`ApiToken`](crate::auth::ApiToken).
    ApiTokenId
);
typed_id!(
    /// Identifies an [`Entry`](crate::audit::Entry) of the audit log.
    AuditEntryId
);
typed_id!(
    /// Identifies a [`LoginAttempt`](crate::auth::LoginAttempt).
    LoginAttemptId
);
typed_id!(
    /// Identifies a [`Job`](crate::jobs::Job).
    JobId
);
typed_id!(
    /// Identifies the subject of a [`Job`](crate::jobs::Job) or the target of a
    /// [`Route`](crate::routes::Route), such as an application.
    SubjectId
);
typed_id!(
    /// Identifies an installed server process across its restarts.
    InstanceId
);
typed_id!(
    /// Identifies one run of a server process, from its start to its end.
    BootId
);
typed_id!(
    /// Identifies an [`Application`](crate::applications::Application).
    ApplicationId
);
typed_id!(
    /// Identifies the [`ApplicationStatus`](crate::applications::ApplicationStatus) of an application.
    ApplicationStatusId
);
typed_id!(
    /// Identifies a [`Deployment`](crate::deployments::Deployment).
    DeploymentId
);
typed_id!(
    /// Identifies the [`DeploymentStatus`](crate::deployments::DeploymentStatus) of a deployment.
    DeploymentStatusId
);
typed_id!(
    /// Identifies an upload of a [`SiteArchive`](crate::deployments::SiteArchive).
    SiteUploadId
);
typed_id!(
    /// Identifies a [`KeptSecret`](crate::webhooks::KeptSecret).
    WebhookSecretId
);

typed_id!(
    /// Identifies an [`Extension`](crate::extensions::Extension).
    ExtensionId
);
typed_id!(
    /// Identifies an [`ExtensionVariable`](crate::extensions::ExtensionVariable).
    ExtensionVariableId
);
typed_id!(
    /// Identifies an [`Execution`](crate::extensions::Execution), a run of an extension.
    ExecutionId
);
typed_id!(
    /// Identifies an [`ExecutionStep`](crate::extensions::ExecutionStep).
    ExecutionStepId
);
typed_id!(
    /// Identifies an [`ExtensionRoute`](crate::extensions::ExtensionRoute).
    ExtensionRouteId
);
typed_id!(
    /// Identifies an [`Event`](crate::notifications::Event) that users are notified of.
    EventId
);
typed_id!(
    /// Identifies a [`WebhookConfig`](crate::notifications::WebhookConfig).
    WebhookConfigId
);
typed_id!(
    /// Identifies a [`KeptSigningSecret`](crate::notifications::KeptSigningSecret).
    SigningSecretId
);
typed_id!(
    /// Identifies an [`SmtpConfig`](crate::notifications::SmtpConfig).
    SmtpConfigId
);
typed_id!(
    /// Identifies a [`Delivery`](crate::notifications::Delivery).
    DeliveryId
);

impl From<ApplicationId> for SubjectId {
    /// The subject of an application's jobs.
    fn from(id: ApplicationId) -> Self {
        Self(id.0)
    }
}

impl From<ExtensionRouteId> for SubjectId {
    /// The subject of an extension's traffic statistics.
    fn from(id: ExtensionRouteId) -> Self {
        Self(id.0)
    }
}

impl From<SubjectId> for ApplicationId {
    fn from(id: SubjectId) -> Self {
        Self(id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shown_as_a_lower_case_uuid() {
        let id: UserId = "0190B2C4-0000-7000-8000-00000000000A".parse().unwrap();
        assert_eq!(id.to_string(), "0190b2c4-0000-7000-8000-00000000000a");
    }

    #[test]
    fn a_text_that_is_no_uuid_is_refused() {
        assert_eq!("42".parse::<UserId>(), Err(InvalidId));
        assert_eq!("".parse::<UserId>(), Err(InvalidId));
    }
}
