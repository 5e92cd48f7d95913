//! Certificates of host names, and the ACME server that issues them.
//!
//! **Invariant:** a private key is stored only sealed, and leaves the server only for a front proxy.

mod hsts;
mod ports;
mod renewal;
mod write;

use std::time::Duration;

use chrono::TimeDelta;

use crate::{
    applications::Hostname,
    clock::Timestamp,
    ids::ApplicationId,
    organizations::Scope,
    secret::{Sealed, Secret},
    value::named,
};

#[cfg(feature = "mock")]
pub use self::ports::{
    MockCertificateParser, MockCertificateRepository, MockCertificateServer, MockChallengeResponder,
    MockDomainResolver,
};
pub use self::{
    hsts::{HstsMaxAge, HstsPolicy},
    ports::{
        CertificateIssuer, CertificateParser, CertificateRepository, CertificateServer, ChallengeResponder,
        DomainResolver,
    },
    renewal::RenewalWindow,
    write::Write,
};

named!(
    /// The origin of a certificate.
    CertificateSource,
    "the origin of a certificate",
    {
        Acme => "acme",
        Uploaded => "uploaded",
    }
);

named!(
    /// The state of the certificate of a domain.
    CertificateState,
    "the state of a certificate",
    {
        // It has not been issued yet.
        Pending => "pending",
        Valid => "valid",
        // It is not served any more.
        Expired => "expired",
        // None could be issued so far.
        Failed => "failed",
    }
);

/// The certificate of one domain, or the request for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The domain.
    pub domain: Hostname,
    /// The application that has the domain; `None` for the domain of the API.
    pub application_id: Option<ApplicationId>,
    /// The origin.
    pub source: CertificateSource,
    /// The certificate and its key; `None` until one was issued.
    pub issued: Option<IssuedCertificate>,
    /// The number of failed attempts since the last one that succeeded.
    pub failures: u32,
    /// The reason of the last failure.
    pub last_error: Option<String>,
    /// The time of the next attempt to issue or to renew it; `None` for one that was uploaded.
    pub next_attempt_at: Option<Timestamp>,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// A certificate that was issued, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The chain as PEM, the certificate itself first.
    pub chain: String,
    /// The private key as PEM; see [`Certificate::associated_data`].
    pub key: Sealed,
    /// The time from which it is valid.
    pub not_before: Timestamp,
    /// The time at which it expires.
    pub not_after: Timestamp,
}

impl Certificate {
    /// The longest time before the expiry at which users are warned.
    pub const WARNED_BEFORE: TimeDelta = TimeDelta::days(14);

    /// The shortest and the longest wait after a failure. Public servers limit the failures of an hour.
    pub const RETRIES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(12 * 60 * 60));

    /// The most failures that a lookup counts as: its next one is 16 minutes later at most, because it costs little, and
    /// people wait for it after they have changed a record.
    pub const MOST_OF_LOOKUPS: u32 = 3;

    /// Returns the associated data (AEAD) of the private key of a domain's certificate.
    #[must_use]
    pub fn associated_data(domain: &Hostname) -> String {
        format!("certificates.private_key:{domain}")
    }

    /// Returns its state at `now`.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> CertificateState {
        match &self.issued {
            Some(issued) if issued.not_after > now => CertificateState::Valid,
            Some(_) => CertificateState::Expired,
            None if self.last_error.is_some() => CertificateState::Failed,
            None => CertificateState::Pending,
        }
    }

    /// Returns the time at which a certificate is renewed: after two thirds of its life, and up to a twentieth of it
    /// later, by a random number, so that those of one day are not all renewed at once.
    #[must_use]
    pub fn renewal_at(not_before: Timestamp, not_after: Timestamp, random: u32) -> Timestamp {
        let life = not_after - not_before;
        let jitter = (life / 20).num_milliseconds().saturating_mul(i64::from(random)) / i64::from(u32::MAX);
        not_before + life * 2 / 3 + TimeDelta::milliseconds(jitter)
    }

    /// Returns the time from which users are warned that a certificate expires: two weeks before, or in a short life when a
    /// sixth of it is left. A renewal is due well before.
    #[must_use]
    pub fn warning_at(not_before: Timestamp, not_after: Timestamp) -> Timestamp {
        not_after - ((not_after - not_before) / 6).min(Self::WARNED_BEFORE)
    }

    /// Returns the wait after so many failures in a row. The server may ask for a longer one.
    #[must_use]
    pub fn retry_after(failures: u32, requested: Option<Duration>) -> Duration {
        let (shortest, longest) = Self::RETRIES;
        let wait = shortest.saturating_mul(4_u32.saturating_pow(failures.saturating_sub(1))).min(longest);
        wait.max(requested.unwrap_or_default())
    }
}

/// The answer to a challenge by which an ACME server checks that a domain leads here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The token, which is in the path of the request with HTTP-01.
    pub token: String,
    /// The proof, which is the body of the response with HTTP-01.
    pub key_authorization: String,
    /// The domain at which a TLS handshake contains the proof (TLS-ALPN-01, RFC 8737); `None` with HTTP-01 (RFC 8555).
    pub tls_domain: Option<Hostname>,
}

/// A certificate as an ACME server issued it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCertificate {
    /// The chain as PEM, the certificate itself first.
    pub chain: String,
    /// The private key as PEM.
    pub key: Secret<String>,
    /// The time from which it is valid.
    pub not_before: Timestamp,
    /// The time at which it expires.
    pub not_after: Timestamp,
}

/// The reason why a certificate was not issued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IssueError {
    /// A sentence for the owner of the domain.
    pub message: String,
    /// The wait that the server asks for.
    pub retry_after: Option<Duration>,
    /// The number of failures that the server counted, at least one.
    pub failures: u32,
}

impl IssueError {
    /// Returns an error without a requested wait.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry_after: None, failures: 1 }
    }

    /// Returns both errors as one, that of HTTP-01 first.
    #[must_use]
    pub fn and(self, over_tls: Self) -> Self {
        Self {
            message: format!("{}; and by TLS-ALPN-01: {}", self.message, over_tls.message),
            retry_after: self.retry_after.max(over_tls.retry_after),
            failures: self.failures.saturating_add(over_tls.failures),
        }
    }
}

/// A certificate as a front proxy gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedCertificate {
    /// The domain.
    pub domain: Hostname,
    /// The chain as PEM.
    pub chain: String,
    /// The private key as PEM.
    pub key: Secret<String>,
    /// The time at which it expires.
    pub not_after: Timestamp,
    /// The `max-age` of its HSTS policy; `None` without one.
    pub hsts: Option<HstsMaxAge>,
}

/// The difference between the certificates and the domains that need one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateChanges {
    /// The domains of applications without a certificate. Names under `localhost` need none.
    pub missing: Vec<(Hostname, ApplicationId)>,
    /// The domain of the API has none, and needs one.
    pub is_api_missing: bool,
    /// There is a certificate whose domain is not in use any more.
    pub has_unused: bool,
}

/// A certificate that expires soon, with the data of its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiringCertificate {
    /// The domain.
    pub domain: Hostname,
    /// The organization of the application.
    pub scope: Scope,
    /// The application that has the domain.
    pub application_id: ApplicationId,
    /// The name of the application.
    pub application: String,
    /// The environment of the application.
    pub environment: String,
    /// The origin.
    pub source: CertificateSource,
    /// The time from which it is valid.
    pub not_before: Timestamp,
    /// The time at which it expires.
    pub not_after: Timestamp,
    /// The reason of the last failure.
    pub last_error: Option<String>,
}

/// Returns the associated data (AEAD) of the credentials of the account at a directory.
#[must_use]
pub fn account_associated_data(directory: &str) -> String {
    format!("acme_accounts.credentials:{directory}")
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn at(days: i64) -> Timestamp {
        DateTime::UNIX_EPOCH + TimeDelta::days(days)
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_life() {
        assert_eq!(Certificate::renewal_at(at(0), at(90), 0), at(60));
        let latest = Certificate::renewal_at(at(0), at(90), u32::MAX);
        assert_eq!(latest, at(60) + TimeDelta::days(90) / 20);
    }

    #[test]
    fn users_are_warned_two_weeks_or_a_sixth_of_the_life_before() {
        assert_eq!(Certificate::warning_at(at(0), at(365)), at(351));
        assert_eq!(Certificate::warning_at(at(0), at(90)), at(76));
        assert_eq!(Certificate::warning_at(at(0), at(6)), at(5));
        assert!(Certificate::warning_at(at(0), at(6)) > Certificate::renewal_at(at(0), at(6), u32::MAX));
    }

    #[test]
    fn failures_are_retried_ever_later_within_limits() {
        let minutes = |failures| Certificate::retry_after(failures, None).as_secs() / 60;
        assert_eq!([1, 2, 3, 4, 5, 6].map(minutes), [1, 4, 16, 64, 256, 720]);
        assert_eq!(minutes(u32::MAX), 720);
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(Certificate::retry_after(1, Some(day)), day);
    }

    #[test]
    fn the_state_follows_the_expiry_and_the_last_error() {
        let issued = IssuedCertificate {
            chain: String::new(),
            key: Sealed(String::new()),
            not_before: at(0),
            not_after: at(90),
        };
        let pending = Certificate {
            domain: "shop.example".parse().unwrap(),
            application_id: None,
            source: CertificateSource::Acme,
            issued: None,
            failures: 0,
            last_error: None,
            next_attempt_at: None,
            updated_at: at(0),
        };
        let failed = Certificate { last_error: Some("no address".to_owned()), ..pending.clone() };
        let valid = Certificate { issued: Some(issued), ..failed.clone() };
        assert_eq!(pending.state(at(1)), CertificateState::Pending);
        assert_eq!(failed.state(at(1)), CertificateState::Failed);
        assert_eq!(valid.state(at(89)), CertificateState::Valid);
        assert_eq!(valid.state(at(90)), CertificateState::Expired);
    }
}
