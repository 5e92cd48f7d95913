//! Certificates of domains: issued by an ACME server, or uploaded.

mod issuance;
mod publisher;
mod renewals;

use std::sync::Arc;

use launchway_domain::{
    applications::{ApplicationRepository, Hostname},
    audit::{Action as Did, Event, Resource as Audited},
    auth::{Action, Actor, Permission, Resource},
    certificates::{
        Certificate, CertificateParser, CertificateRepository, CertificateState, HstsMaxAge, HstsPolicy,
        IssuedCertificate, Write,
    },
    ids::ApplicationId,
    organizations::Scope,
    secret::{Secret, SecretBox},
};

pub use self::{
    issuance::{CertificateManager, CertificateManagerPorts, DnsCheck},
    publisher::CertificatePublisher,
};
use crate::{Error, ServiceContext, routes::Routes};

const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);
const APPLICATION: Error = Error::NotFound("the application");
const DOMAIN: Error = Error::NotFound("the domain");
const CERTIFICATE: Error = Error::NotFound("the certificate");
const HSTS: Error = Error::NotFound("the HSTS policy");

/// The ports of certificates.
pub struct CertificatePorts {
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads certificates.
    pub certificates: Arc<dyn CertificateRepository>,
    /// Checks uploaded certificates.
    pub parser: Arc<dyn CertificateParser>,
    /// Encrypts private keys.
    pub secrets: Arc<dyn SecretBox>,
    /// Publishes certificates.
    pub routes: Arc<Routes>,
}

/// Reads, uploads and deletes certificates.
pub struct Certificates {
    ports: CertificatePorts,
    context: ServiceContext,
}

impl Certificates {
    /// Returns the use cases over `ports`.
    #[must_use]
    pub fn new(ports: CertificatePorts, context: ServiceContext) -> Self {
        Self { ports, context }
    }

    /// Returns the certificates of applications of the actor's organization, each with its state, sorted by domain.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read`.
    pub async fn of_applications(
        &self,
        actor: &Actor,
        applications: &[ApplicationId],
    ) -> Result<Vec<(Certificate, CertificateState)>, Error> {
        let scope = actor.require(READ)?;
        let now = self.context.clock.now();
        let found = self.ports.certificates.certificates_of(scope, applications).await?;
        Ok(found.into_iter().map(|one| (one.state(now), one)).map(|(state, one)| (one, state)).collect())
    }

    /// Stores a certificate for a domain of an application of the actor's organization, in place of any other, and serves
    /// it at once. It is not renewed.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id or it does not have the domain,
    /// [`Error::Invalid`] when the certificate or its key cannot be used for it, [`Error::Forbidden`] without the
    /// permission `deploy:update`.
    pub async fn upload(
        &self,
        actor: &Actor,
        id: ApplicationId,
        domain: Hostname,
        chain: &str,
        key: &Secret<String>,
    ) -> Result<(), Error> {
        let scope = actor.require(UPDATE)?;
        self.find_domain(scope, id, &domain).await?;
        let at = self.context.clock.now();
        let new = self.ports.parser.parse(chain, key, &domain, at).map_err(Error::Invalid)?;
        let place = Certificate::associated_data(&domain);
        let issued = IssuedCertificate {
            chain: new.chain,
            key: self.ports.secrets.seal(&place, new.key.expose().as_bytes())?,
            not_before: new.not_before,
            not_after: new.not_after,
        };
        let event = event(id, &domain, "uploaded a certificate for").with_changed_secret("private_key");
        let writes = vec![
            Write::Upload { scope, application_id: id, domain, issued, at }.into(),
            self.context.record(actor.author(), event),
        ];
        self.context.commit(writes, DOMAIN).await?;
        self.publish().await;
        Ok(())
    }

    /// Deletes the certificate of a domain of an application of the actor's organization. Where certificates are issued
    /// automatically, another one is requested.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id or its domain has none, [`Error::Forbidden`]
    /// without the permission `deploy:update`.
    pub async fn delete(&self, actor: &Actor, id: ApplicationId, domain: Hostname) -> Result<(), Error> {
        let scope = actor.require(UPDATE)?;
        self.find_domain(scope, id, &domain).await?;
        let event = event(id, &domain, "deleted the certificate of");
        let writes = vec![
            Write::Delete { scope, application_id: id, domain }.into(),
            self.context.record(actor.author(), event),
        ];
        self.context.commit(writes, CERTIFICATE).await?;
        self.publish().await;
        Ok(())
    }

    /// Returns the HSTS policies of applications of the actor's organization, sorted by domain.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read`.
    pub async fn hsts_of(
        &self,
        actor: &Actor,
        applications: &[ApplicationId],
    ) -> Result<Vec<HstsPolicy>, Error> {
        let scope = actor.require(READ)?;
        Ok(self.ports.certificates.hsts_of(scope, applications).await?)
    }

    /// Sets the HSTS policy of a domain of an application of the actor's organization. Responses have the header while
    /// the certificate of the domain is valid.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id or it does not have the domain,
    /// [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn set_hsts(
        &self,
        actor: &Actor,
        id: ApplicationId,
        domain: Hostname,
        max_age: HstsMaxAge,
    ) -> Result<(), Error> {
        let event = event(id, &domain, "set the HSTS policy of").with("max_age", max_age.get());
        self.change_hsts(actor, (id, domain), Some(max_age), (event, DOMAIN)).await
    }

    /// Removes the HSTS policy of a domain of an application of the actor's organization.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id or its domain has no policy,
    /// [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn remove_hsts(&self, actor: &Actor, id: ApplicationId, domain: Hostname) -> Result<(), Error> {
        let event = event(id, &domain, "removed the HSTS policy of");
        self.change_hsts(actor, (id, domain), None, (event, HSTS)).await
    }

    async fn change_hsts(
        &self,
        actor: &Actor,
        (id, domain): (ApplicationId, Hostname),
        max_age: Option<HstsMaxAge>,
        (event, stale): (Event, Error),
    ) -> Result<(), Error> {
        let scope = actor.require(UPDATE)?;
        self.find_domain(scope, id, &domain).await?;
        let writes = vec![
            Write::SetHsts { scope, application_id: id, domain, max_age }.into(),
            self.context.record(actor.author(), event),
        ];
        self.context.commit(writes, stale).await?;
        self.publish().await;
        Ok(())
    }

    async fn find_domain(&self, scope: Scope, id: ApplicationId, domain: &Hostname) -> Result<(), Error> {
        let application = self.ports.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        match application.hosts().any(|host| host == domain.as_str()) {
            true => Ok(()),
            false => Err(DOMAIN),
        }
    }

    /// The change is durable already: if the front proxy cannot be updated now, it is later.
    async fn publish(&self) {
        if let Err(error) = self.ports.routes.publish_certificates().await {
            tracing::warn!(%error, "certificates could not be published; it is retried later");
        }
    }
}

fn event(id: ApplicationId, domain: &Hostname, what: &str) -> Event {
    Event::new(Did::Update, Audited::Application, id, format!("{what} {domain}")).with("domain", domain)
}
