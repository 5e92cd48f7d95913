//! Contract of the ports and writes of webhooks.

mod deliveries;
mod followed;
mod missed;
mod secrets;

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, Repository},
    ids::OrganizationId,
    organizations::Scope,
    secret::Sealed,
    store::{StoreError, UnitOfWork as _},
    webhooks::{KeptSecret, RepositoryKey, Write},
};

use crate::builders::{at, commit, id};

/// The repository of the tests' applications.
fn repository_of(application: &Application) -> RepositoryKey {
    match &application.blueprint.repository {
        Repository::Git(url) => RepositoryKey::of(url),
        Repository::Image(image) => panic!("{image}"),
    }
}

fn a_repository(name: &str) -> RepositoryKey {
    RepositoryKey::parse(&format!("https://git.example.com/{name}")).unwrap()
}

/// A secret, created `seconds` after time zero.
fn a_secret(organization_id: OrganizationId, repository: &RepositoryKey, seconds: i64) -> KeptSecret {
    KeptSecret {
        id: id(),
        organization_id,
        repository: repository.clone(),
        secret: Sealed(format!("sealed {seconds}")),
        created_at: at(seconds),
        confirmed_at: None,
    }
}

async fn give(db: &Database, secret: &KeptSecret) -> Result<(), StoreError> {
    commit(db, Write::FirstSecret(secret.clone())).await
}

async fn replace(db: &Database, secret: &KeptSecret, until: i64) -> Result<(), StoreError> {
    commit(db, Write::ReplaceSecret { secret: secret.clone(), until: at(until) }).await
}

/// Records a verified push of the repository. Without an audit entry, as for every change that no user
/// requests.
async fn confirm(db: &Database, organization: OrganizationId, repository: &RepositoryKey, seconds: i64) {
    let scope = Scope::of_record(organization);
    let confirm = Write::Confirm { scope, repository: repository.clone(), at: at(seconds) };
    db.commit(vec![confirm.into()]).await.unwrap();
}
