//! Issues and renews certificates, by the leader.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{SecondsFormat, TimeDelta};
use launchway_domain::{
    applications::Hostname,
    certificates::{
        Certificate, CertificateIssuer, CertificateRepository, CertificateSource, Challenge,
        ChallengeResponder, ExpiringCertificate, IssueError, IssuedCertificate, NewCertificate, Write,
        account_associated_data,
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
    /// Encrypts private keys and accounts.
    pub secrets: Arc<dyn SecretBox>,
    /// Stores log lines.
    pub logs: Arc<dyn LogSink>,
    /// Publishes certificates and challenges.
    pub routes: Arc<Routes>,
}

/// Requests, issues and renews certificates while this server leads.
pub struct CertificateManager {
    ports: CertificateManagerPorts,
    /// The domain of the API, if it needs a certificate.
    api_domain: Option<Hostname>,
    context: ServiceContext,
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
                self.context.replica.lead().await;
                if let Err(error) = Arc::clone(&self).look().await {
                    tracing::warn!(%error, "certificates could not be looked after");
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
        if self.ports.issuer.is_none() {
            return Ok(());
        }
        let at = self.context.clock.now();
        let of_the_api =
            self.api_domain.clone().filter(|_| changes.is_api_missing).map(|domain| (domain, None));
        let missing = changes.missing.into_iter().map(|(domain, id)| (domain, Some(id)));
        for (domain, application_id) in missing.chain(of_the_api) {
            self.commit(vec![Write::Request { domain, application_id, at }.into()]).await?;
        }
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
    async fn account(&self) -> Result<Result<Secret<String>, IssueError>, Error> {
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
            tracing::info!(directory, "account at the ACME server registered");
            // Read again: another replica may have been faster, and that one counts.
            self.commit(vec![Write::Register { directory: directory.clone(), credentials, at }.into()])
                .await?;
        }
    }

    async fn issue(&self, certificate: &Certificate, account: &Secret<String>) -> Result<(), Error> {
        let Some(issuer) = &self.ports.issuer else { return Ok(()) };
        let responder = Responder { manager: self, tokens: Mutex::default() };
        let issued = match timeout(LIMIT, issuer.issue(account, &certificate.domain, &responder)).await {
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
        let bits = self.context.entropy.bits_256();
        let random = u32::from_le_bytes([bits[0], bits[1], bits[2], bits[3]]);
        let renew_at = Certificate::renewal_at(new.not_before, new.not_after, random);
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
        let (domain, at) = (certificate.domain.clone(), self.context.clock.now());
        let failures = certificate.failures.saturating_add(error.failures);
        let wait = Certificate::retry_after(failures, error.retry_after);
        let next_attempt_at = at + TimeDelta::from_std(wait).unwrap_or(TimeDelta::days(1));
        tracing::warn!(%domain, %error, %next_attempt_at, "certificate could not be issued");
        let reason = error.message.clone();
        let write =
            Write::Fail { domain: domain.clone(), reason: reason.clone(), failures, next_attempt_at, at };
        match self.context.commit_as_leader(vec![write.into()]).await {
            Ok(()) => {}
            Err(StoreError::Stale) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let expiry = match &certificate.issued {
            Some(issued) => format!(" The present one expires on {}.", issued.not_after.format("%Y-%m-%d")),
            None => String::new(),
        };
        let text = format!("No certificate could be issued for {domain}: {reason}.{expiry}");
        self.note(certificate, Level::Warn, text).await;
        Ok(())
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

    async fn commit(&self, writes: Vec<store::Write>) -> Result<(), Error> {
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
