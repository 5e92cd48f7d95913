//! Makes an organization's audit trail long: `audit_rows <database file> <organization id> <rows>`.
//!
//! For `cargo xtask bench`, which measures that a page of it costs the same however long it is.

use std::{collections::BTreeMap, error::Error};

use launchway_domain::{
    audit::{Action, Chain, Entry, Resource, Write},
    clock::Clock as _,
    ids::{Ids as _, OrganizationId},
    store::UnitOfWork as _,
};
use launchway_infrastructure::{
    clock::{SystemClock, TimeOrderedIds},
    database::{Database, DatabaseOptions, DatabaseUrl},
};

/// How many entries share a commit.
const BATCH: u64 = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [file, organization, rows] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_wrong_number| "usage: audit_rows <database file> <organization id> <rows>")?;
    let organization: OrganizationId = organization.parse()?;
    let rows: u64 = rows.parse()?;
    let database = Database::open(DatabaseOptions::new(DatabaseUrl::Sqlite(file.into())))?;
    let mut made = 0;
    while made < rows {
        let batch = BATCH.min(rows - made);
        let writes = (made..made + batch).map(|number| Write::Append(entry(organization, number)).into());
        database.commit(writes.collect()).await?;
        made += batch;
    }
    database.close().await;
    Ok(())
}

fn entry(organization: OrganizationId, number: u64) -> Entry {
    let theme = format!("theme-{}", number % 1000);
    // One in a thousand is somebody else's, so that a filter has something to find.
    let actor = if number.is_multiple_of(1000) { "grace" } else { "ada" };
    Entry {
        id: TimeOrderedIds.next().into(),
        chain: Chain::Organization(organization),
        actor: actor.to_owned(),
        actor_id: None,
        action: Action::Update,
        resource: Resource::User,
        resource_id: organization.to_string(),
        message: format!("{actor} changed theme to `{theme}`"),
        metadata: BTreeMap::from([("theme".to_owned(), theme)]),
        request_id: format!("request-{number}"),
        address: Some([127, 0, 0, 1].into()),
        at: SystemClock.now(),
    }
}
