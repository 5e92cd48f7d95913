//! Verifies the signatures of deliveries.
//!
//! **Invariant:** before one of the secrets matches, only the headers of a delivery and the repository URLs
//! in its payload are read. The repository of the matching secret determines what is deployed, never the
//! payload.

use std::sync::Arc;

use launchway_domain::webhooks::{Delivery, KeptSecret, RepositoryKey, WebhookSecret};

use super::{Webhooks, payload};
use crate::Error;

/// The number of repositories that the log line of a rejected delivery names.
const MOST_LOGGED: usize = 5;

impl Webhooks {
    /// Returns the secret that signed the delivery, of one of the repositories that it claims to be about.
    /// An unknown repository takes the same work as a wrong signature.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`] when there is none.
    pub(super) async fn verify(&self, delivery: &Arc<Delivery>) -> Result<KeptSecret, Error> {
        let read = Arc::clone(delivery);
        let repositories = beside(move || payload::repositories(&read.payload())).await?;
        let kept = self.ports.webhooks.secrets(&repositories, self.context.clock.now()).await?;
        let mut keys: Vec<_> = kept.into_iter().filter_map(|kept| self.opened(kept)).collect();
        if keys.is_empty() {
            keys.push((None, WebhookSecret::new(self.context.entropy.bits_256())));
        }
        let tried = Arc::clone(delivery);
        let signed = beside(move || {
            // Tries all of them, so that the time does not reveal which one matched.
            let fitting = keys.into_iter().filter(|(_, secret)| tried.is_signed_with(secret));
            fitting.filter_map(|(kept, _)| kept).collect::<Vec<_>>()
        });
        signed.await?.into_iter().next().ok_or_else(|| {
            let meant: Vec<_> = repositories.iter().take(MOST_LOGGED).map(RepositoryKey::as_str).collect();
            let (host, repositories) = (delivery.host().title(), meant.join(", "));
            tracing::info!(host, repositories, "webhook rejected: no secret of these repositories signed it");
            Error::InvalidSignature
        })
    }

    /// Decrypts a stored secret. One that cannot be decrypted is skipped, so that it does not block the
    /// others.
    fn opened(&self, kept: KeptSecret) -> Option<(Option<KeptSecret>, WebhookSecret)> {
        match self.open(&kept) {
            Ok(secret) => Some((Some(kept), secret)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, webhook_secret.id = %kept.id, "webhook secret could not be decrypted");
                None
            }
        }
    }
}

/// Runs work on a blocking thread, because it takes long for a large body.
pub(super) async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|broken| Error::Internal(broken.into()))
}
