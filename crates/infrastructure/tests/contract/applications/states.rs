//! Applications that are stopped, or do not stay up.

use launchway_domain::{
    applications::{Application, ApplicationState, Progress, Write},
    deployments::{Deployment, DeploymentState},
    ids::DeploymentId,
    organizations::Scope,
    store::{StoreError, UnitOfWork as _},
};
use launchway_infrastructure::database::Database;

use super::{again, delete, stored};
use crate::{
    builders::{Resident, at, commit, id, is_stale},
    deployments::{advance, bring_to_life, deploy},
};

contract!(
    an_application_is_stopped_and_started,
    what_has_no_live_version_is_neither_stopped_nor_started,
    a_live_version_that_does_not_stay_up_fails_until_it_does_again,
    what_is_not_live_does_not_change_whether_the_application_is_stable,
    a_state_that_stays_keeps_its_moment,
);

pub(crate) async fn set_stopped(
    db: &Database,
    application: &Application,
    is_stopped: bool,
    seconds: i64,
) -> Result<(), StoreError> {
    let scope = Scope::of_record(application.organization_id);
    commit(db, Write::SetStopped { scope, id: application.id, is_stopped, at: at(seconds) }).await
}

async fn set_stable(db: &Database, deployment: DeploymentId, is_stable: bool, seconds: i64) {
    let write = Write::SetStable { deployment, is_stable, at: at(seconds) };
    // Without an entry: what a version does by itself is in its log.
    db.commit(vec![write.into()]).await.unwrap();
}

async fn a_running_one(db: &Database) -> (Application, Deployment) {
    let ada = Resident::of(db, "ada").await;
    let application = stored(db, &ada, "web").await;
    let deployment = deploy(db, &application, 1).await;
    bring_to_life(db, deployment.id, 2).await;
    (again(db, &application).await, deployment)
}

async fn an_application_is_stopped_and_started(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    assert_eq!((running.status.state, running.live), (ApplicationState::Running, Some(deployment.id)));
    set_stopped(&db, &running, true, 10).await.unwrap();
    let stopped = again(&db, &running).await;
    assert_eq!((stopped.status.state, stopped.is_stopped), (ApplicationState::Stopped, true));
    assert_eq!((stopped.status.updated_at, stopped.updated_at), (at(10), at(10)));
    assert_eq!(stopped.live, Some(deployment.id));
    set_stopped(&db, &running, false, 20).await.unwrap();
    let started = again(&db, &running).await;
    assert_eq!((started.status.state, started.is_stopped), (ApplicationState::Running, false));
    assert_eq!(started.status.updated_at, at(20));
}

async fn what_has_no_live_version_is_neither_stopped_nor_started(db: Database) {
    let (running, _) = a_running_one(&db).await;
    let bob = Resident::of(&db, "bob").await;
    let never_deployed = stored(&db, &bob, "web").await;
    let foreign = Application { organization_id: bob.organization.id, ..running.clone() };
    for is_stopped in [true, false] {
        for application in [&never_deployed, &foreign, &Application { id: id(), ..running.clone() }] {
            assert!(is_stale(&set_stopped(&db, application, is_stopped, 5).await));
        }
    }
    assert_eq!(again(&db, &running).await, running);
    assert_eq!(again(&db, &never_deployed).await, never_deployed);
    delete(&db, &running, 6).await.unwrap();
    assert!(is_stale(&set_stopped(&db, &running, true, 7).await));
}

async fn a_live_version_that_does_not_stay_up_fails_until_it_does_again(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    for (is_stable, state, seconds) in
        [(false, ApplicationState::Failed, 10), (true, ApplicationState::Running, 20)]
    {
        set_stable(&db, deployment.id, is_stable, seconds).await;
        let application = again(&db, &running).await;
        assert_eq!((application.status.state, application.status.updated_at), (state, at(seconds)));
        assert_eq!(application.live, Some(deployment.id));
    }
}

async fn what_is_not_live_does_not_change_whether_the_application_is_stable(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    let waiting = deploy(&db, &running, 2).await;
    let before = again(&db, &running).await;
    for other in [waiting.id, id()] {
        set_stable(&db, other, false, 10).await;
        assert_eq!(again(&db, &running).await, before);
    }
    set_stopped(&db, &running, true, 11).await.unwrap();
    let stopped = again(&db, &running).await;
    for is_stable in [false, true] {
        set_stable(&db, deployment.id, is_stable, 12).await;
        assert_eq!(again(&db, &running).await, stopped);
    }
}

async fn a_state_that_stays_keeps_its_moment(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    set_stable(&db, deployment.id, true, 50).await;
    assert_eq!(again(&db, &running).await.status, running.status);
    set_stopped(&db, &running, true, 60).await.unwrap();
    set_stopped(&db, &running, true, 70).await.unwrap();
    assert_eq!(again(&db, &running).await.status.updated_at, at(60));
    let next = deploy(&db, &running, 2).await;
    advance(&db, next.id, DeploymentState::Cloning, 80).await.unwrap();
    let state = ApplicationState::UnderWay(Progress::Cloning);
    assert_eq!(again(&db, &running).await.status.state, state);
}
