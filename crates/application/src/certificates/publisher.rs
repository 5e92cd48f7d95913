//! Publishes certificates and challenges to the front proxy of this server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use launchway_domain::{
    certificates::{Certificate, CertificateRepository, CertificateServer, HstsPolicy, ServedCertificate},
    clock::{Clock, Timestamp},
    deployments::StepError,
    secret::{Secret, SecretBox},
    store::StoreError,
};

/// Publishes certificates and challenges to the front proxy of this server.
pub struct CertificatePublisher {
    certificates: Arc<dyn CertificateRepository>,
    secrets: Arc<dyn SecretBox>,
    server: Arc<dyn CertificateServer>,
    clock: Arc<dyn Clock>,
    /// The port at which the front proxy serves TLS.
    port: u16,
    published: Mutex<Published>,
}

/// The certificates that the front proxy got last.
#[derive(Debug, Default)]
struct Published {
    /// `None` before the first time.
    revision: Option<String>,
    /// The times at which they expire, by domain.
    domains: HashMap<String, Timestamp>,
}

impl CertificatePublisher {
    /// Returns the publisher of the stored certificates to `server`, which serves TLS at `port`.
    #[must_use]
    pub fn new(
        certificates: Arc<dyn CertificateRepository>,
        secrets: Arc<dyn SecretBox>,
        server: Arc<dyn CertificateServer>,
        clock: Arc<dyn Clock>,
        port: u16,
    ) -> Self {
        Self { certificates, secrets, server, clock, port, published: Mutex::default() }
    }

    /// Returns the URL of a domain that is served over HTTPS; `None` without a valid certificate.
    pub(crate) fn url(&self, domain: &str) -> Option<String> {
        let not_after = *self.published().domains.get(domain)?;
        let port = if self.port == 443 { String::new() } else { format!(":{}", self.port) };
        (self.clock.now() < not_after).then(|| format!("https://{domain}{port}"))
    }

    /// Sends the challenges, and all certificates if the front proxy has others. Does nothing if it serves no TLS.
    pub(crate) async fn publish(&self) -> Result<(), StepError> {
        let Some(published) = self.server.revision().await? else { return Ok(()) };
        self.server.set_challenges(self.certificates.challenges().await.map_err(unreadable)?).await?;
        // Before the certificates: a change in between is published twice, and not missed.
        let revision = self.certificates.certificates_revision().await.map_err(unreadable)?;
        // A front proxy outlives a restart of this server, which does not know its certificates then.
        let is_known = self.published().revision.as_ref() == Some(&revision);
        if published == revision && is_known {
            return Ok(());
        }
        let certificates = self.certificates.certificates().await.map_err(unreadable)?;
        let mut served: Vec<ServedCertificate> =
            certificates.into_iter().filter_map(|one| self.open(one)).collect();
        let policies = self.certificates.hsts().await.map_err(unreadable)?.into_iter();
        let policies: HashMap<_, _> =
            policies.map(|HstsPolicy { domain, max_age, .. }| (domain, max_age)).collect();
        for one in &mut served {
            one.hsts = policies.get(&one.domain).copied();
        }
        let domains = served.iter().map(|one| (one.domain.to_string(), one.not_after)).collect();
        if published != revision {
            self.server.set_certificates(&revision, served).await?;
        }
        *self.published() = Published { revision: Some(revision), domains };
        Ok(())
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
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
                hsts: None,
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

#[cfg(test)]
mod tests {
    use launchway_domain::{
        certificates::{
            CertificateSource, IssuedCertificate, MockCertificateRepository, MockCertificateServer,
        },
        clock::MockClock,
        secret::{MockSecretBox, Sealed},
    };

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_timestamp(second, 0).unwrap_or_default()
    }

    fn certificate(domain: &str) -> Certificate {
        Certificate {
            domain: domain.parse().unwrap(),
            application_id: None,
            source: CertificateSource::Acme,
            issued: Some(IssuedCertificate {
                chain: "CHAIN".to_owned(),
                key: Sealed("sealed".to_owned()),
                not_before: at(0),
                not_after: at(100),
            }),
            failures: 0,
            last_error: None,
            next_attempt_at: None,
            updated_at: at(0),
        }
    }

    /// Returns a publisher at `second`, whose front proxy has these certificates already.
    async fn published(second: i64, port: u16) -> CertificatePublisher {
        let mut certificates = MockCertificateRepository::new();
        certificates.expect_challenges().returning(|| Ok(Vec::new()));
        certificates.expect_certificates_revision().returning(|| Ok("1".to_owned()));
        certificates.expect_certificates().once().returning(|| Ok(vec![certificate("shop.example.com")]));
        certificates.expect_hsts().returning(|| Ok(Vec::new()));
        let mut server = MockCertificateServer::new();
        server.expect_revision().returning(|| Ok(Some("1".to_owned())));
        server.expect_set_challenges().returning(|_| Ok(()));
        let mut secrets = MockSecretBox::new();
        secrets.expect_open().returning(|_, _| Ok(Secret::new(b"KEY".to_vec())));
        let mut clock = MockClock::new();
        clock.expect_now().returning(move || at(second));
        let (certificates, secrets) = (Arc::new(certificates), Arc::new(secrets));
        let publisher =
            CertificatePublisher::new(certificates, secrets, Arc::new(server), Arc::new(clock), port);
        // The second time, everything is known.
        publisher.publish().await.unwrap();
        publisher.publish().await.unwrap();
        publisher
    }

    #[tokio::test]
    async fn a_domain_has_an_https_url_while_its_certificate_is_valid() {
        let valid = published(99, 443).await;
        assert_eq!(valid.url("shop.example.com").as_deref(), Some("https://shop.example.com"));
        assert_eq!(valid.url("other.example.com"), None);
        let elsewhere = published(99, 8443).await;
        assert_eq!(elsewhere.url("shop.example.com").as_deref(), Some("https://shop.example.com:8443"));
        assert_eq!(published(100, 443).await.url("shop.example.com"), None);
    }
}
