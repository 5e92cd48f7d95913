//! Deployments whose state no longer matches their job.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, ApplicationState as A, Progress},
    deployments::{Deployment, DeploymentState as S, Write},
    ids::ApplicationId,
    jobs::{self, ClaimLimits, ClaimedJob, JobKind, JobQueue as _, NewJob, Outcome, WorkerId},
    logs::Level,
    organizations::Scope,
    store::{self, UnitOfWork as _},
};
use launchway_testkit::builders::a_deployment;
use uuid::Uuid;

use super::{advance, bring_to_life, deploy, now, scope, web};
use crate::{
    applications::{again, delete, insert},
    builders::{at, audited, id},
    logs::lines_of,
};

contract!(
    what_is_where_its_job_is_stays,
    a_deployment_waits_again_when_its_job_does,
    a_superseded_deployment_is_cancelled_and_names_its_successor,
    a_deployment_whose_job_was_cancelled_is_cancelled,
    a_deployment_whose_job_failed_fails_and_says_why,
    a_deployment_that_its_job_left_behind_fails,
    what_has_finished_does_not_follow,
    a_version_that_is_live_only_goes_forward,
    deployments_of_one_application_follow_alone,
    a_running_application_is_not_changed_by_what_follows,
    deployments_of_a_deleted_application_follow_without_a_word,
    more_than_a_thousand_deployments_take_several_calls,
);

pub(super) fn job_of(deployment: &Deployment) -> NewJob {
    NewJob {
        id: deployment.job_id,
        kind: JobKind::Deploy,
        scope: Scope::of_record(deployment.organization_id),
        subject: Uuid::from(deployment.application_id).into(),
        replaceable: true,
        payload: String::new(),
        pool: jobs::Pool::Builds,
        run_at: at(0),
        enqueued_at: at(0),
    }
}

/// A queued deployment with its job.
pub(crate) async fn queued(db: &Database, application: &Application, number: u32) -> Deployment {
    let deployment = deploy(db, application, number).await;
    db.commit(vec![jobs::Write::Enqueue(job_of(&deployment)).into()]).await.unwrap();
    deployment
}

async fn claim(db: &Database) -> ClaimedJob {
    let limits = ClaimLimits { builds: 100, operations: 100, per_organization: 100 };
    let worker = WorkerId { instance: Uuid::nil().into(), boot: Uuid::nil().into(), worker: 1 };
    db.claim(&worker, limits, at(1), at(100)).await.unwrap().unwrap()
}

/// A deployment whose job a worker runs.
pub(crate) async fn building(
    db: &Database,
    application: &Application,
    number: u32,
) -> (Deployment, ClaimedJob) {
    let deployment = queued(db, application, number).await;
    let claimed = claim(db).await;
    advance(db, deployment.id, S::Cloning, 2).await.unwrap();
    advance(db, deployment.id, S::Building, 3).await.unwrap();
    (now(db, &deployment).await, claimed)
}

pub(crate) async fn settle(db: &Database, claimed: &ClaimedJob, outcome: Outcome) {
    let settle = jobs::Write::Settle { lease: claimed.lease, outcome, at: at(5) };
    db.commit(vec![settle.into()]).await.unwrap();
}

pub(crate) async fn follow(db: &Database, application: Option<ApplicationId>) {
    db.commit(vec![Write::FollowJobs { application, at: at(9) }.into()]).await.unwrap();
}

/// Asserts the state of a deployment, and its log line.
async fn assert_went(db: &Database, before: &Deployment, to: S, line: Option<(Level, &str)>) {
    let after = now(db, before).await;
    let mut expected = Deployment { updated_at: at(9), ..before.clone() };
    expected.status.state = to;
    expected.status.updated_at = at(9);
    assert_eq!(after, expected);
    let lines = lines_of(db, before).await;
    let reported: Vec<_> = lines.iter().map(|line| (line.level, line.text.as_str(), line.at)).collect();
    assert_eq!(reported, line.map(|(level, text)| (level, text, at(9))).into_iter().collect::<Vec<_>>());
}

async fn what_is_where_its_job_is_stays(db: Database) {
    let application = web(&db).await;
    let (building, _) = building(&db, &application, 1).await;
    let waiting = queued(&db, &application, 2).await;
    let before = again(&db, &application).await;
    follow(&db, None).await;
    follow(&db, Some(application.id)).await;
    for deployment in [building, waiting] {
        assert_eq!(now(&db, &deployment).await, deployment);
        assert_eq!(lines_of(&db, &deployment).await, []);
    }
    assert_eq!(again(&db, &application).await, before);
}

async fn a_deployment_waits_again_when_its_job_does(db: Database) {
    let application = web(&db).await;
    let (deployment, claimed) = building(&db, &application, 1).await;
    db.retry(&claimed.lease, "no disk", at(5), at(5)).await.unwrap();
    follow(&db, Some(application.id)).await;
    assert_went(&db, &deployment, S::Queued, None).await;
    assert_eq!(again(&db, &application).await.status.state, A::InProgress(Progress::Queued));
}

async fn a_superseded_deployment_is_cancelled_and_names_its_successor(db: Database) {
    let application = web(&db).await;
    let waiting = queued(&db, &application, 1).await;
    let newer = queued(&db, &application, 2).await;
    follow(&db, Some(application.id)).await;
    let expected = format!("Cancelled: replaced by deployment {}", newer.id);
    assert_went(&db, &waiting, S::Cancelled, Some((Level::Info, &expected))).await;
    assert_eq!(now(&db, &newer).await, newer);
    assert_eq!(again(&db, &application).await.status.state, A::InProgress(Progress::Queued));
}

async fn a_deployment_whose_job_was_cancelled_is_cancelled(db: Database) {
    let application = web(&db).await;
    let waiting = queued(&db, &application, 1).await;
    let cancel = jobs::Write::RequestCancel { scope: scope(&application), id: waiting.job_id, at: at(5) };
    let follow = Write::FollowJobs { application: Some(application.id), at: at(9) };
    db.commit(audited(vec![cancel.into(), follow.into()])).await.unwrap();
    assert_went(&db, &waiting, S::Cancelled, Some((Level::Info, "Cancelled"))).await;
    assert_eq!(again(&db, &application).await.status.state, A::Failed);
}

async fn a_deployment_whose_job_failed_fails_and_says_why(db: Database) {
    let application = web(&db).await;
    let (deployment, claimed) = building(&db, &application, 1).await;
    settle(&db, &claimed, Outcome::Failed { reason: "no such \u{1b}[1mbranch\u{7}".to_owned() }).await;
    follow(&db, None).await;
    let expected = (Level::Error, "Failed: no such branch\\u{7}");
    assert_went(&db, &deployment, S::Failed, Some(expected)).await;
    assert_eq!(again(&db, &application).await.status.state, A::Failed);
    follow(&db, None).await;
    assert_eq!(lines_of(&db, &deployment).await.len(), 1);
}

async fn a_deployment_that_its_job_left_behind_fails(db: Database) {
    let application = web(&db).await;
    let (deployment, claimed) = building(&db, &application, 1).await;
    settle(&db, &claimed, Outcome::Succeeded).await;
    follow(&db, None).await;
    let expected = (Level::Error, "Failed: its job ended without an outcome");
    assert_went(&db, &deployment, S::Failed, Some(expected)).await;
}

async fn what_has_finished_does_not_follow(db: Database) {
    let application = web(&db).await;
    let deployment = queued(&db, &application, 1).await;
    let claimed = claim(&db).await;
    bring_to_life(&db, deployment.id, 4).await;
    settle(&db, &claimed, Outcome::Failed { reason: "late".to_owned() }).await;
    let before = now(&db, &deployment).await;
    follow(&db, None).await;
    assert_eq!(now(&db, &deployment).await, before);
    assert_eq!(lines_of(&db, &deployment).await, []);
}

async fn a_version_that_is_live_only_goes_forward(db: Database) {
    let application = web(&db).await;
    let (deployment, claimed) = building(&db, &application, 1).await;
    advance(&db, deployment.id, S::Deploying, 4).await.unwrap();
    db.commit(vec![Write::GoLive { id: deployment.id, at: at(4) }.into()]).await.unwrap();
    db.release(&claimed.lease, at(1)).await.unwrap();
    follow(&db, None).await;
    assert_eq!(now(&db, &deployment).await.status.state, S::Deploying);

    let claimed = claim(&db).await;
    settle(&db, &claimed, Outcome::Failed { reason: "the worker was lost".to_owned() }).await;
    follow(&db, None).await;
    assert_eq!(now(&db, &deployment).await.status.state, S::Deployed);
    assert_eq!(again(&db, &application).await.status.state, A::Running);
}

async fn deployments_of_one_application_follow_alone(db: Database) {
    let web = web(&db).await;
    let mut api = Application { id: id(), ..web.clone() };
    api.blueprint.name = "api".parse().unwrap();
    insert(&db, &api).await.unwrap();
    let mut strays = Vec::new();
    for application in [&web, &api] {
        strays.push(queued(&db, application, 1).await);
        queued(&db, application, 2).await;
    }
    follow(&db, Some(web.id)).await;
    assert_eq!(now(&db, &strays[0]).await.status.state, S::Cancelled);
    assert_eq!(now(&db, &strays[1]).await, strays[1]);
    follow(&db, None).await;
    assert_eq!(now(&db, &strays[1]).await.status.state, S::Cancelled);
}

async fn a_running_application_is_not_changed_by_what_follows(db: Database) {
    let application = web(&db).await;
    let first = deploy(&db, &application, 1).await;
    bring_to_life(&db, first.id, 2).await;
    let running = again(&db, &application).await;
    let stray = queued(&db, &application, 3).await;
    queued(&db, &application, 4).await;
    follow(&db, None).await;
    assert_eq!(now(&db, &stray).await.status.state, S::Cancelled);
    assert_eq!(again(&db, &application).await, running);
}

async fn deployments_of_a_deleted_application_follow_without_a_word(db: Database) {
    let application = web(&db).await;
    let stray = queued(&db, &application, 1).await;
    queued(&db, &application, 2).await;
    delete(&db, &application, 3).await.unwrap();
    follow(&db, None).await;
    let retention_status = super::live::retention_status(&db, &[stray.id]).await;
    assert!(!retention_status[0].is_open);
}

async fn more_than_a_thousand_deployments_take_several_calls(db: Database) {
    let application = web(&db).await;
    let a_stray =
        |number: u32| a_deployment().of(&application).numbered(number).created_at(at(number.into())).build();
    let strays: Vec<_> = (1..=1001).map(a_stray).collect();
    let mut writes: Vec<store::Write> = Vec::new();
    for stray in &strays {
        writes.push(Write::Insert(stray.clone()).into());
        writes.push(jobs::Write::Enqueue(job_of(stray)).into());
    }
    // The job that takes the place of the last one is of no deployment.
    writes.push(jobs::Write::Enqueue(NewJob { id: id(), ..job_of(&strays[0]) }).into());
    db.commit(audited(writes)).await.unwrap();
    let state = async |stray: &Deployment| now(&db, stray).await.status.state;
    follow(&db, None).await;
    assert_eq!((state(&strays[0]).await, state(&strays[999]).await), (S::Cancelled, S::Cancelled));
    assert_eq!(state(&strays[1000]).await, S::Queued);
    follow(&db, None).await;
    assert_eq!(state(&strays[1000]).await, S::Cancelled);
    assert_eq!(lines_of(&db, &strays[1000]).await[0].text, "Cancelled: replaced by a newer one");
    assert_eq!(again(&db, &application).await.status.state, A::Failed);
}
