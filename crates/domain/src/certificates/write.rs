//! Changes to certificates.

use super::{Challenge, HstsMaxAge, IssuedCertificate};
use crate::{
    applications::Hostname, clock::Timestamp, ids::ApplicationId, organizations::Scope, secret::Sealed,
};

/// Changes to certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Inserts the request for a certificate, due at once, unless the domain has one. `Stale` if the application does
    /// not have the domain any more.
    Request {
        /// The domain.
        domain: Hostname,
        /// The application; `None` for the domain of the API.
        application_id: Option<ApplicationId>,
        /// The time of the request.
        at: Timestamp,
    },
    /// Replaces the certificate of a domain by one that an ACME server issued. `Stale` if the record is gone or was
    /// replaced by an uploaded one.
    Issue {
        /// The domain.
        domain: Hostname,
        /// The certificate.
        issued: IssuedCertificate,
        /// The time of its renewal.
        renew_at: Timestamp,
        /// The time of the change.
        at: Timestamp,
    },
    /// Records the answer of the ACME server to the question when a certificate should be renewed. `Stale` if it was
    /// replaced, or an attempt has failed.
    PlanRenewal {
        /// The domain.
        domain: Hostname,
        /// The time at which the certificate expires.
        not_after: Timestamp,
        /// The time of its renewal; `None` for that which is planned.
        renew_at: Option<Timestamp>,
        /// The time of the next question.
        check_at: Timestamp,
    },
    /// Records a failure. `Stale` if the record is gone or was replaced by an uploaded one.
    Fail {
        /// The domain.
        domain: Hostname,
        /// The reason.
        reason: String,
        /// The number of failures since the last success, with this one.
        failures: u32,
        /// The time of the next attempt.
        next_attempt_at: Timestamp,
        /// The time of the failure.
        at: Timestamp,
    },
    /// Stores the certificate that a user uploaded for a domain of an application, in place of any other. `Stale` if the
    /// application does not have the domain.
    Upload {
        /// The organization of the application.
        scope: Scope,
        /// The application.
        application_id: ApplicationId,
        /// The domain.
        domain: Hostname,
        /// The certificate.
        issued: IssuedCertificate,
        /// The time of the change.
        at: Timestamp,
    },
    /// Deletes the certificate of a domain of an application. `Stale` if it has none.
    Delete {
        /// The organization of the application.
        scope: Scope,
        /// The application.
        application_id: ApplicationId,
        /// The domain.
        domain: Hostname,
    },
    /// Sets or removes the HSTS policy of a domain of an application. `Stale` if the application does not have the
    /// domain, or there is no policy to remove.
    SetHsts {
        /// The organization of the application.
        scope: Scope,
        /// The application.
        application_id: ApplicationId,
        /// The domain.
        domain: Hostname,
        /// The `max-age`; `None` removes the policy.
        max_age: Option<HstsMaxAge>,
    },
    /// Deletes the certificates of domains that their applications do not have any more, and of deleted applications.
    /// The domain of the API keeps its own.
    DeleteUnused {
        /// The domain of the API, if it is served.
        api_domain: Option<Hostname>,
    },
    /// Stores the account at a directory, unless there is one.
    Register {
        /// The URL of the directory.
        directory: String,
        /// The credentials; see [`account_associated_data`](super::account_associated_data).
        credentials: Sealed,
        /// The time of the registration.
        at: Timestamp,
    },
    /// Adds the answer to a challenge.
    AddChallenge {
        /// The challenge.
        challenge: Challenge,
        /// The time of the change.
        at: Timestamp,
    },
    /// Records that users were warned of the expiry of a certificate. `Stale` if they were, or it was replaced.
    Warn {
        /// The domain.
        domain: Hostname,
        /// The time at which it expires.
        not_after: Timestamp,
    },
    /// Removes the answers to challenges with these tokens, and those that were added before `older_than`.
    RemoveChallenges {
        /// The tokens.
        tokens: Vec<String>,
        /// The time before which answers are out of date.
        older_than: Timestamp,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log: those of users do.
    pub(crate) fn needs_audit(&self) -> bool {
        matches!(self, Self::Upload { .. } | Self::Delete { .. } | Self::SetHsts { .. })
    }
}
