//! Requests for deployments that are stored in one transaction.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, ApplicationState as A, Progress},
    deployments::{Deployment, DeploymentState as S, Write},
    jobs::{self, JobState, NewJob},
    logs,
    organizations::Scope,
    store::{self, UnitOfWork as _},
};
use launchway_testkit::builders::{a_deployment, a_log_line};

use super::{bring_to_life, deploy, jobs::job_of, now, page, scope};
use crate::{
    applications::{again, delete, stored},
    builders::{Resident, at, audited, is_stale},
    jobs::{a_worker, claim, job},
    logs::lines_of,
};

contract!(
    requests_for_many_applications_are_stored_together,
    the_last_of_several_requests_for_an_application_counts,
    other_writes_come_after_the_requests_before_them,
    a_request_for_an_application_that_is_gone_refuses_all,
);

/// Returns a deployment, and the writes that request it.
fn request(application: &Application, number: u32) -> (Deployment, Vec<store::Write>) {
    let deployment = a_deployment().of(application).numbered(number).created_at(at(number.into())).build();
    let job = NewJob { enqueued_at: deployment.created_at, ..job_of(&deployment) };
    let writes = vec![
        jobs::Write::Enqueue(job).into(),
        Write::Insert(deployment.clone()).into(),
        Write::FollowJobs { application: Some(application.id), at: deployment.created_at }.into(),
        logs::Write::Append(vec![a_log_line().of(&deployment).saying("requested").new_line()]).into(),
    ];
    (deployment, writes)
}

/// Commits the requests for these applications in one unit; returns their deployments.
async fn request_each(db: &Database, applications: &[Application], number: u32) -> Vec<Deployment> {
    let (deployments, writes): (Vec<_>, Vec<_>) =
        (number..).zip(applications).map(|(number, application)| request(application, number)).unzip();
    db.commit(audited(writes.concat())).await.unwrap();
    deployments
}

async fn texts(db: &Database, deployment: &Deployment) -> Vec<String> {
    lines_of(db, deployment).await.into_iter().map(|line| line.text).collect()
}

async fn assert_replaced(db: &Database, deployment: &Deployment, by: &Deployment) {
    assert_eq!(now(db, deployment).await.status.state, S::Cancelled);
    let line = format!("Cancelled: replaced by deployment {}", by.id);
    assert_eq!(texts(db, deployment).await, ["requested".to_owned(), line]);
    let job = job(db, Scope::of_record(by.organization_id), deployment.job_id).await;
    assert_eq!((job.state, job.superseded_by), (JobState::Superseded, Some(by.job_id)));
    assert_eq!(job.finished_at, Some(by.created_at));
}

async fn assert_waits(db: &Database, deployment: &Deployment) {
    assert_eq!(now(db, deployment).await, *deployment);
    assert_eq!(texts(db, deployment).await, ["requested"]);
}

async fn requests_for_many_applications_are_stored_together(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let mut applications = Vec::new();
    for number in 0..21 {
        let owner = if number % 3 == 0 { &grace } else { &ada };
        applications.push(stored(&db, owner, &format!("app-{number}")).await);
    }
    let live = deploy(&db, &applications[0], 900).await;
    bring_to_life(&db, live.id, 901).await;

    let earlier = request_each(&db, &applications, 1).await;
    for deployment in &earlier {
        assert_waits(&db, deployment).await;
    }
    let later = request_each(&db, &applications, 100).await;
    for (application, (earlier, later)) in applications.iter().zip(earlier.iter().zip(&later)) {
        assert_replaced(&db, earlier, later).await;
        assert_waits(&db, later).await;
        let expected =
            if application.id == applications[0].id { A::Running } else { A::InProgress(Progress::Queued) };
        assert_eq!(again(&db, application).await.status.state, expected);
    }
    // Both organizations take their turns.
    let claimed = [claim(&db, a_worker(), 200).await.unwrap(), claim(&db, a_worker(), 200).await.unwrap()];
    assert_ne!(claimed[0].job.scope, claimed[1].job.scope);
}

async fn the_last_of_several_requests_for_an_application_counts(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (web, api) = (stored(&db, &ada, "web").await, stored(&db, &ada, "api").await);
    let [first, second, third, other, last] =
        &request_each(&db, &[web.clone(), web.clone(), api.clone(), api, web], 1).await[..]
    else {
        panic!("five deployments")
    };
    assert_replaced(&db, first, second).await;
    assert_replaced(&db, second, last).await;
    assert_replaced(&db, third, other).await;
    assert_waits(&db, other).await;
    assert_waits(&db, last).await;
}

async fn other_writes_come_after_the_requests_before_them(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (web, api) = (stored(&db, &ada, "web").await, stored(&db, &ada, "api").await);
    let ((cancelled, one), (waits, other)) = (request(&web, 1), request(&api, 2));
    let cancel = vec![
        jobs::Write::RequestCancel { scope: scope(&web), id: cancelled.job_id, at: at(5) }.into(),
        Write::FollowJobs { application: Some(web.id), at: at(5) }.into(),
    ];
    db.commit(audited([one, cancel, other].concat())).await.unwrap();
    assert_eq!(now(&db, &cancelled).await.status.state, S::Cancelled);
    assert_eq!(texts(&db, &cancelled).await, ["requested", "Cancelled"]);
    assert_waits(&db, &waits).await;
}

async fn a_request_for_an_application_that_is_gone_refuses_all(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (web, gone) = (stored(&db, &ada, "web").await, stored(&db, &ada, "gone").await);
    delete(&db, &gone, 1).await.unwrap();
    let ((_, one), (_, other)) = (request(&web, 1), request(&gone, 2));
    assert!(is_stale(&db.commit(audited([one, other].concat())).await));
    assert_eq!(page(&db, scope(&web), web.id, (1, 10)).await.items, []);
    assert_eq!(claim(&db, a_worker(), 200).await.map(|claimed| claimed.job.subject), None);
}
