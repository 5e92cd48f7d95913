//! Host ports: each is held by one extension of one organization.

use std::collections::BTreeSet;

use launchway_database::Database;
use launchway_domain::{
    extensions::{ExtensionKey, HostPorts as _, PortError, PortPolicy, PortRefusal, PortRequest},
    quotas::{Quota, Resource, UsageRepository as _},
    store::StoreError,
};
use tokio::task::JoinSet;

use super::{a_run_of, an_entry, request as store_request};
use crate::{
    builders::{Resident, at, id},
    fresh::Fresh,
};

contract!(
    a_port_is_held_until_it_is_given_back,
    of_many_who_want_a_port_at_once_one_gets_it,
    of_many_who_want_any_port_at_once_each_gets_its_own,
    a_quota_of_ports_holds_at_the_same_moment,
    a_refused_request_records_nothing,
    an_organization_that_is_gone_gets_no_port,
    what_is_held_is_read_with_whether_the_extension_is_installed,
);

fn policy(limit: u64) -> PortPolicy {
    let quota = Quota { resource: Resource::ExtensionPorts, limit };
    PortPolicy { range: "20000-20019".parse().unwrap(), quota }
}

fn request(resident: &Resident, extension: &str, wanted: &[&str]) -> PortRequest {
    let wanted = wanted.iter().map(|port| ("db".to_owned(), (*port).to_owned().try_into().unwrap()));
    PortRequest {
        organization: resident.organization.id,
        extension: key(extension),
        execution: id(),
        wanted: wanted.collect(),
        published: BTreeSet::new(),
        unavailable: BTreeSet::new(),
    }
}

fn key(extension: &str) -> ExtensionKey {
    extension.parse().unwrap()
}

async fn allocate(db: &Database, request: PortRequest, limit: u64) -> Result<Vec<u16>, PortError> {
    let given = db.allocate(policy(limit), request).await?;
    Ok(given.iter().map(|port| port.host.get()).collect())
}

async fn used(db: &Database, resident: &Resident) -> u64 {
    let usage = db.usage(resident.scope(), at(0)).await.unwrap();
    usage.into_iter().find(|(resource, _)| *resource == Resource::ExtensionPorts).unwrap().1
}

/// Returns the database as two servers open it. A SQLite file has one server.
fn servers(fresh: &Fresh) -> [Database; 2] {
    let db = fresh.database.clone();
    let replica = if fresh.folder().is_some() { db.clone() } else { fresh.open_again() };
    [db, replica]
}

async fn a_port_is_held_until_it_is_given_back(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    assert_eq!(
        allocate(&db, request(&ada, "x", &["20003:80", "53/udp"]), 0).await.unwrap(),
        [20_003, 20_000]
    );
    let taken = allocate(&db, request(&grace, "x", &["20003:80"]), 0).await;
    assert!(matches!(taken, Err(PortError::Refused(PortRefusal::Taken(20_003)))), "{taken:?}");
    assert_eq!(allocate(&db, request(&ada, "x", &["20003:80"]), 0).await.unwrap(), [20_003]);
    assert_eq!((used(&db, &ada).await, used(&db, &grace).await), (2, 0));
    db.retain(grace.organization.id, &key("x"), BTreeSet::new()).await.unwrap();
    db.retain(ada.organization.id, &key("y"), BTreeSet::new()).await.unwrap();
    db.retain(ada.organization.id, &key("x"), [(20_000, true)].into()).await.unwrap();
    assert_eq!(used(&db, &ada).await, 1);
    assert_eq!(allocate(&db, request(&grace, "x", &["20003:80"]), 0).await.unwrap(), [20_003]);
}

async fn of_many_who_want_a_port_at_once_one_gets_it(fresh: &Fresh) {
    let servers = servers(fresh);
    let ada = Resident::of(&servers[0], "ada").await;
    let mut tasks = JoinSet::new();
    for caller in 0..8 {
        let (db, wanted) =
            (servers[caller % 2].clone(), request(&ada, &format!("x-{caller}"), &["20003:80"]));
        tasks.spawn(async move { allocate(&db, wanted, 0).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
}

async fn of_many_who_want_any_port_at_once_each_gets_its_own(fresh: &Fresh) {
    let servers = servers(fresh);
    let ada = Resident::of(&servers[0], "ada").await;
    let mut tasks = JoinSet::new();
    for caller in 0..8 {
        let (db, wanted) =
            (servers[caller % 2].clone(), request(&ada, &format!("x-{caller}"), &["80", "81"]));
        tasks.spawn(async move { allocate(&db, wanted, 0).await.unwrap() });
    }
    let given: BTreeSet<u16> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(given, (20_000..20_016).collect());
}

async fn a_quota_of_ports_holds_at_the_same_moment(fresh: &Fresh) {
    let servers = servers(fresh);
    let ada = Resident::of(&servers[0], "ada").await;
    let mut tasks = JoinSet::new();
    for caller in 0..8 {
        let (db, wanted) = (servers[caller % 2].clone(), request(&ada, &format!("x-{caller}"), &["80"]));
        tasks.spawn(async move { allocate(&db, wanted, 3).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 3, "{outcomes:?}");
    assert_eq!(used(&servers[0], &ada).await, 3);
}

async fn a_refused_request_records_nothing(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let refused = allocate(&db, request(&ada, "x", &["20000:80", "443:443"]), 0).await;
    assert!(
        matches!(refused, Err(PortError::Refused(PortRefusal::OutOfRange { port: 443, .. }))),
        "{refused:?}"
    );
    assert_eq!(used(&db, &ada).await, 0);
}

async fn an_organization_that_is_gone_gets_no_port(db: Database) {
    let nobody = Resident::called("nobody");
    let outcome = allocate(&db, request(&nobody, "x", &["80"]), 0).await;
    assert!(matches!(outcome, Err(PortError::Store(StoreError::Stale))), "{outcome:?}");
}

async fn what_is_held_is_read_with_whether_the_extension_is_installed(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    allocate(&db, request(&ada, "postgres", &["20003:5432"]), 0).await.unwrap();
    let held = async |resident: &Resident, extension: &str| {
        let held = db.held(resident.organization.id, &key(extension)).await.unwrap();
        let ports: Vec<u16> = held.records.iter().map(|record| record.port.host.get()).collect();
        (ports, held.is_installed)
    };
    assert_eq!(held(&ada, "postgres").await, (vec![20_003], true));
    assert_eq!(held(&ada, "redis").await, (vec![20_003], false));
    assert_eq!(held(&grace, "postgres").await, (vec![20_003], false));
    // A run that was asked for is an installation before it holds anything.
    let entry = an_entry(&db).await;
    let run = a_run_of(&grace, &entry).with_steps();
    store_request(&db, run, true).await.unwrap();
    assert!(held(&grace, entry.key.as_str()).await.1);
}
