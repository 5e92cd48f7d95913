//! Live versions, and the records about the retention of deployments.

use launchway_database::Database;
use launchway_domain::{
    deployments::{
        Deployment, DeploymentKind, DeploymentRepository as _, DeploymentState as S, KeptVersions,
        LiveVersion, RetentionStatus,
    },
    ids::DeploymentId,
};
use launchway_testkit::builders::a_deployment;

use super::{bring_to_life, deploy, insert_deployment, now, web};
use crate::{
    applications::{again, delete, set_stopped, stored},
    builders::{Resident, id},
};

contract!(
    live_versions_are_those_of_the_whole_installation,
    a_stopped_application_still_has_its_live_version,
    a_deleted_application_has_no_live_version,
    what_stands_is_live_open_or_worth_keeping,
    nothing_of_a_deleted_application_is_live_or_worth_keeping,
    many_are_returned_at_once_and_the_unknown_left_out,
    the_newest_versions_are_kept_and_what_they_went_back_to,
);

pub(super) async fn retention_status(db: &Database, deployments: &[DeploymentId]) -> Vec<RetentionStatus> {
    db.retention_status(deployments, KeptVersions::default()).await.unwrap()
}

async fn live_versions_are_those_of_the_whole_installation(db: Database) {
    let mut expected = Vec::new();
    for name in ["ada", "bob"] {
        let resident = Resident::of(&db, name).await;
        let application = stored(&db, &resident, "web").await;
        let deployment = deploy(&db, &application, 1).await;
        bring_to_life(&db, deployment.id, 2).await;
        deploy(&db, &application, 3).await;
        stored(&db, &resident, "never deployed").await;
        let application = again(&db, &application).await;
        expected.push(LiveVersion { application, deployment: now(&db, &deployment).await });
    }
    expected.sort_by_key(|version| version.application.id);
    assert_eq!(*db.live().await.unwrap(), expected);
    assert_eq!(*db.live().await.unwrap(), expected, "again");
}

async fn a_stopped_application_still_has_its_live_version(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    bring_to_life(&db, deployment.id, 2).await;
    assert!(!db.live().await.unwrap()[0].application.is_stopped);
    set_stopped(&db, &application, true, 3).await.unwrap();
    let live = db.live().await.unwrap();
    assert_eq!(live.len(), 1);
    assert!(live[0].application.is_stopped);
    assert_eq!(live[0].deployment.id, deployment.id);
}

async fn a_deleted_application_has_no_live_version(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    bring_to_life(&db, deployment.id, 2).await;
    delete(&db, &application, 3).await.unwrap();
    assert_eq!(*db.live().await.unwrap(), []);
}

async fn what_stands_is_live_open_or_worth_keeping(db: Database) {
    let application = web(&db).await;
    for (number, state) in (1..).zip(S::ALL) {
        let deployment = a_deployment().of(&application).numbered(number).in_state(state).build();
        insert_deployment(&db, &deployment).await;
        let expected = RetentionStatus {
            deployment: deployment.id,
            is_live: false,
            is_open: !state.is_final(),
            is_worth_keeping: state == S::Deployed,
        };
        assert_eq!(retention_status(&db, &[deployment.id]).await, [expected], "{state:?}");
    }
    let live = deploy(&db, &application, 99).await;
    bring_to_life(&db, live.id, 100).await;
    let expected =
        RetentionStatus { deployment: live.id, is_live: true, is_open: false, is_worth_keeping: true };
    assert_eq!(retention_status(&db, &[live.id]).await, [expected]);
}

async fn nothing_of_a_deleted_application_is_live_or_worth_keeping(db: Database) {
    let application = web(&db).await;
    let (live, open) = (deploy(&db, &application, 1).await, deploy(&db, &application, 2).await);
    bring_to_life(&db, live.id, 3).await;
    delete(&db, &application, 4).await.unwrap();
    for (deployment, is_open) in [(live, false), (open, true)] {
        let id = deployment.id;
        let expected = RetentionStatus { deployment: id, is_live: false, is_open, is_worth_keeping: false };
        assert_eq!(retention_status(&db, &[id]).await, [expected]);
    }
}

async fn many_are_returned_at_once_and_the_unknown_left_out(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    assert_eq!(retention_status(&db, &[]).await, []);
    let mut ids: Vec<DeploymentId> = (0..2500).map(|_| id()).collect();
    ids.push(deployment.id);
    let statuses = retention_status(&db, &ids).await;
    assert_eq!(statuses.iter().map(|one| one.deployment).collect::<Vec<_>>(), [deployment.id]);
}

/// Returns the indexes of those that are kept with this number of versions.
async fn kept(db: &Database, deployments: &[Deployment], versions: u16) -> Vec<usize> {
    let ids: Vec<DeploymentId> = deployments.iter().map(|deployment| deployment.id).collect();
    let statuses = db.retention_status(&ids, KeptVersions(versions)).await.unwrap();
    let is_kept = |id: DeploymentId| statuses.iter().any(|one| one.deployment == id && one.is_worth_keeping);
    (0..ids.len()).filter(|place| is_kept(ids[*place])).collect()
}

async fn the_newest_versions_are_kept_and_what_they_went_back_to(db: Database) {
    let application = web(&db).await;
    let mut deployments = Vec::new();
    for number in 0..6 {
        let state = if number == 4 { S::Failed } else { S::Deployed };
        let deployment = a_deployment().of(&application).numbered(10 + number).in_state(state).build();
        let created_at = crate::builders::at(number.into());
        let deployment = Deployment { created_at, ..deployment };
        insert_deployment(&db, &deployment).await;
        deployments.push(deployment);
    }
    // What failed takes no place.
    assert_eq!(kept(&db, &deployments, 1).await, [5]);
    assert_eq!(kept(&db, &deployments, 2).await, [3, 5]);
    assert_eq!(kept(&db, &deployments, 5).await, [0, 1, 2, 3, 5]);
    assert_eq!(kept(&db, &deployments, 1024).await, [0, 1, 2, 3, 5]);
    // One that waits to go back needs what it goes back to, and so does one that did.
    let kind = DeploymentKind::Rollback { to: deployments[1].id };
    let back = a_deployment().of(&application).numbered(30).in_state(S::Queued).build();
    let back = Deployment { kind, created_at: crate::builders::at(9), ..back };
    insert_deployment(&db, &back).await;
    assert_eq!(kept(&db, &deployments, 1).await, [1, 5]);
    let again = DeploymentKind::Rollback { to: back.id };
    let done = a_deployment().of(&application).numbered(31).in_state(S::Deployed).build();
    let done = Deployment { kind: again, created_at: crate::builders::at(10), ..done };
    insert_deployment(&db, &done).await;
    assert_eq!(kept(&db, &deployments, 1).await, [1]);
    // The live one stays, however old it is.
    let old = deploy(&db, &application, 0).await;
    bring_to_life(&db, old.id, 1).await;
    deployments.push(now(&db, &old).await);
    assert_eq!(kept(&db, &deployments, 1).await, [1, 6]);
    // Another application's versions take no places here.
    let other = stored(&db, &Resident::of(&db, "grace").await, "other").await;
    let theirs = a_deployment().of(&other).numbered(40).in_state(S::Deployed).build();
    insert_deployment(&db, &theirs).await;
    deployments.push(theirs);
    assert_eq!(kept(&db, &deployments, 1).await, [1, 6, 7]);
}
