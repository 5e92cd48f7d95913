//! The state of an application, derived from its deployments.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, ApplicationState as A, Progress},
    deployments::DeploymentState as S,
};

use super::{advance, bring_to_life, deploy, go_live, web};
use crate::{applications::again, applications::set_stopped, builders::at};

contract!(
    an_application_without_a_version_is_what_its_deployment_is,
    a_failed_first_deployment_fails_the_application,
    what_goes_live_runs,
    open_deployments_do_not_change_a_running_application,
    a_stopped_application_shows_its_open_deployment_meanwhile,
    what_goes_live_starts_a_stopped_application,
    the_newest_open_deployment_decides_the_status,
    an_older_deployment_that_ends_does_not_hide_an_open_one,
    when_the_newest_ends_the_one_that_still_runs_decides,
);

const QUEUED: A = A::InProgress(Progress::Queued);
const CLONING: A = A::InProgress(Progress::Cloning);
const BUILDING: A = A::InProgress(Progress::Building);
const DEPLOYING: A = A::InProgress(Progress::Deploying);

async fn is(db: &Database, application: &Application) -> A {
    again(db, application).await.status.state
}

async fn an_application_without_a_version_is_what_its_deployment_is(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    assert_eq!(is(&db, &application).await, QUEUED);
    for (seconds, to, expected) in [
        (10, S::Cloning, CLONING),
        (11, S::Building, BUILDING),
        (12, S::Queued, QUEUED),
        (13, S::Deploying, DEPLOYING),
    ] {
        advance(&db, deployment.id, to, seconds).await.unwrap();
        let application = again(&db, &application).await;
        assert_eq!((application.status.state, application.status.updated_at), (expected, at(seconds)));
        assert_eq!(application.updated_at, at(seconds));
    }
}

async fn a_failed_first_deployment_fails_the_application(db: Database) {
    let application = web(&db).await;
    for (number, end) in [(1, S::Failed), (2, S::Cancelled)] {
        let deployment = deploy(&db, &application, number).await;
        assert_eq!(is(&db, &application).await, QUEUED);
        advance(&db, deployment.id, end, 10).await.unwrap();
        assert_eq!(is(&db, &application).await, A::Failed);
    }
}

async fn what_goes_live_runs(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    advance(&db, deployment.id, S::Deploying, 2).await.unwrap();
    go_live(&db, deployment.id, 3).await.unwrap();
    let live = again(&db, &application).await;
    assert_eq!((live.status.state, live.live, live.is_stopped), (A::Running, Some(deployment.id), false));
    assert_eq!((live.status.updated_at, live.updated_at), (at(3), at(3)));
    advance(&db, deployment.id, S::Deployed, 4).await.unwrap();
    assert_eq!(again(&db, &application).await, live);
}

async fn open_deployments_do_not_change_a_running_application(db: Database) {
    let application = web(&db).await;
    let first = deploy(&db, &application, 1).await;
    bring_to_life(&db, first.id, 2).await;
    let running = again(&db, &application).await;
    for (number, end) in [(2, S::Failed), (3, S::Cancelled)] {
        let deployment = deploy(&db, &application, number).await;
        for to in [S::Cloning, S::Building, S::Queued, S::Deploying, end] {
            advance(&db, deployment.id, to, 10).await.unwrap();
            assert_eq!(again(&db, &application).await, running);
        }
    }
    let next = deploy(&db, &application, 4).await;
    bring_to_life(&db, next.id, 20).await;
    let newer = again(&db, &application).await;
    assert_eq!((newer.live, newer.status), (Some(next.id), running.status));
}

async fn a_stopped_application_shows_its_open_deployment_meanwhile(db: Database) {
    let application = web(&db).await;
    let first = deploy(&db, &application, 1).await;
    bring_to_life(&db, first.id, 2).await;
    set_stopped(&db, &application, true, 3).await.unwrap();
    for (number, end) in [(2, S::Failed), (3, S::Cancelled)] {
        let deployment = deploy(&db, &application, number).await;
        assert_eq!(is(&db, &application).await, QUEUED);
        advance(&db, deployment.id, S::Cloning, 10).await.unwrap();
        assert_eq!(is(&db, &application).await, CLONING);
        advance(&db, deployment.id, end, 11).await.unwrap();
        let stopped = again(&db, &application).await;
        assert_eq!((stopped.status.state, stopped.is_stopped), (A::Stopped, true));
        assert_eq!(stopped.live, Some(first.id));
    }
}

async fn what_goes_live_starts_a_stopped_application(db: Database) {
    let application = web(&db).await;
    let first = deploy(&db, &application, 1).await;
    bring_to_life(&db, first.id, 2).await;
    set_stopped(&db, &application, true, 3).await.unwrap();
    let second = deploy(&db, &application, 4).await;
    bring_to_life(&db, second.id, 5).await;
    let running = again(&db, &application).await;
    assert_eq!((running.status.state, running.is_stopped), (A::Running, false));
    assert_eq!(running.live, Some(second.id));
}

async fn the_newest_open_deployment_decides_the_status(db: Database) {
    let application = web(&db).await;
    let old = deploy(&db, &application, 1).await;
    advance(&db, old.id, S::Cloning, 2).await.unwrap();
    let new = deploy(&db, &application, 3).await;
    assert_eq!(is(&db, &application).await, QUEUED);
    advance(&db, old.id, S::Building, 4).await.unwrap();
    assert_eq!(is(&db, &application).await, QUEUED);
    advance(&db, new.id, S::Cloning, 5).await.unwrap();
    assert_eq!(is(&db, &application).await, CLONING);
}

async fn an_older_deployment_that_ends_does_not_hide_an_open_one(db: Database) {
    let application = web(&db).await;
    for (number, end) in [(1, S::Failed), (3, S::Cancelled)] {
        let old = deploy(&db, &application, number).await;
        let new = deploy(&db, &application, number + 1).await;
        advance(&db, old.id, end, 10).await.unwrap();
        assert_eq!(is(&db, &application).await, QUEUED);
        advance(&db, new.id, S::Failed, 11).await.unwrap();
        assert_eq!(is(&db, &application).await, A::Failed);
    }
}

async fn when_the_newest_ends_the_one_that_still_runs_decides(db: Database) {
    let application = web(&db).await;
    let old = deploy(&db, &application, 1).await;
    advance(&db, old.id, S::Cloning, 2).await.unwrap();
    let new = deploy(&db, &application, 3).await;
    advance(&db, new.id, S::Cancelled, 4).await.unwrap();
    assert_eq!(is(&db, &application).await, CLONING);
    advance(&db, old.id, S::Failed, 5).await.unwrap();
    assert_eq!(is(&db, &application).await, A::Failed);
}
