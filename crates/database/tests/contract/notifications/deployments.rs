//! Events of finished deployments.

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    deployments::{Deployment, DeploymentState as S, Progress, Write},
    jobs::{self, Outcome},
    notifications::{Event, EventKind},
    organizations::Scope,
    store::UnitOfWork as _,
};
use launchway_testkit::builders::a_deployment;

use super::{a_reader, delivered, deliveries, facts, states};
use crate::{
    applications::{an_application_of, delete, insert, stored},
    builders::{Resident, at, audited, id, is_stale},
    deployments::{
        advance, bring_to_life, deploy, insert_deployment,
        jobs::{building, follow, queued, settle},
    },
};

contract!(
    what_was_deployed_is_announced_with_all_that_is_known,
    what_failed_is_announced_with_the_reason,
    what_was_cancelled_is_announced,
    what_was_replaced_is_announced_with_its_successor,
    a_live_deployment_whose_job_was_lost_has_succeeded,
    what_moves_on_or_waits_again_is_not_announced,
    an_end_is_announced_once,
    an_end_that_is_undone_is_not_announced,
    ends_of_many_organizations_are_announced_to_each,
    a_deletion_ends_deployments_and_announces_it,
);

/// The application "web" of an organization with a Slack channel.
async fn web(db: &Database) -> Application {
    stored(db, &a_reader(db, "ada").await, "web").await
}

fn scope(application: &Application) -> Scope {
    Scope::of_record(application.organization_id)
}

/// Returns the only event that was sent.
async fn only_delivered(db: &Database) -> Event {
    let mut reported = delivered(db, 1000).await;
    assert_eq!(reported.len(), 1);
    reported.pop().unwrap()
}

fn reason(event: &Event) -> Option<&str> {
    facts(event).into_iter().find(|(fact, _)| *fact == "reason").map(|(_, value)| value)
}

async fn what_was_deployed_is_announced_with_all_that_is_known(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let application = an_application_of(&ada).at_domain("web.example.com").build();
    insert(&db, &application).await.unwrap();
    let first = a_deployment().of(&application).in_state(S::Cancelled).build();
    insert_deployment(&db, &first).await;
    let deployment = a_deployment().of(&application).numbered(2).back_to(first.id).made_of('a');
    let deployment = deployment.created_at(at(10)).build();
    let deployment = Deployment { requested_by: "ada".to_owned(), ..deployment };
    insert_deployment(&db, &deployment).await;
    advance(&db, deployment.id, S::Deploying, 11).await.unwrap();
    db.commit(vec![Write::GoLive { id: deployment.id, at: at(12) }.into()]).await.unwrap();
    let progress = Progress { state: Some(S::Deployed), ..Progress::default() };
    let ended = at(12) + chrono::TimeDelta::milliseconds(345);
    db.commit(vec![Write::Advance { id: deployment.id, progress, at: ended }.into()]).await.unwrap();

    let event = only_delivered(&db).await;
    assert_eq!((event.kind, event.at), (EventKind::DeploymentSucceeded, ended));
    assert_eq!(event.organization_id, ada.organization.id);
    let branch = application.blueprint.branch.as_ref().unwrap();
    assert_eq!(
        facts(&event),
        [
            ("organization", "ada's Team"),
            ("organization_id", ada.organization.id.to_string().as_str()),
            ("application", "web"),
            ("application_id", application.id.to_string().as_str()),
            ("environment", application.blueprint.environment.as_str()),
            ("host", "web.example.com"),
            ("deployment_id", deployment.id.to_string().as_str()),
            ("rollback_to", first.id.to_string().as_str()),
            ("branch", branch.as_str()),
            ("commit_hash", "a".repeat(40).as_str()),
            ("requested_by", "ada"),
            ("duration_seconds", "2.3"),
        ]
    );
}

async fn what_failed_is_announced_with_the_reason(db: Database) {
    let application = web(&db).await;
    let (_, claimed) = building(&db, &application, 1).await;
    settle(&db, &claimed, Outcome::Failed { reason: "no such \u{1b}[1mbranch\u{7}".to_owned() }).await;
    follow(&db, Some(application.id)).await;
    let event = only_delivered(&db).await;
    assert_eq!((event.kind, event.at), (EventKind::DeploymentFailed, at(9)));
    assert_eq!(reason(&event), Some("no such branch\\u{7}"));
    let host = facts(&event).into_iter().find(|(fact, _)| *fact == "host").map(|(_, host)| host.to_owned());
    assert_eq!(host, Some(application.automatic_host.as_str().to_owned()));

    let (left, claimed) = building(&db, &application, 2).await;
    settle(&db, &claimed, Outcome::Succeeded).await;
    follow(&db, None).await;
    assert_eq!(reason(&only_delivered(&db).await), Some("its job ended without an outcome"));
    // Whoever ends it without a job.
    let without = deploy(&db, &application, 3).await;
    advance(&db, without.id, S::Failed, 10).await.unwrap();
    let event = only_delivered(&db).await;
    assert_eq!((event.kind, reason(&event)), (EventKind::DeploymentFailed, None));
    assert_ne!(left.id, without.id);
}

async fn what_was_cancelled_is_announced(db: Database) {
    let application = web(&db).await;
    let waiting = queued(&db, &application, 1).await;
    let cancel = jobs::Write::RequestCancel { scope: scope(&application), id: waiting.job_id, at: at(5) };
    let follow = Write::FollowJobs { application: Some(application.id), at: at(9) };
    db.commit(audited(vec![cancel.into(), follow.into()])).await.unwrap();
    let event = only_delivered(&db).await;
    assert_eq!((event.kind, reason(&event)), (EventKind::DeploymentCancelled, None));
}

async fn what_was_replaced_is_announced_with_its_successor(db: Database) {
    let application = web(&db).await;
    queued(&db, &application, 1).await;
    let newer = queued(&db, &application, 2).await;
    follow(&db, Some(application.id)).await;
    let event = only_delivered(&db).await;
    assert_eq!(event.kind, EventKind::DeploymentCancelled);
    assert_eq!(reason(&event), Some(format!("replaced by deployment {}", newer.id).as_str()));
}

async fn a_live_deployment_whose_job_was_lost_has_succeeded(db: Database) {
    let application = web(&db).await;
    let (deployment, claimed) = building(&db, &application, 1).await;
    advance(&db, deployment.id, S::Deploying, 4).await.unwrap();
    db.commit(vec![Write::GoLive { id: deployment.id, at: at(4) }.into()]).await.unwrap();
    settle(&db, &claimed, Outcome::Failed { reason: "no disk".to_owned() }).await;
    follow(&db, None).await;
    let event = only_delivered(&db).await;
    assert_eq!((event.kind, reason(&event)), (EventKind::DeploymentSucceeded, None));
}

async fn what_moves_on_or_waits_again_is_not_announced(db: Database) {
    let application = web(&db).await;
    let deployment = queued(&db, &application, 1).await;
    for to in [S::Cloning, S::Building, S::Queued, S::Deploying] {
        advance(&db, deployment.id, to, 5).await.unwrap();
    }
    follow(&db, None).await;
    assert_eq!(deliveries(&db, scope(&application)).await, []);
}

async fn an_end_is_announced_once(db: Database) {
    let application = web(&db).await;
    let (deployment, claimed) = building(&db, &application, 1).await;
    settle(&db, &claimed, Outcome::Failed { reason: "no".to_owned() }).await;
    let all = || follow(&db, None);
    let one = || follow(&db, Some(application.id));
    tokio::join!(all(), one(), all(), one(), all(), one());
    assert!(is_stale(&advance(&db, deployment.id, S::Failed, 10).await));
    assert!(is_stale(&advance(&db, deployment.id, S::Cancelled, 10).await));
    assert_eq!(states(&db, scope(&application)).await.len(), 1);

    let next = deploy(&db, &application, 2).await;
    let end = || advance(&db, next.id, S::Cancelled, 11);
    let ends = tokio::join!(end(), end(), end(), end());
    let done = [ends.0, ends.1, ends.2, ends.3].iter().filter(|end| end.is_ok()).count();
    assert_eq!((done, states(&db, scope(&application)).await.len()), (1, 2));
}

async fn an_end_that_is_undone_is_not_announced(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    let progress = Progress { state: Some(S::Failed), ..Progress::default() };
    let end = Write::Advance { id: deployment.id, progress: progress.clone(), at: at(5) };
    let impossible = Write::Advance { id: id(), progress, at: at(5) };
    assert!(is_stale(&db.commit(vec![end.into(), impossible.into()]).await));
    assert_eq!(deliveries(&db, scope(&application)).await, []);
}

async fn ends_of_many_organizations_are_announced_to_each(db: Database) {
    let (ada, bob) = (a_reader(&db, "ada").await, a_reader(&db, "bob").await);
    // This organization has no channel.
    let eve = Resident::of(&db, "eve").await;
    for resident in [&ada, &bob, &eve] {
        let application = stored(&db, resident, "web").await;
        queued(&db, &application, 1).await;
        queued(&db, &application, 2).await;
    }
    follow(&db, None).await;
    for (resident, count) in [(&ada, 1), (&bob, 1), (&eve, 0)] {
        assert_eq!(deliveries(&db, resident.scope()).await.len(), count);
    }
}

async fn a_deletion_ends_deployments_and_announces_it(db: Database) {
    let application = web(&db).await;
    let first = deploy(&db, &application, 1).await;
    bring_to_life(&db, first.id, 2).await;
    let waiting = queued(&db, &application, 3).await;
    let cancel = jobs::Write::RequestCancel { scope: scope(&application), id: waiting.job_id, at: at(5) };
    db.commit(audited(vec![cancel.into()])).await.unwrap();
    delete(&db, &application, 6).await.unwrap();
    follow(&db, None).await;
    let kinds: Vec<_> = delivered(&db, 1000).await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::DeploymentSucceeded, EventKind::DeploymentCancelled]);
}
