//! Publishes certificates and challenges to the front proxy of this server.

use std::sync::Arc;

use launchway_domain::{
    certificates::{Certificate, CertificateRepository, CertificateServer, ServedCertificate},
    deployments::StepError,
    secret::{Secret, SecretBox},
    store::StoreError,
};

/// Publishes certificates and challenges to the front proxy of this server.
pub struct CertificatePublisher {
    certificates: Arc<dyn CertificateRepository>,
    secrets: Arc<dyn SecretBox>,
    server: Arc<dyn CertificateServer>,
}

impl CertificatePublisher {
    /// Returns the publisher of the stored certificates to `server`.
    #[must_use]
    pub fn new(
        certificates: Arc<dyn CertificateRepository>,
        secrets: Arc<dyn SecretBox>,
        server: Arc<dyn CertificateServer>,
    ) -> Self {
        Self { certificates, secrets, server }
    }

    /// Sends the challenges, and all certificates if the front proxy has others. Does nothing if it serves no TLS.
    pub(crate) async fn publish(&self) -> Result<(), StepError> {
        let Some(published) = self.server.revision().await? else { return Ok(()) };
        self.server.set_challenges(self.certificates.challenges().await.map_err(unreadable)?).await?;
        // Before the certificates: a change in between is published twice, and not missed.
        let revision = self.certificates.certificates_revision().await.map_err(unreadable)?;
        if published == revision {
            return Ok(());
        }
        let certificates = self.certificates.certificates().await.map_err(unreadable)?;
        let served = certificates.into_iter().filter_map(|one| self.open(one)).collect();
        self.server.set_certificates(&revision, served).await
    }

    /// Returns `None` for a certificate that was not issued, and for one whose key cannot be decrypted: the others must be
    /// served anyway.
    fn open(&self, certificate: Certificate) -> Option<ServedCertificate> {
        let Certificate { domain, issued, .. } = certificate;
        let issued = issued?;
        let key = self.secrets.open(&Certificate::associated_data(&domain), &issued.key);
        match key.map(|key| String::from_utf8(key.expose().clone())) {
            Ok(Ok(key)) => Some(ServedCertificate {
                domain,
                chain: issued.chain,
                key: Secret::new(key),
                not_after: issued.not_after,
            }),
            Ok(Err(_not_text)) => {
                tracing::error!(%domain, "private key of a certificate is no text");
                None
            }
            Err(error) => {
                tracing::error!(%domain, %error, "private key of a certificate cannot be decrypted");
                None
            }
        }
    }
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be read", error)
}
