//! Whether somebody is the code host that they say to be.

use std::sync::Arc;

use launchway_domain::webhooks::{Delivery, KeptSecret, WebhookSecret};

use super::{Webhooks, payload};
use crate::Error;

impl Webhooks {
    /// The secret that the delivery was signed with, of one of the repositories that it says to be
    /// about. With an unknown repository as much is done as with a wrong signature.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`] when there is none.
    pub(super) async fn verify(&self, delivery: &Arc<Delivery>) -> Result<KeptSecret, Error> {
        let read = Arc::clone(delivery);
        let repositories = beside(move || payload::repositories(&read.payload())).await?;
        let kept = self.ports.webhooks.secrets(&repositories, self.tools.clock.now()).await?;
        let mut keys: Vec<_> = kept.into_iter().filter_map(|kept| self.opened(kept)).collect();
        if keys.is_empty() {
            keys.push((None, WebhookSecret::new(self.tools.entropy.bits_256())));
        }
        let tried = Arc::clone(delivery);
        let signed = beside(move || {
            // All of them, so that time does not tell which one it was.
            let fitting = keys.into_iter().filter(|(_, secret)| tried.is_signed_with(secret));
            fitting.filter_map(|(kept, _)| kept).collect::<Vec<_>>()
        });
        signed.await?.into_iter().next().ok_or(Error::InvalidSignature)
    }

    /// A secret that cannot be opened is nobody's, and must not be in the way of others.
    fn opened(&self, kept: KeptSecret) -> Option<(Option<KeptSecret>, WebhookSecret)> {
        match self.open(&kept) {
            Ok(secret) => Some((Some(kept), secret)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, webhook_secret.id = %kept.id, "a webhook's secret cannot be opened");
                None
            }
        }
    }
}

/// Does on a thread of its own what takes long for a large body.
pub(super) async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|broken| Error::Internal(broken.into()))
}
