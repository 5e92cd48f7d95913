//! The recorded containers of deployments.

use std::collections::HashSet;

use launchway_database::Database;
use launchway_domain::{
    deployments::{ContainerRecord, ContainerState, Deployment, DeploymentRepository as _, Progress, Write},
    store::{StoreError, UnitOfWork as _},
};
use launchway_testkit::builders::{a_container, a_deployment};

use super::{bring_to_life, deploy, insert_deployment, now, web};
use crate::{
    applications::{delete, set_stopped, stored},
    builders::{Resident, at, id, is_stale},
    extensions::routes::{a_route, add},
};

contract!(
    only_the_container_of_a_deployment_is_recorded,
    a_live_version_gets_another_container,
    every_copy_of_a_version_is_recorded,
    a_deployment_that_advances_has_its_copies,
    only_a_live_version_gets_another_container,
    a_container_that_is_down_keeps_its_address,
    the_addresses_that_routes_name_are_of_the_whole_installation,
    a_version_is_unretired_until_its_container_is_removed,
);

async fn only_the_container_of_a_deployment_is_recorded(db: Database) {
    let application = web(&db).await;
    let deployment = a_deployment().of(&application).run_by(a_container("web")).build();
    insert_deployment(&db, &deployment).await;
    let record = async |container, seconds| {
        let write = Write::RecordContainer { id: deployment.id, container, at: at(seconds) };
        db.commit(vec![write.into()]).await.unwrap();
        now(&db, &deployment).await
    };
    let mut exited = a_container("web");
    exited.state = ContainerState::Exited;
    exited.address = None;
    let recorded = record(exited.clone(), 7).await;
    let expected = Deployment { container: Some(exited), updated_at: at(7), ..deployment.clone() };
    assert_eq!(recorded, expected);
    assert_eq!(record(a_container("another"), 8).await, expected);
}

async fn replace(
    db: &Database,
    deployment: &Deployment,
    container: ContainerRecord,
    seconds: i64,
) -> Result<(), StoreError> {
    let further_copies = vec![];
    let write = Write::ReplaceContainer { id: deployment.id, container, further_copies, at: at(seconds) };
    db.commit(vec![write.into()]).await
}

/// A deployment of [`web`] that is live with the container "web".
async fn a_live_one(db: &Database) -> Deployment {
    let application = web(db).await;
    let deployment = a_deployment().of(&application).with_image().run_by(a_container("web")).build();
    insert_deployment(db, &deployment).await;
    bring_to_life(db, deployment.id, 2).await;
    now(db, &deployment).await
}

async fn a_live_version_gets_another_container(db: Database) {
    let live = a_live_one(&db).await;
    let copy = ContainerRecord { address: Some([10, 0, 0, 8].into()), ..a_container("copy") };
    replace(&db, &live, copy.clone(), 7).await.unwrap();
    let expected = Deployment { container: Some(copy.clone()), updated_at: at(7), ..live.clone() };
    assert_eq!(now(&db, &live).await, expected);
    let late = Write::RecordContainer { id: live.id, container: a_container("web"), at: at(8) };
    db.commit(vec![late.into()]).await.unwrap();
    assert_eq!(now(&db, &live).await, expected, "nothing is recorded of the one that it had before");
    replace(&db, &live, copy, 9).await.unwrap();
}

/// A copy at the address 10.0.0.`last`.
fn a_copy(last: u8) -> ContainerRecord {
    ContainerRecord { address: Some([10, 0, 0, last].into()), ..a_container(&format!("copy {last}")) }
}

async fn every_copy_of_a_version_is_recorded(db: Database) {
    let live = a_live_one(&db).await;
    let write = |container, further_copies, seconds| {
        vec![Write::ReplaceContainer { id: live.id, container, further_copies, at: at(seconds) }.into()]
    };
    db.commit(write(a_copy(1), vec![a_copy(2), a_copy(3)], 7)).await.unwrap();
    let expected = Deployment {
        container: Some(a_copy(1)),
        further_copies: vec![a_copy(2), a_copy(3)],
        updated_at: at(7),
        ..live.clone()
    };
    assert_eq!(now(&db, &live).await, expected);
    assert_eq!(db.live().await.unwrap()[0].deployment, expected);
    let addresses: HashSet<_> = db.live_addresses().await.unwrap().into_iter().collect();
    assert_eq!(addresses, HashSet::from([1, 2, 3].map(|last| std::net::IpAddr::from([10, 0, 0, last]))));

    let removed = ContainerRecord { state: ContainerState::Removed, address: None, ..a_copy(3) };
    for (container, seconds) in [(removed.clone(), 8), (a_copy(9), 9)] {
        let write = Write::RecordContainer { id: live.id, container, at: at(seconds) };
        db.commit(vec![write.into()]).await.unwrap();
    }
    let expected = Deployment { further_copies: vec![a_copy(2), removed], updated_at: at(8), ..expected };
    assert_eq!(now(&db, &live).await, expected, "nothing is recorded of one that it does not have");
    assert_eq!(db.live_addresses().await.unwrap().len(), 2);

    db.commit(write(a_copy(1), vec![], 10)).await.unwrap();
    assert_eq!(now(&db, &live).await.further_copies, []);
}

async fn a_deployment_that_advances_has_its_copies(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    let advance = async |container, further_copies: Vec<ContainerRecord>, seconds| {
        let progress = Progress { container, further_copies, ..Progress::default() };
        let write = Write::Advance { id: deployment.id, progress, at: at(seconds) };
        db.commit(vec![write.into()]).await.unwrap();
        now(&db, &deployment).await.copies().cloned().collect::<Vec<_>>()
    };
    assert_eq!(advance(Some(a_copy(1)), vec![a_copy(2)], 2).await, [a_copy(1), a_copy(2)]);
    assert_eq!(advance(None, vec![], 3).await, [a_copy(1), a_copy(2)], "other progress changes nothing");
    assert_eq!(advance(Some(a_copy(4)), vec![], 4).await, [a_copy(4)], "another attempt has others");
}

async fn only_a_live_version_gets_another_container(db: Database) {
    let live = a_live_one(&db).await;
    let application = web_of(&db, &live).await;
    let waiting = deploy(&db, &application, 2).await;
    let unknown = Deployment { id: id(), ..live.clone() };
    for other in [&waiting, &unknown] {
        assert!(is_stale(&replace(&db, other, a_container("copy"), 7).await));
    }
    assert_eq!(now(&db, &waiting).await.container, None);
    bring_to_life(&db, waiting.id, 8).await;
    assert!(is_stale(&replace(&db, &live, a_container("copy"), 9).await), "another one is live");
    assert_eq!(now(&db, &live).await.container, live.container);
    set_stopped(&db, &application, true, 10).await.unwrap();
    replace(&db, &waiting, a_container("copy"), 11).await.unwrap();
    delete(&db, &application, 12).await.unwrap();
    assert!(is_stale(&replace(&db, &waiting, a_container("late"), 13).await));
}

async fn web_of(db: &Database, deployment: &Deployment) -> launchway_domain::applications::Application {
    let scope = launchway_domain::organizations::Scope::of_record(deployment.organization_id);
    crate::applications::get(db, scope, deployment.application_id).await.unwrap()
}

async fn a_container_that_is_down_keeps_its_address(db: Database) {
    let live = a_live_one(&db).await;
    for state in [ContainerState::Exited, ContainerState::Created, ContainerState::Removed] {
        let container = ContainerRecord { state, ..a_container("web") };
        let write = Write::RecordContainer { id: live.id, container: container.clone(), at: at(7) };
        db.commit(vec![write.into()]).await.unwrap();
        assert_eq!(now(&db, &live).await.container, Some(container));
        assert_eq!(db.live_addresses().await.unwrap(), [std::net::IpAddr::from([10, 0, 0, 7])]);
    }
}

async fn the_addresses_that_routes_name_are_of_the_whole_installation(db: Database) {
    assert_eq!(db.live_addresses().await.unwrap(), Vec::<std::net::IpAddr>::new());
    let mut applications = vec![];
    for (name, last) in [("ada", 1), ("bob", 2), ("eve", 3)] {
        let resident = Resident::of(&db, name).await;
        let application = stored(&db, &resident, "web").await;
        let at_address =
            |last| ContainerRecord { address: Some([10, 0, 0, last].into()), ..a_container(name) };
        let old = a_deployment().of(&application).numbered(1).run_by(at_address(100 + last)).build();
        let live = a_deployment().of(&application).numbered(2).run_by(at_address(last)).build();
        for deployment in [&old, &live] {
            insert_deployment(&db, deployment).await;
            bring_to_life(&db, deployment.id, 2).await;
        }
        let site = stored(&db, &resident, "site").await;
        let published = deploy(&db, &site, 1).await;
        bring_to_life(&db, published.id, 3).await;
        applications.push((resident, application));
    }
    let mut route = a_route(&applications[0].0, "pages", "pages.example");
    route.address = [10, 0, 0, 50].into();
    add(&db, &route).await.unwrap();
    set_stopped(&db, &applications[1].1, true, 4).await.unwrap();
    delete(&db, &applications[2].1, 5).await.unwrap();
    let addresses: HashSet<_> = db.live_addresses().await.unwrap().into_iter().collect();
    let expected = [1, 2, 50].map(|last| std::net::IpAddr::from([10, 0, 0, last]));
    assert_eq!(addresses, HashSet::from(expected), "one that is stopped comes back where it was");
}

async fn a_version_is_unretired_until_its_container_is_removed(db: Database) {
    let first = a_live_one(&db).await;
    assert_eq!(db.unretired().await.unwrap(), [], "what is live is not retired");
    let application = web_of(&db, &first).await;
    let second = a_deployment().of(&application).with_image().run_by(a_container("next")).numbered(2).build();
    insert_deployment(&db, &second).await;
    bring_to_life(&db, second.id, 3).await;
    let unretired: Vec<_> = db.unretired().await.unwrap().into_iter().map(|found| found.id).collect();
    assert_eq!(unretired, [first.id]);
    let container = ContainerRecord { state: ContainerState::Removed, address: None, ..a_container("web") };
    let removed = Write::RecordContainer { id: first.id, container, at: at(9) };
    db.commit(vec![removed.into()]).await.unwrap();
    assert_eq!(db.unretired().await.unwrap(), []);
}
