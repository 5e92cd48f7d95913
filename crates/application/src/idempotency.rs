//! Asking twice and being served once.

use std::sync::Arc;

use launchway_domain::{
    idempotency::{IdempotencyKey, IdempotencyStore},
    secret::SecretBox,
};
use uuid::Uuid;

use crate::{Error, Tools};

/// Remembers requests that were carried out, and what was answered.
pub struct Idempotency {
    store: Arc<dyn IdempotencyStore>,
    secrets: Arc<dyn SecretBox>,
    tools: Tools,
}

/// What is known of a request that comes again.
#[derive(Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It was answered so.
    Answered(Vec<u8>),
    /// It was carried out and made this, but what was answered is not known.
    CarriedOut(Uuid),
}

impl Idempotency {
    /// Remembers in `store`, and keeps answers secret by `secrets`.
    pub fn new(store: Arc<dyn IdempotencyStore>, secrets: Arc<dyn SecretBox>, tools: Tools) -> Self {
        Self { store, secrets, tools }
    }

    /// What became of the same request earlier; `None` when it is new.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the key came with another body.
    pub async fn earlier(&self, key: &IdempotencyKey) -> Result<Option<Earlier>, Error> {
        let since = self.tools.clock.now() - IdempotencyKey::KEPT;
        let Some(remembered) = self.store.find(key, since).await? else { return Ok(None) };
        if remembered.body != key.body {
            return Err(Error::Conflict(
                "this `Idempotency-Key` was used with another body: use a new one for another request"
                    .to_owned(),
            ));
        }
        Ok(Some(match remembered.answer {
            Some(sealed) => Earlier::Answered(self.secrets.open(&key.place(), &sealed)?.expose().clone()),
            None => Earlier::CarriedOut(remembered.resource),
        }))
    }

    /// Keeps what was answered.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn keep(&self, key: &IdempotencyKey, answer: &[u8]) -> Result<(), Error> {
        let sealed = self.secrets.seal(&key.place(), answer)?;
        Ok(self.store.keep_answer(key, &sealed).await?)
    }
}
