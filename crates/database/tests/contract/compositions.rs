//! Contract of `CompositionRepository`.

use launchway_database::{
    Database,
    tables::{SEALED, Tables, copy},
};
use launchway_domain::{
    applications::Application,
    deployments::CompositionRepository as _,
    ids::{ApplicationId, DeploymentId},
    secret::Sealed,
    store::StoreError,
};
use launchway_testkit::builders::a_deployment;

use crate::{
    applications::{an_application_of, insert},
    builders::{Resident, id},
    deployments::insert_deployment,
    fresh::Fresh,
};

contract!(
    a_composition_is_found_until_its_application_is_forgotten,
    only_the_newest_compositions_of_an_application_are_kept,
    a_composition_needs_a_deployment_of_its_application,
    compositions_of_sixteen_mebibytes_are_sealed_anew_and_copied,
);

fn sealed(text: impl Into<String>) -> Sealed {
    Sealed(text.into())
}

async fn application(db: &Database, owner: &Resident, name: &str) -> Application {
    let application = an_application_of(owner).named(name).build();
    insert(db, &application).await.unwrap();
    application
}

/// Inserts `count` deployments, with the oldest first.
async fn deployments<const COUNT: usize>(db: &Database, application: &Application) -> [DeploymentId; COUNT] {
    let mut ids: [DeploymentId; COUNT] = std::array::from_fn(|_| id());
    ids.sort();
    for id in ids {
        let deployment = a_deployment().of(application).build();
        insert_deployment(db, &launchway_domain::deployments::Deployment { id, ..deployment }).await;
    }
    ids
}

async fn a_composition_is_found_until_its_application_is_forgotten(fresh: &Fresh) {
    let db = &fresh.database;
    let ada = Resident::of(db, "ada").await;
    let (web, other) = (application(db, &ada, "web").await, application(db, &ada, "other").await);
    let [one, two] = deployments(db, &web).await;
    let [third] = deployments(db, &other).await;
    assert_eq!(db.find(web.id, one).await.unwrap(), None);
    for (application, deployment, text) in
        [(web.id, one, "earlier"), (web.id, one, "one"), (web.id, two, "two"), (other.id, third, "three")]
    {
        db.keep(application, deployment, sealed(text), 100).await.unwrap();
    }
    let elsewhere = fresh.open_again();
    assert_eq!(elsewhere.find(web.id, one).await.unwrap(), Some(sealed("one")));
    assert_eq!(elsewhere.find(other.id, one).await.unwrap(), None);
    for _ in 0..2 {
        db.forget(web.id).await.unwrap();
        let found = [db.find(web.id, one).await, db.find(web.id, two).await, db.find(other.id, third).await];
        assert_eq!(found.map(Result::unwrap), [None, None, Some(sealed("three"))]);
    }
}

async fn only_the_newest_compositions_of_an_application_are_kept(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (web, other) = (application(&db, &ada, "web").await, application(&db, &ada, "other").await);
    let [one, two, three] = deployments(&db, &web).await;
    let [fourth] = deployments(&db, &other).await;
    db.keep(other.id, fourth, sealed("x"), 2).await.unwrap();
    for deployment in [one, two, three] {
        db.keep(web.id, deployment, sealed("x"), 2).await.unwrap();
    }
    for (application, deployment, is_kept) in
        [(web.id, one, false), (web.id, two, true), (web.id, three, true), (other.id, fourth, true)]
    {
        assert_eq!(db.find(application, deployment).await.unwrap().is_some(), is_kept);
    }
}

async fn a_composition_needs_a_deployment_of_its_application(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (web, other) = (application(&db, &ada, "web").await, application(&db, &ada, "other").await);
    let [one] = deployments(&db, &web).await;
    let unknown: (ApplicationId, DeploymentId) = (id(), id());
    for (application, deployment) in [(other.id, one), (web.id, id()), unknown] {
        let kept = db.keep(application, deployment, sealed("x"), 2).await;
        assert!(matches!(kept, Err(StoreError::Stale)), "{kept:?}");
    }
}

/// The largest that the compose parser allows takes less.
async fn compositions_of_sixteen_mebibytes_are_sealed_anew_and_copied(fresh: &Fresh) {
    let db = &fresh.database;
    let ada = Resident::of(db, "ada").await;
    let web = application(db, &ada, "web").await;
    let [one, two] = deployments(db, &web).await;
    for (deployment, size) in [(one, 16 * 1024 * 1024), (two, 16)] {
        db.keep(web.id, deployment, sealed("x".repeat(size)), 100).await.unwrap();
    }
    let column = SEALED.iter().find(|column| column.table == "compositions").unwrap();
    let mut tables = Tables::to_change(&fresh.url()).unwrap();
    let mut places = Vec::new();
    let changed = tables.change_sealed(column, |place, sealed| {
        places.push(place.to_owned());
        Ok(Some(sealed.replace('x', "y")))
    });
    assert_eq!(changed.unwrap(), (2, 2));
    tables.keep().unwrap();
    let web = web.id;
    assert_eq!(places, [one, two].map(|deployment| format!("compositions.sealed:{web}:{deployment}")));
    for (deployment, size) in [(one, 16 * 1024 * 1024), (two, 16)] {
        assert!(db.find(web, deployment).await.unwrap() == Some(sealed("y".repeat(size))), "{size}");
    }

    let folder = tempfile::tempdir().unwrap();
    let target = format!("sqlite://{}", folder.path().join("copy.db").display()).parse().unwrap();
    copy(&fresh.url(), &target).unwrap();
}
