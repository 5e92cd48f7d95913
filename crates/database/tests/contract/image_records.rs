//! Image records: what `ImageRecords` promises.

use launchway_database::Database;
use launchway_domain::{
    deployments::{Deployment, ImageRecord, ImageRecords as _, ImageSize},
    ids::DeploymentId,
    organizations::Scope,
    quotas::{Quota, QuotaExceeded, Resource, UsageRepository as _},
    store::StoreError,
};
use tokio::task::JoinSet;

use crate::{
    applications::stored,
    builders::{Resident, at, id, is_stale},
    deployments::deploy,
    fresh::Fresh,
};

contract!(
    images_are_counted_for_their_organization,
    an_image_of_several_deployments_counts_once,
    a_quota_of_bytes_holds_on_both_sides,
    what_exists_is_recorded_again_beyond_a_lowered_quota,
    of_many_at_the_last_bytes_one_gets_them,
    the_records_follow_the_engine,
    what_is_recorded_after_the_list_stays,
    forgotten_images_make_room,
    a_deployment_of_somebody_else_is_not_recorded,
);

fn image(letter: char, bytes: u64) -> ImageSize {
    ImageSize { id: format!("sha256:{}", letter.to_string().repeat(64)).parse().unwrap(), bytes }
}

fn at_most(limit: u64) -> Quota {
    Quota { resource: Resource::ImageBytes, limit }
}

async fn record(
    db: &Database,
    deployment: &Deployment,
    images: &[ImageSize],
    limit: u64,
) -> Result<(), StoreError> {
    let scope = Scope::of_record(deployment.organization_id);
    db.record(scope, deployment.id, images.to_vec(), at_most(limit), at(10)).await
}

fn exceeded(outcome: &Result<(), StoreError>) -> Option<(u64, u64, u64)> {
    match outcome {
        Err(StoreError::QuotaExceeded(QuotaExceeded { used, wanted, limit, .. })) => {
            Some((*used, *wanted, *limit))
        }
        _ => None,
    }
}

/// The use by both ways to it.
async fn used(db: &Database, resident: &Resident) -> u64 {
    let used = db.used(resident.scope()).await.unwrap();
    let usage = db.usage(resident.scope(), at(0)).await.unwrap();
    assert!(usage.contains(&(Resource::ImageBytes, used)), "{usage:?}");
    used
}

/// Deployments of one application of a new resident.
async fn deployments(db: &Database, name: &str) -> (Resident, [Deployment; 3]) {
    let resident = Resident::of(db, name).await;
    let web = stored(db, &resident, "web").await;
    let deployments = [deploy(db, &web, 1).await, deploy(db, &web, 2).await, deploy(db, &web, 3).await];
    (resident, deployments)
}

async fn images_are_counted_for_their_organization(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    let (grace, of_grace) = deployments(&db, "grace").await;
    record(&db, &of_ada[0], &[image('a', 100), image('b', 20)], 0).await.unwrap();
    record(&db, &of_ada[1], &[image('c', 3)], 0).await.unwrap();
    // The same image of another organization is its own.
    record(&db, &of_grace[0], &[image('a', 100)], 0).await.unwrap();
    assert_eq!((used(&db, &ada).await, used(&db, &grace).await), (123, 100));
    // An attempt that is repeated has other images.
    record(&db, &of_ada[0], &[image('d', 7)], 0).await.unwrap();
    assert_eq!(used(&db, &ada).await, 10);
}

async fn an_image_of_several_deployments_counts_once(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    record(&db, &of_ada[0], &[image('a', 100)], 100).await.unwrap();
    record(&db, &of_ada[1], &[image('a', 100), image('a', 100)], 100).await.unwrap();
    assert_eq!(used(&db, &ada).await, 100);
    db.forget(vec![of_ada[0].id]).await.unwrap();
    assert_eq!(used(&db, &ada).await, 100);
}

async fn a_quota_of_bytes_holds_on_both_sides(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    record(&db, &of_ada[0], &[image('a', 60)], 100).await.unwrap();
    let refused = record(&db, &of_ada[1], &[image('b', 41)], 100).await;
    assert_eq!(exceeded(&refused), Some((60, 41, 100)));
    assert_eq!(used(&db, &ada).await, 60);
    record(&db, &of_ada[1], &[image('b', 40)], 100).await.unwrap();
    assert_eq!(used(&db, &ada).await, 100);
}

async fn what_exists_is_recorded_again_beyond_a_lowered_quota(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    record(&db, &of_ada[0], &[image('a', 100)], 0).await.unwrap();
    record(&db, &of_ada[1], &[image('a', 100)], 10).await.unwrap();
    let refused = record(&db, &of_ada[2], &[image('a', 100), image('b', 1)], 10).await;
    assert_eq!(exceeded(&refused), Some((100, 1, 10)));
    assert_eq!(used(&db, &ada).await, 100);
}

async fn of_many_at_the_last_bytes_one_gets_them(fresh: &Fresh) {
    let db = fresh.database.clone();
    // A SQLite file has one server.
    let replica = if fresh.folder().is_some() { db.clone() } else { fresh.open_again() };
    let servers = [db, replica];
    let (ada, _) = deployments(&servers[0], "ada").await;
    let web = stored(&servers[0], &ada, "many").await;
    let mut tasks = JoinSet::new();
    for (number, letter) in (1..).zip("abcdef".chars()) {
        let deployment = deploy(&servers[0], &web, 10 + number).await;
        let db = servers[usize::try_from(number).unwrap() % 2].clone();
        tasks.spawn(async move { record(&db, &deployment, &[image(letter, 60)], 100).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| exceeded(outcome) == Some((60, 60, 100))).count(), 5);
    assert_eq!(used(&servers[0], &ada).await, 60);
}

fn found(deployment: DeploymentId, image: ImageSize) -> ImageRecord {
    ImageRecord { deployment, image }
}

async fn the_records_follow_the_engine(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    record(&db, &of_ada[0], &[image('a', 100)], 0).await.unwrap();
    record(&db, &of_ada[1], &[image('b', 20)], 0).await.unwrap();
    // One was removed by hand, one is older than the records, and one belongs to an unknown deployment.
    let there = vec![
        found(of_ada[1].id, image('b', 20)),
        found(of_ada[2].id, image('c', 3)),
        found(id(), image('d', 1000)),
    ];
    for _ in 0..2 {
        db.synchronize(there.clone(), at(20)).await.unwrap();
        assert_eq!(used(&db, &ada).await, 23);
    }
    db.synchronize(vec![], at(30)).await.unwrap();
    assert_eq!(used(&db, &ada).await, 0);
}

async fn what_is_recorded_after_the_list_stays(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    record(&db, &of_ada[0], &[image('a', 100)], 0).await.unwrap();
    db.synchronize(vec![], at(10)).await.unwrap();
    assert_eq!(used(&db, &ada).await, 100);
    db.synchronize(vec![], at(11)).await.unwrap();
    assert_eq!(used(&db, &ada).await, 0);
}

async fn forgotten_images_make_room(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    record(&db, &of_ada[0], &[image('a', 100)], 100).await.unwrap();
    assert!(exceeded(&record(&db, &of_ada[1], &[image('b', 1)], 100).await).is_some());
    db.forget(vec![of_ada[0].id, id()]).await.unwrap();
    record(&db, &of_ada[1], &[image('b', 100)], 100).await.unwrap();
    assert_eq!(used(&db, &ada).await, 100);
}

async fn a_deployment_of_somebody_else_is_not_recorded(db: Database) {
    let (ada, of_ada) = deployments(&db, "ada").await;
    let (grace, _) = deployments(&db, "grace").await;
    let images = || vec![image('a', 1)];
    assert!(is_stale(&db.record(grace.scope(), of_ada[0].id, images(), at_most(0), at(10)).await));
    assert!(is_stale(&db.record(ada.scope(), id(), images(), at_most(0), at(10)).await));
    assert_eq!((used(&db, &ada).await, used(&db, &grace).await), (0, 0));
}
