//! Events of finished runs of extensions.

use launchway_database::Database;
use launchway_domain::{
    extensions::{ExecutionEnd, ExecutionState as S, Write},
    jobs::{self, Outcome},
    notifications::EventKind,
    store::UnitOfWork as _,
};

use super::{WebhookKind, a_reader, a_stored, delivered, deliveries, facts};
use crate::{
    builders::{at, audited, is_stale},
    extensions::{
        a_run, an_entry, begin, finish,
        follow::{claim, follow, queued, settle},
    },
};

contract!(
    what_is_complete_is_announced_with_all_that_is_known,
    what_failed_is_announced_with_the_reason,
    what_was_cancelled_is_not_announced,
    what_follows_its_job_is_announced,
    an_end_is_announced_once_and_only_when_it_happened,
);

async fn what_is_complete_is_announced_with_all_that_is_known(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    begin(&db, run.id).await.unwrap();
    let end = ExecutionEnd { state: S::Completed, exit_code: 0, error_message: String::new() };
    db.commit(vec![Write::Finish { id: run.id, end, at: at(5) }.into()]).await.unwrap();
    let delivered = delivered(&db, 10).await;
    assert_eq!(delivered.len(), 1);
    assert_eq!((delivered[0].kind, delivered[0].at), (EventKind::ExtensionCompleted, at(5)));
    assert_eq!(
        facts(&delivered[0]),
        [
            ("organization", "ada's Team"),
            ("organization_id", ada.organization.id.to_string().as_str()),
            ("extension", "Hello note"),
            ("extension_id", "hello-note"),
            ("execution_id", run.id.to_string().as_str()),
            ("requested_by", "ada"),
            ("duration_seconds", "4.0"),
        ]
    );
}

async fn what_failed_is_announced_with_the_reason(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    begin(&db, run.id).await.unwrap();
    finish(&db, run.id, S::Failed).await.unwrap();
    let delivered = delivered(&db, 10).await;
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].kind, EventKind::ExtensionFailed);
    let known = facts(&delivered[0]);
    assert!(known.contains(&("exit_code", "9")) && known.contains(&("reason", "why")), "{known:?}");
}

async fn what_was_cancelled_is_not_announced(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    finish(&db, run.id, S::Cancelled).await.unwrap();
    let (other, _) = queued(&db, &ada, &an_entry(&db).await, 2).await;
    let cancel = jobs::Write::RequestCancel { scope: other.scope, id: other.job_id, at: at(5) };
    let follow = Write::FollowJobs { at: at(9) };
    db.commit(audited(vec![cancel.into(), follow.into()])).await.unwrap();
    assert_eq!(deliveries(&db, ada.scope()).await, []);
}

async fn what_follows_its_job_is_announced(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let (run, _) = queued(&db, &ada, &an_entry(&db).await, 1).await;
    let claimed = claim(&db).await;
    begin(&db, run.id).await.unwrap();
    settle(&db, &claimed, Outcome::Failed { reason: "no disk".to_owned() }).await;
    tokio::join!(follow(&db), follow(&db), follow(&db));
    let delivered = delivered(&db, 10).await;
    assert_eq!(delivered.len(), 1);
    assert_eq!((delivered[0].kind, delivered[0].at), (EventKind::ExtensionFailed, at(9)));
    let known = facts(&delivered[0]);
    assert!(known.contains(&("reason", "no disk")) && known.contains(&("duration_seconds", "8.0")));
    assert!(known.iter().all(|(fact, _)| *fact != "exit_code"), "{known:?}");
}

async fn an_end_is_announced_once_and_only_when_it_happened(db: Database) {
    let ada = a_reader(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Discord).await;
    let (run, _) = a_run(&db, &ada).await;
    assert!(is_stale(&finish(&db, run.id, S::Completed).await));
    assert_eq!(deliveries(&db, ada.scope()).await, []);
    begin(&db, run.id).await.unwrap();
    let end = || finish(&db, run.id, S::Failed);
    let ends = tokio::join!(end(), end(), end());
    assert_eq!([ends.0, ends.1, ends.2].iter().filter(|end| end.is_ok()).count(), 1);
    // One for each channel.
    assert_eq!(deliveries(&db, ada.scope()).await.len(), 2);
}
