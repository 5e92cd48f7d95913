//! Contract of `SiteArchives`.

use launchway_database::{Database, tables::Tables};
use launchway_domain::{
    applications::Application,
    deployments::{ArchiveState, Deployment, DeploymentState, SiteArchive, SiteArchives as _},
    ids::{DeploymentId, SiteUploadId},
    store::StoreError,
};
use launchway_testkit::builders::a_deployment;

use crate::{
    applications::{an_application_of, delete, insert},
    builders::{Resident, at, execute, id},
    deployments::insert_deployment,
    fresh::Fresh,
};

contract!(
    an_archive_is_found_only_once_it_is_complete,
    an_archive_with_missing_parts_is_refused,
    a_later_archive_replaces_the_earlier_one,
    a_removed_archive_leaves_no_parts,
    the_archives_of_an_application_are_removed_together,
    uploads_that_ended_early_are_removed_later,
    states_tell_what_to_archive_and_what_to_remove,
    archives_are_not_copied,
);

async fn application(db: &Database, name: &str) -> Application {
    let owner = Resident::of(db, name).await;
    let application = an_application_of(&owner).named(name).build();
    insert(db, &application).await.unwrap();
    application
}

async fn deployment(db: &Database, application: &Application, state: DeploymentState) -> DeploymentId {
    let deployment = Deployment { id: id(), ..a_deployment().of(application).in_state(state).build() };
    insert_deployment(db, &deployment).await.id
}

async fn deployed(db: &Database, application: &Application) -> DeploymentId {
    deployment(db, application, DeploymentState::Deployed).await
}

fn archive(application: &Application, deployment: DeploymentId, parts: u32) -> SiteArchive {
    let upload = id();
    SiteArchive { application: application.id, deployment, upload, parts, size: 7, sha256: [7; 32] }
}

async fn upload(db: &Database, upload: SiteUploadId, parts: u32) {
    for part in 0..parts {
        let byte = u8::try_from(part % 256).unwrap();
        db.add_part(upload, part, vec![byte; 1000], at(0)).await.unwrap();
    }
}

async fn stored(db: &Database, application: &Application, deployment: DeploymentId) -> SiteArchive {
    let archive = archive(application, deployment, 2);
    upload(db, archive.upload, 2).await;
    db.complete(archive.clone()).await.unwrap();
    archive
}

async fn has_parts(db: &Database, upload: SiteUploadId) -> bool {
    db.part(upload, 0).await.unwrap().is_some() || db.part(upload, 1).await.unwrap().is_some()
}

async fn an_archive_is_found_only_once_it_is_complete(fresh: &Fresh) {
    let db = &fresh.database;
    let web = application(db, "web").await;
    let one = deployed(db, &web).await;
    let archive = archive(&web, one, 3);
    upload(db, archive.upload, 2).await;
    let largest = vec![1; SiteArchive::PART];
    db.add_part(archive.upload, 2, largest.clone(), at(0)).await.unwrap();
    assert_eq!((db.find(one).await.unwrap(), db.all().await.unwrap()), (None, vec![]));
    db.complete(archive.clone()).await.unwrap();
    let elsewhere = fresh.open_again();
    assert_eq!(elsewhere.find(one).await.unwrap(), Some(archive.clone()));
    assert_eq!(elsewhere.all().await.unwrap(), [(web.id, one)]);
    assert_eq!(elsewhere.part(archive.upload, 1).await.unwrap(), Some(vec![1; 1000]));
    assert_eq!(elsewhere.part(archive.upload, 2).await.unwrap(), Some(largest));
    assert_eq!(elsewhere.part(archive.upload, 3).await.unwrap(), None);
}

async fn an_archive_with_missing_parts_is_refused(db: Database) {
    let (web, other) = (application(&db, "web").await, application(&db, "other").await);
    let one = deployed(&db, &web).await;
    for (archive, parts) in
        [(archive(&web, one, 2), 1), (archive(&other, one, 1), 1), (archive(&web, id(), 1), 1)]
    {
        upload(&db, archive.upload, parts).await;
        let refused = db.complete(archive).await;
        assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    }
    assert_eq!(db.find(one).await.unwrap(), None);
}

async fn a_later_archive_replaces_the_earlier_one(db: Database) {
    let web = application(&db, "web").await;
    let one = deployed(&db, &web).await;
    let (first, second) = (stored(&db, &web, one).await, stored(&db, &web, one).await);
    assert_eq!(db.find(one).await.unwrap(), Some(second.clone()));
    assert!(!has_parts(&db, first.upload).await && has_parts(&db, second.upload).await);
    // Also one that was removed.
    db.remove(one).await.unwrap();
    let third = stored(&db, &web, one).await;
    assert_eq!(db.find(one).await.unwrap(), Some(third));
}

async fn a_removed_archive_leaves_no_parts(db: Database) {
    let web = application(&db, "web").await;
    let (one, two) = (deployed(&db, &web).await, deployed(&db, &web).await);
    let large = archive(&web, one, 40);
    upload(&db, large.upload, 40).await;
    db.complete(large.clone()).await.unwrap();
    let kept = stored(&db, &web, two).await;
    for _ in 0..2 {
        db.remove(one).await.unwrap();
        assert_eq!((db.find(one).await.unwrap(), db.all().await.unwrap()), (None, vec![(web.id, two)]));
        for part in 0..40 {
            assert_eq!(db.part(large.upload, part).await.unwrap(), None);
        }
    }
    assert!(has_parts(&db, kept.upload).await);
    db.remove(id()).await.unwrap();
}

async fn the_archives_of_an_application_are_removed_together(db: Database) {
    let (web, other) = (application(&db, "web").await, application(&db, "other").await);
    for _ in 0..2 {
        stored(&db, &web, deployed(&db, &web).await).await;
    }
    let kept = deployed(&db, &other).await;
    stored(&db, &other, kept).await;
    db.remove_all(web.id).await.unwrap();
    assert_eq!(db.all().await.unwrap(), [(other.id, kept)]);
}

async fn uploads_that_ended_early_are_removed_later(db: Database) {
    let web = application(&db, "web").await;
    let one = deployed(&db, &web).await;
    let (complete, early) = (stored(&db, &web, one).await, archive(&web, one, 2));
    upload(&db, early.upload, 1).await;
    db.remove_incomplete(at(0)).await.unwrap();
    assert!(has_parts(&db, early.upload).await, "it may still go on");
    db.remove_incomplete(at(1)).await.unwrap();
    assert!(!has_parts(&db, early.upload).await && has_parts(&db, complete.upload).await);
}

async fn states_tell_what_to_archive_and_what_to_remove(db: Database) {
    use ArchiveState::{Complete, Missing, Removed};
    use DeploymentState::{Building, Failed};
    let (web, gone) = (application(&db, "web").await, application(&db, "gone").await);
    let complete = deployed(&db, &web).await;
    stored(&db, &web, complete).await;
    let (missing, open) = (deployed(&db, &web).await, deployment(&db, &web, Building).await);
    let removed = deployment(&db, &web, Failed).await;
    stored(&db, &web, removed).await;
    db.remove(removed).await.unwrap();
    let failed = deployment(&db, &web, Failed).await;
    // The newest one that was deployed is needed again, whoever removed its archive.
    let newest = deployed(&db, &web).await;
    stored(&db, &web, newest).await;
    db.remove(newest).await.unwrap();
    execute(&db, "UPDATE deployments SET created_at = (SELECT min(created_at) FROM deployments)").await;
    let of_deleted = deployed(&db, &gone).await;
    stored(&db, &gone, of_deleted).await;
    db.remove_all(gone.id).await.unwrap();
    delete(&db, &gone, 1).await.unwrap();

    let all = [complete, missing, open, removed, failed, newest, of_deleted, id()];
    let mut states = db.states(&all).await.unwrap();
    let mut expected = vec![
        (complete, Complete),
        (missing, Missing),
        (open, Missing),
        (removed, Removed),
        (newest, Missing),
        (of_deleted, Removed),
    ];
    states.sort_by_key(|(id, _)| *id);
    expected.sort_by_key(|(id, _)| *id);
    assert_eq!(states, expected);
    assert_eq!(db.states(&[]).await.unwrap(), []);
}

/// Folders of the data directory are, from which a server archives them again.
async fn archives_are_not_copied(fresh: &Fresh) {
    let db = &fresh.database;
    let web = application(db, "web").await;
    stored(db, &web, deployed(db, &web).await).await;
    let listed = Tables::snapshot(&fresh.url()).unwrap().list().unwrap();
    assert!(listed.iter().all(|table| !table.name.starts_with("site_archive")), "{listed:?}");
}
