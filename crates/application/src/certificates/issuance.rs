//! Issues and renews certificates, by the leader.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{SecondsFormat, TimeDelta};
use launchway_domain::{
    applications::Hostname,
    certificates::{
        Certificate, CertificateIssuer, CertificateRepository, CertificateSource, Challenge,
        ChallengeResponder, DomainResolver, ExpiringCertificate, IssueError, IssuedCertificate,
        NewCertificate, Write, account_associated_data,
    },
    logs::{Level, LogSink, NewLine},
    notifications::{self, Event, EventKind, Fact},
    secret::{Secret, SecretBox},
    store::{self, StoreError},
};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use super::renewals::random;
use crate::{Error, ServiceContext, routes::Routes};

/// The interval at which domains without a certificate, and due renewals, are looked for.
const POLL: Duration = Duration::from_secs(5);
/// The most certificates that are issued at once.
const MOST: usize = 4;
/// The timeout of one certificate.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// The time after which a challenge that nobody removed is out of date.
const CHALLENGE_LIFE: TimeDelta = TimeDelta::hours(1);

/// The ports of a certificate manager.
pub struct CertificateManagerPorts {
    /// Reads certificates.
    pub certificates: Arc<dyn CertificateRepository>,
    /// Issues certificates; `None` if they are not issued automatically.
    pub issuer: Option<Arc<dyn CertificateIssuer>>,
    /// Checks domains before an order; `None` if they are not checked.
    pub dns: Option<DnsCheck>,
    /// Encrypts private keys and accounts.
    pub secrets: Arc<dyn SecretBox>,
    /// Stores log lines.
    pub logs: Arc<dyn LogSink>,
    /// Publishes certificates and challenges.
    pub routes: Arc<Routes>,
}

/// The check of a domain before an order, which costs nothing at the ACME server.
pub struct DnsCheck {
    /// Looks up the domain.
    pub resolver: Arc<dyn DomainResolver>,
    /// The public addresses of this installation, of which the domain must have one; empty if any will do.
    pub addresses: Vec<IpAddr>,
}

impl DnsCheck {
    /// # Errors
    /// The reason for which an order would fail.
    async fn check(&self, domain: &Hostname) -> Result<(), String> {
        let found = self.resolver.addresses(domain).await;
        let found = found.map_err(|reason| format!("{domain} has no address in DNS: {reason}"))?;
        if found.is_empty() {
            return Err(format!("{domain} has no address in DNS"));
        }
        if self.addresses.is_empty() || found.iter().any(|address| self.addresses.contains(address)) {
            return Ok(());
        }
        let (found, own) = (listed(&found, " and "), listed(&self.addresses, " or "));
        Err(format!("{domain} points to {found}, not to {own}"))
    }
}

fn listed(addresses: &[IpAddr], last: &str) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(last)
}

/// Requests, issues and renews certificates while this server leads.
pub struct CertificateManager {
    pub(super) ports: CertificateManagerPorts,
    /// The domain of the API, if it needs a certificate.
    api_domain: Option<Hostname>,
    pub(super) context: ServiceContext,
}

impl CertificateManager {
    /// Returns a manager over `ports`, which also gets a certificate for `api_domain`.
    #[must_use]
    pub fn new(
        ports: CertificateManagerPorts,
        api_domain: Option<Hostname>,
        context: ServiceContext,
    ) -> Self {
        Self { ports, api_domain, context }
    }

    /// Works until `stop` becomes true. A certificate that is being issued then is issued again later.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let work = async {
            loop {
                self.context.replica.wait_for_leadership().await;
                if let Err(error) = Arc::clone(&self).look().await {
                    tracing::warn!(%error, "certificate check failed");
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Requests missing certificates, deletes unused ones, and issues those that are due.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn look(self: Arc<Self>) -> Result<(), Error> {
        let changes = self.ports.certificates.certificate_changes(self.api_domain.clone()).await?;
        if changes.has_unused {
            self.commit(vec![Write::DeleteUnused { api_domain: self.api_domain.clone() }.into()]).await?;
            self.publish().await;
        }
        self.warn().await?;
        let Some(issuer) = &self.ports.issuer else { return Ok(()) };
        let at = self.context.clock.now();
        let of_the_api =
            self.api_domain.clone().filter(|_| changes.is_api_missing).map(|domain| (domain, None));
        let missing = changes.missing.into_iter().map(|(domain, id)| (domain, Some(id)));
        for (domain, application_id) in missing.chain(of_the_api) {
            self.commit(vec![Write::Request { domain, application_id, at }.into()]).await?;
        }
        self.plan_renewals(issuer, at).await?;
        let due = self.ports.certificates.due_certificates(at).await?;
        if due.is_empty() {
            return Ok(());
        }
        let account = match self.account().await? {
            Ok(account) => Arc::new(account),
            Err(error) => {
                for certificate in &due {
                    self.fail(certificate, &error).await?;
                }
                return Ok(());
            }
        };
        let (permits, mut tasks) = (Arc::new(Semaphore::new(MOST)), JoinSet::new());
        for certificate in due {
            let (this, account, permits) = (Arc::clone(&self), Arc::clone(&account), Arc::clone(&permits));
            tasks.spawn(async move {
                let Ok(_permit) = permits.acquire_owned().await else { return };
                if let Err(error) = this.issue(&certificate, &account).await {
                    tracing::warn!(domain = %certificate.domain, %error, "certificate could not be recorded");
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    /// Announces the certificates that expire soon, each once. One that is renewed in time is not among them.
    async fn warn(&self) -> Result<(), Error> {
        let now = self.context.clock.now();
        for expiring in
            self.ports.certificates.expiring_certificates(now + Certificate::WARNED_BEFORE).await?
        {
            let ExpiringCertificate { domain, not_before, not_after, .. } = &expiring;
            if Certificate::warning_at(*not_before, *not_after) > now {
                continue;
            }
            tracing::warn!(%domain, %not_after, "certificate expires soon");
            let warn = Write::Warn { domain: domain.clone(), not_after: *not_after };
            self.commit(vec![warn.into(), notifications::Write::Announce(self.event(expiring)).into()])
                .await?;
        }
        Ok(())
    }

    fn event(&self, expiring: ExpiringCertificate) -> Event {
        let reason = match (expiring.source, expiring.last_error) {
            (CertificateSource::Uploaded, _) => "it was uploaded, and is not renewed".to_owned(),
            (CertificateSource::Acme, error) => error.unwrap_or_default(),
        };
        self.context
            .event(expiring.scope, EventKind::CertificateExpiring)
            .with(Fact::Application, expiring.application)
            .with(Fact::ApplicationId, expiring.application_id)
            .with(Fact::Environment, expiring.environment)
            .with(Fact::Host, expiring.domain)
            .with(Fact::NotAfter, expiring.not_after.to_rfc3339_opts(SecondsFormat::Secs, true))
            .with(Fact::Reason, reason)
    }

    /// Returns the credentials of the installation's account, which is registered at first use.
    pub(super) async fn account(&self) -> Result<Result<Secret<String>, IssueError>, Error> {
        let Some(issuer) = &self.ports.issuer else { return Ok(Err(IssueError::new("ACME is off"))) };
        let directory = issuer.directory();
        let place = account_associated_data(&directory);
        loop {
            if let Some(sealed) = self.ports.certificates.acme_account(&directory).await? {
                let opened = self.ports.secrets.open(&place, &sealed)?;
                let text = String::from_utf8(opened.expose().clone());
                return Ok(Ok(Secret::new(text.map_err(|error| Error::Internal(error.into()))?)));
            }
            let credentials = match issuer.register().await {
                Ok(credentials) => credentials,
                Err(error) => return Ok(Err(error)),
            };
            let credentials = self.ports.secrets.seal(&place, credentials.expose().as_bytes())?;
            let at = self.context.clock.now();
            tracing::info!(directory, "ACME account registered");
            // Read again: another replica may have been faster, and that one counts.
            self.commit(vec![Write::Register { directory: directory.clone(), credentials, at }.into()])
                .await?;
        }
    }

    async fn issue(&self, certificate: &Certificate, account: &Secret<String>) -> Result<(), Error> {
        let Some(issuer) = &self.ports.issuer else { return Ok(()) };
        if let Some(dns) = &self.ports.dns
            && let Err(reason) = dns.check(&certificate.domain).await
        {
            return self.fail_lookup(certificate, reason).await;
        }
        let responder = Responder { manager: self, tokens: Mutex::default() };
        let replaced = certificate.issued.as_ref().map(|issued| issued.chain.as_str());
        let issue = issuer.issue(account, &certificate.domain, replaced, &responder);
        let issued = match timeout(LIMIT, issue).await {
            Ok(issued) => issued,
            Err(_elapsed) => Err(IssueError::new("the ACME server took too long")),
        };
        let tokens = responder.tokens.into_inner().unwrap_or_else(PoisonError::into_inner);
        let older_than = self.context.clock.now() - CHALLENGE_LIFE;
        self.commit(vec![Write::RemoveChallenges { tokens, older_than }.into()]).await?;
        match issued {
            Ok(new) => self.store(certificate, new).await,
            Err(error) => self.fail(certificate, &error).await,
        }
    }

    async fn store(&self, certificate: &Certificate, new: NewCertificate) -> Result<(), Error> {
        let (domain, at) = (certificate.domain.clone(), self.context.clock.now());
        let place = Certificate::associated_data(&domain);
        let issued = IssuedCertificate {
            chain: new.chain,
            key: self.ports.secrets.seal(&place, new.key.expose().as_bytes())?,
            not_before: new.not_before,
            not_after: new.not_after,
        };
        let renew_at = Certificate::renewal_at(new.not_before, new.not_after, random(&self.context));
        let write = Write::Issue { domain: domain.clone(), issued, renew_at, at };
        match self.context.commit_as_leader(vec![write.into()]).await {
            Ok(()) => {}
            // The domain was removed, or a certificate was uploaded in the meantime.
            Err(StoreError::Stale) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        tracing::info!(%domain, not_after = %new.not_after, "certificate issued");
        self.publish().await;
        let text = format!(
            "A certificate for {domain} was issued; it expires on {}",
            new.not_after.format("%Y-%m-%d")
        );
        self.note(certificate, Level::Info, text).await;
        Ok(())
    }

    async fn fail(&self, certificate: &Certificate, error: &IssueError) -> Result<(), Error> {
        let failures = certificate.failures.saturating_add(error.failures);
        let wait = Certificate::retry_after(failures, error.retry_after);
        if self.record_failure(certificate, &error.message, failures, wait).await? {
            self.note_failure(certificate, &error.message).await;
        }
        Ok(())
    }

    /// Records that a domain does not point here. The log gets a line only when the reason changes.
    async fn fail_lookup(&self, certificate: &Certificate, reason: String) -> Result<(), Error> {
        let counted = certificate.failures.saturating_add(1).min(Certificate::MOST_OF_LOOKUPS);
        let failures = certificate.failures.max(counted);
        let wait = Certificate::retry_after(counted, None);
        let is_known = certificate.last_error.as_ref() == Some(&reason);
        if self.record_failure(certificate, &reason, failures, wait).await? && !is_known {
            self.note_failure(certificate, &reason).await;
        }
        Ok(())
    }

    /// Returns false if the domain was removed, or a certificate was uploaded in the meantime.
    async fn record_failure(
        &self,
        certificate: &Certificate,
        reason: &str,
        failures: u32,
        wait: Duration,
    ) -> Result<bool, Error> {
        let (domain, at) = (certificate.domain.clone(), self.context.clock.now());
        let next_attempt_at = at + TimeDelta::from_std(wait).unwrap_or(TimeDelta::days(1));
        tracing::warn!(%domain, reason, %next_attempt_at, "certificate could not be issued");
        let write = Write::Fail { domain, reason: reason.to_owned(), failures, next_attempt_at, at };
        match self.context.commit_as_leader(vec![write.into()]).await {
            Ok(()) => Ok(true),
            Err(StoreError::Stale) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn note_failure(&self, certificate: &Certificate, reason: &str) {
        let domain = &certificate.domain;
        let expiry = match &certificate.issued {
            Some(issued) => format!(" The present one expires on {}.", issued.not_after.format("%Y-%m-%d")),
            None => String::new(),
        };
        let text = format!("No certificate could be issued for {domain}: {reason}.{expiry}");
        self.note(certificate, Level::Warn, text).await;
    }

    /// Writes a line to the log of the application that has the domain.
    async fn note(&self, certificate: &Certificate, level: Level, text: String) {
        let Some(application_id) = certificate.application_id else { return };
        let noted = async {
            let Some(deployment_id) = self.ports.certificates.live_deployment(application_id).await? else {
                return Ok(());
            };
            let at = self.context.clock.now();
            self.ports.logs.append(vec![NewLine { application_id, deployment_id, level, text, at }]).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, application.id = %application_id, "log line could not be stored");
        }
    }

    /// The change is durable already: if the front proxy cannot be updated now, it is later.
    async fn publish(&self) {
        if let Err(error) = self.ports.routes.publish_certificates().await {
            tracing::warn!(%error, "certificates could not be published; it is retried later");
        }
    }

    pub(super) async fn commit(&self, writes: Vec<store::Write>) -> Result<(), Error> {
        match self.context.commit_as_leader(writes).await {
            // Another replica leads, or the domain was removed: the next look finds out.
            Ok(()) | Err(StoreError::Stale) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Publishes the challenges of one certificate, and remembers them.
struct Responder<'a> {
    manager: &'a CertificateManager,
    tokens: Mutex<Vec<String>>,
}

#[async_trait]
impl ChallengeResponder for Responder<'_> {
    async fn publish(&self, challenge: Challenge) -> Result<(), IssueError> {
        let manager = self.manager;
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).push(challenge.token.clone());
        let write = Write::AddChallenge { challenge, at: manager.context.clock.now() };
        let committed = manager.context.commit_as_leader(vec![write.into()]).await;
        committed.map_err(|error| IssueError::new(format!("the challenge cannot be stored: {error}")))?;
        let published = manager.ports.routes.publish_certificates().await;
        published.map_err(|error| IssueError::new(format!("the challenge cannot be published: {error}")))
    }
}
