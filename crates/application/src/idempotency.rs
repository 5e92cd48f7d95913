//! Idempotent requests.

use std::sync::Arc;

use launchway_domain::{
    auth::{Actor, Permission, Permissions},
    idempotency::{IdempotencyKey, IdempotencyStore},
    secret::SecretBox,
};
use uuid::Uuid;

use crate::{Error, ServiceContext};

/// Stores processed requests and their responses.
pub struct Idempotency {
    store: Arc<dyn IdempotencyStore>,
    secrets: Arc<dyn SecretBox>,
    context: ServiceContext,
}

/// The stored result of a repeated request.
#[derive(Debug, PartialEq, Eq)]
pub enum PriorRequest {
    /// The response of the request.
    Answered(Vec<u8>),
    /// The id of the resource that it created. The response is unknown, or shows more than the caller may
    /// see now.
    CarriedOut(Uuid),
}

/// The prefix of a stored response, followed by the permissions of the caller and a line break.
const PERMISSIONS: &[u8] = b"permissions: ";

impl Idempotency {
    /// Returns the use case over `store`, with responses encrypted by `secrets`.
    pub fn new(
        store: Arc<dyn IdempotencyStore>,
        secrets: Arc<dyn SecretBox>,
        context: ServiceContext,
    ) -> Self {
        Self { store, secrets, context }
    }

    /// Returns the result of the same request earlier; `None` when it is new. The request needs
    /// `permission`, now as it did then. A stored response is returned only to a caller who still has every
    /// permission that they had when they got it.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission, [`Error::IdempotencyKeyReused`] when the key came with
    /// another body.
    pub async fn earlier(
        &self,
        actor: &Actor,
        permission: Permission,
        key: &IdempotencyKey,
    ) -> Result<Option<PriorRequest>, Error> {
        actor.require(permission)?;
        let since = self.context.clock.now() - IdempotencyKey::KEPT;
        let Some(remembered) = self.store.find(key, since).await? else { return Ok(None) };
        if remembered.body != key.body {
            return Err(Error::IdempotencyKeyReused);
        }
        let Some(sealed) = remembered.answer else {
            return Ok(Some(PriorRequest::CarriedOut(remembered.resource)));
        };
        let kept = self.secrets.open(&key.associated_data(), &sealed)?;
        Ok(Some(match divide(kept.expose()) {
            Some((then, answer)) if actor.permissions().contain_all(then) => {
                PriorRequest::Answered(answer.to_vec())
            }
            _ => PriorRequest::CarriedOut(remembered.resource),
        }))
    }

    /// Stores a response with the permissions of the caller who got it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn keep(&self, actor: &Actor, key: &IdempotencyKey, answer: &[u8]) -> Result<(), Error> {
        let names = actor.permissions().names().join(" ");
        let kept = [PERMISSIONS, names.as_bytes(), b"\n", answer].concat();
        let sealed = self.secrets.seal(&key.associated_data(), &kept)?;
        Ok(self.store.keep_answer(key, &sealed).await?)
    }
}

/// Splits a stored response into permissions and response; `None` for one of an earlier version, which
/// stored no permissions.
fn divide(kept: &[u8]) -> Option<(Permissions, &[u8])> {
    let rest = kept.strip_prefix(PERMISSIONS)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let names = std::str::from_utf8(&rest[..end]).ok()?;
    let permissions =
        names.split_whitespace().map(str::parse::<Permission>).collect::<Result<_, _>>().ok()?;
    Some((permissions, &rest[end + 1..]))
}
