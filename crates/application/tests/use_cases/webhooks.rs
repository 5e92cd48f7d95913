//! Webhooks: secrets, deployments by pushes, and polling of branches.

mod branch_poller;
pub(crate) mod delivery;
mod secrets;
mod watch_paths;

use launchway_domain::{
    applications::Repository,
    clock::Timestamp,
    webhooks::{KeptSecret, RepositoryKey, WebhookSecret},
};
use launchway_testkit::{CountingEntropy, CountingIds, builders::a_blueprint};

use crate::{applications::scope, sealed_values::sealed};

/// Returns the repository of [`web`](crate::applications::web).
fn repository() -> RepositoryKey {
    match a_blueprint().repository {
        Repository::Git(url) => RepositoryKey::of(&url),
        Repository::Image(image) => panic!("{image}"),
    }
}

/// Returns secret number `n`.
pub(crate) fn secret(n: u64) -> WebhookSecret {
    WebhookSecret::new(CountingEntropy::nth(n))
}

/// Returns that secret as it is stored under the id number `id`.
fn kept(id: u64, n: u64, at: Timestamp) -> KeptSecret {
    let id = CountingIds::nth(id).into();
    KeptSecret {
        id,
        organization_id: scope().id(),
        repository: repository(),
        secret: sealed(&format!("webhook_secrets.secret:{id}"), secret(n).expose()),
        created_at: at,
        confirmed_at: None,
    }
}
