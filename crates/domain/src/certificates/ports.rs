//! The ports of certificates.

use std::net::IpAddr;

use async_trait::async_trait;

use super::{
    Certificate, CertificateChanges, Challenge, ExpiringCertificate, HstsPolicy, IssueError, NewCertificate,
    RenewalWindow, ServedCertificate,
};
use crate::{
    applications::Hostname,
    clock::Timestamp,
    deployments::StepError,
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    secret::{Sealed, Secret},
    store_error::StoreError,
};

/// Publishes the answers to challenges, so that an ACME server finds them.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ChallengeResponder: Send + Sync {
    /// Returns when every front proxy has the answer.
    ///
    /// # Errors
    /// [`IssueError`] if one does not get it.
    async fn publish(&self, challenge: Challenge) -> Result<(), IssueError>;
}

/// Issues certificates.
#[async_trait]
pub trait CertificateIssuer: Send + Sync {
    /// Returns the URL of its directory, which identifies it.
    fn directory(&self) -> String;

    /// Registers an account, and returns its credentials.
    ///
    /// # Errors
    /// [`IssueError`] if the server is unreachable, or refuses.
    async fn register(&self) -> Result<Secret<String>, IssueError>;

    /// Returns the window in which the server suggests to renew a certificate, given as its chain; `None` if it makes no
    /// suggestions.
    ///
    /// # Errors
    /// [`IssueError`] if the server is unreachable, or refuses.
    async fn renewal_window(
        &self,
        account: &Secret<String>,
        chain: &str,
    ) -> Result<Option<RenewalWindow>, IssueError>;

    /// Issues a certificate for a domain, in place of the one with the chain `replaced`. Ends within a few minutes.
    ///
    /// # Errors
    /// [`IssueError`] if the server is unreachable, or refuses.
    async fn issue(
        &self,
        account: &Secret<String>,
        domain: &Hostname,
        replaced: Option<&str>,
        responder: &dyn ChallengeResponder,
    ) -> Result<NewCertificate, IssueError>;
}

/// Looks up the addresses of domains, in the same way as other programs of this machine.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DomainResolver: Send + Sync {
    /// Returns the addresses of a domain, sorted. Ends within seconds.
    ///
    /// # Errors
    /// The reason, if there is none.
    async fn addresses(&self, domain: &Hostname) -> Result<Vec<IpAddr>, String>;
}

/// Checks certificates that users upload.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait CertificateParser: Send + Sync {
    /// Reads a chain and its private key, both as PEM, and returns them in the form that is stored.
    ///
    /// # Errors
    /// A sentence if one cannot be read, the key is not that of the certificate, or the certificate is not valid for
    /// the domain at `now`.
    fn parse(
        &self,
        chain: &str,
        key: &Secret<String>,
        domain: &Hostname,
        now: Timestamp,
    ) -> Result<NewCertificate, String>;
}

/// The front proxy of this server, which serves certificates and answers challenges.
///
/// Promises: a change is effective once the call has returned, and closes no connection; certificates survive a restart
/// of the proxy.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CertificateServer: Send + Sync {
    /// Returns the revision of its certificates; `None` if it does not serve TLS.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if it is unreachable.
    async fn revision(&self) -> Result<Option<String>, StepError>;

    /// Replaces all certificates.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if it is unreachable.
    async fn set_certificates(
        &self,
        revision: &str,
        certificates: Vec<ServedCertificate>,
    ) -> Result<(), StepError>;

    /// Replaces all answers to challenges.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if it is unreachable.
    async fn set_challenges(&self, challenges: Vec<Challenge>) -> Result<(), StepError>;
}

/// Reads certificates.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CertificateRepository: Send + Sync {
    /// Returns the certificates of these applications of an organization, sorted by domain.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn certificates_of(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<Certificate>, StoreError>;

    /// Returns every certificate of the installation, sorted by domain.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn certificates(&self) -> Result<Vec<Certificate>, StoreError>;

    /// Returns the certificates that are due to be issued or renewed, those first that are due for longest.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn due_certificates(&self, now: Timestamp) -> Result<Vec<Certificate>, StoreError>;

    /// Returns up to `most` certificates of an ACME server whose renewal was never asked for or is to be asked for again,
    /// those that expire first. One that is due, or whose last attempt failed, is not among them.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn unplanned_renewals(&self, now: Timestamp, most: u32) -> Result<Vec<Certificate>, StoreError>;

    /// Returns the certificates of applications that expire before `time` and that nobody was warned of, those first
    /// that expire first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn expiring_certificates(&self, time: Timestamp) -> Result<Vec<ExpiringCertificate>, StoreError>;

    /// Compares the certificates with the domains of all applications and that of the API.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn certificate_changes(
        &self,
        api_domain: Option<Hostname>,
    ) -> Result<CertificateChanges, StoreError>;

    /// Returns the live deployment of an application, whose log users read.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn live_deployment(&self, application: ApplicationId) -> Result<Option<DeploymentId>, StoreError>;

    /// Returns the HSTS policies of these applications of an organization, sorted by domain.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn hsts_of(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<HstsPolicy>, StoreError>;

    /// Returns every HSTS policy of the installation, sorted by domain.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn hsts(&self) -> Result<Vec<HstsPolicy>, StoreError>;

    /// Returns a text that changes with every change of a certificate that was issued, and of an HSTS policy.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn certificates_revision(&self) -> Result<String, StoreError>;

    /// Returns the challenges that are to be answered.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn challenges(&self) -> Result<Vec<Challenge>, StoreError>;

    /// Returns the sealed credentials of the account at a directory; see
    /// [`account_associated_data`](super::account_associated_data).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn acme_account(&self, directory: &str) -> Result<Option<Sealed>, StoreError>;
}
