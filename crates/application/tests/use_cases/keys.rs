//! Idempotency keys.

use launchway_domain::{
    clock::Timestamp,
    idempotency::{BodyHash, IdempotencyKey, Write},
    store,
};
use launchway_testkit::builders::{a_user, an_organization, parsed, scope_of};
use uuid::Uuid;

/// Returns the key "once" for `operation`, of [`a_user`] in [`an_organization`].
pub(crate) fn a_key(operation: &str) -> IdempotencyKey {
    IdempotencyKey {
        scope: scope_of(&an_organization().build()),
        user_id: a_user().build().id,
        operation: operation.to_owned(),
        name: parsed("once"),
        body: BodyHash::of(b"{}"),
    }
}

/// Returns the write that records that the request created `resource`.
pub(crate) fn claimed(key: &IdempotencyKey, resource: Uuid, at: Timestamp) -> store::Write {
    Write::Claim { key: key.clone(), resource, since: at - IdempotencyKey::KEPT, at }.into()
}
