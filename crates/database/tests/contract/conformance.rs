//! The tests of every store of records, on the databases of the server.

use std::sync::Arc;

use launchway_database::Database;
use launchway_domain::{
    auth::Actor,
    organizations::{self, MembershipDetail},
    store::UnitOfWork as _,
    users,
};
use launchway_embedding::conformance::{Knowing, Ports, check_repositories};

use crate::builders::audited;

contract!(repositories_conform);

async fn repositories_conform(database: Database) {
    let database = Arc::new(database);
    let ports = Ports {
        store: database.clone(),
        applications: database.clone(),
        deployments: database.clone(),
        jobs: database.clone(),
        log_sink: database.clone(),
        log_reader: database.clone(),
        audit: database.clone(),
    };
    let know = |actor: Actor| -> Knowing<'_> { Box::pin(record(&database, actor)) };
    check_repositories(&ports, &know).await.unwrap();
}

async fn record(database: &Database, actor: Actor) -> Result<(), String> {
    let mut writes = vec![users::Write::Insert(actor.user().clone()).into()];
    for MembershipDetail { organization, membership } in &actor.profile().memberships {
        writes.push(organizations::Write::Insert(organization.clone()).into());
        writes.push(organizations::Write::InsertMembership(membership.clone()).into());
    }
    database.commit(audited(writes)).await.map_err(|error| error.to_string())
}
