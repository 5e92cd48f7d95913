//! Applications that are stopped or failed.

use launchway_database::Database;
use launchway_domain::{
    applications::{
        Application, ApplicationFilter, ApplicationRepository, ApplicationState, Health, Progress, Write,
    },
    deployments::{Deployment, DeploymentRepository, DeploymentState},
    ids::DeploymentId,
    organizations::Scope,
    store::{StoreError, UnitOfWork as _},
};
use launchway_testkit::builders::a_page;

use super::{again, delete, stored};
use crate::{
    builders::{Resident, at, commit, id, is_stale},
    deployments::{advance, bring_to_life, deploy},
};

contract!(
    an_application_is_stopped_and_started,
    what_has_no_live_version_is_neither_stopped_nor_started,
    a_live_version_is_failed_until_it_is_healthy_again,
    what_is_not_live_or_stopped_has_no_health,
    the_reason_of_a_breakdown_is_shown_while_it_lasts,
    the_reason_of_a_breakdown_is_of_its_version,
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

async fn set_health(
    db: &Database,
    deployment: DeploymentId,
    health: Health,
    seconds: i64,
) -> Result<(), StoreError> {
    let write = Write::SetHealth { deployment, health, at: at(seconds) };
    // Without an audit entry: what a version does on its own is in its log.
    db.commit(vec![write.into()]).await
}

fn broken(reason: &str) -> Health {
    Health::Broken(reason.to_owned())
}

/// Returns the reason that the detail of an application, its page and the detail of its deployment show.
async fn shown_reason(db: &Database, deployment: &Deployment) -> Option<String> {
    let (scope, id) = (Scope::of_record(deployment.organization_id), deployment.application_id);
    let detail = super::detail(db, scope, id).await.unwrap().summary.breakdown;
    let page = ApplicationRepository::page(db, scope, &ApplicationFilter::default(), a_page(1, 10)).await;
    let of_page = page.unwrap().items.into_iter().find(|item| item.application.id == id).unwrap();
    let of_deployment = DeploymentRepository::detail(db, scope, deployment.id).await.unwrap().unwrap();
    assert_eq!(detail, of_page.breakdown);
    assert_eq!(detail, of_deployment.application.breakdown);
    detail
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

async fn a_live_version_is_failed_until_it_is_healthy_again(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    for (health, state, seconds) in [
        (broken("it exited"), ApplicationState::Failed, 10),
        (Health::Healthy, ApplicationState::Running, 20),
    ] {
        set_health(&db, deployment.id, health, seconds).await.unwrap();
        let application = again(&db, &running).await;
        assert_eq!((application.status.state, application.status.updated_at), (state, at(seconds)));
        assert_eq!(application.live, Some(deployment.id));
    }
}

async fn what_is_not_live_or_stopped_has_no_health(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    let waiting = deploy(&db, &running, 2).await;
    let before = again(&db, &running).await;
    for other in [waiting.id, id()] {
        assert!(is_stale(&set_health(&db, other, broken("it exited"), 10).await));
        assert_eq!(again(&db, &running).await, before);
    }
    set_stopped(&db, &running, true, 11).await.unwrap();
    let stopped = again(&db, &running).await;
    for health in [broken("it exited"), Health::Healthy] {
        assert!(is_stale(&set_health(&db, deployment.id, health, 12).await));
        assert_eq!(again(&db, &running).await, stopped);
    }
    assert_eq!(shown_reason(&db, &deployment).await, None);
    set_stopped(&db, &running, false, 13).await.unwrap();
    delete(&db, &running, 14).await.unwrap();
    assert!(is_stale(&set_health(&db, deployment.id, Health::Healthy, 15).await));
}

async fn the_reason_of_a_breakdown_is_shown_while_it_lasts(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    assert_eq!(shown_reason(&db, &deployment).await, None);
    for reason in ["it exited with code 1", "it does not pass its check: status 503 \u{1f680}"] {
        set_health(&db, deployment.id, broken(reason), 10).await.unwrap();
        assert_eq!(shown_reason(&db, &deployment).await.as_deref(), Some(reason));
        let live = db.live().await.unwrap();
        assert_eq!(live[0].deployment.breakdown.as_deref(), Some(reason));
    }
    set_health(&db, deployment.id, Health::Healthy, 20).await.unwrap();
    assert_eq!(shown_reason(&db, &deployment).await, None);
    set_health(&db, deployment.id, broken("it was removed"), 30).await.unwrap();
    set_stopped(&db, &running, true, 40).await.unwrap();
    assert_eq!(shown_reason(&db, &deployment).await, None, "nobody expects it to serve");
}

async fn the_reason_of_a_breakdown_is_of_its_version(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    set_health(&db, deployment.id, broken("it exited"), 10).await.unwrap();
    let next = deploy(&db, &running, 2).await;
    bring_to_life(&db, next.id, 20).await;
    assert_eq!(shown_reason(&db, &next).await, None);
    set_health(&db, next.id, broken("it was removed"), 30).await.unwrap();
    assert_eq!(shown_reason(&db, &next).await.as_deref(), Some("it was removed"));
}

async fn a_state_that_stays_keeps_its_moment(db: Database) {
    let (running, deployment) = a_running_one(&db).await;
    set_health(&db, deployment.id, Health::Healthy, 50).await.unwrap();
    assert_eq!(again(&db, &running).await.status, running.status);
    set_stopped(&db, &running, true, 60).await.unwrap();
    set_stopped(&db, &running, true, 70).await.unwrap();
    assert_eq!(again(&db, &running).await.status.updated_at, at(60));
    let next = deploy(&db, &running, 2).await;
    advance(&db, next.id, DeploymentState::Cloning, 80).await.unwrap();
    let state = ApplicationState::InProgress(Progress::Cloning);
    assert_eq!(again(&db, &running).await.status.state, state);
}
