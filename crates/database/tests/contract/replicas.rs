//! The registry of replicas.

use launchway_database::{AnyConnection, Database};
use launchway_domain::{
    clock::Timestamp,
    deployments::ContainerId,
    ids::InstanceId,
    replicas::{
        Drain, DrainScope, HeartbeatResponse, Replica, ReplicaRegistry as _, ReplicaStatus, Term, Write,
    },
    store::{StoreError, UnitOfWork as _},
};
use uuid::Uuid;

contract!(
    the_first_replica_leads_and_keeps_leading,
    a_term_that_ended_passes_to_another_with_a_greater_epoch,
    a_replica_that_leaves_leads_no_longer,
    a_new_run_takes_the_place_of_the_old_one,
    a_change_of_an_earlier_leader_is_refused,
    only_one_of_many_at_once_leads,
    the_dead_are_not_waited_for,
    a_long_dead_replica_is_forgotten,
    a_replica_that_never_had_a_route_leaves_nothing_behind,
    a_step_back_of_the_clock_ends_terms_and_lives,
    a_drain_that_was_left_behind_says_nothing_about_the_next,
    drains_are_done_by_the_others,
    a_patient_drain_waits_for_a_replica_that_comes_back,
);

fn a_replica(number: u128) -> Replica {
    Replica {
        id: Uuid::from_u128(number).into(),
        boot: Uuid::from_u128(1000 + number).into(),
        version: "1.0.0".to_owned(),
        hostname: format!("host-{number}"),
        address: "127.0.0.1:8080".to_owned(),
        engine: Some("ENGINE".to_owned()),
        started_at: Timestamp::UNIX_EPOCH + chrono::TimeDelta::seconds(i64::try_from(number).unwrap()),
    }
}

fn status(pulse: &HeartbeatResponse, of: &Replica) -> ReplicaStatus {
    pulse.replicas.iter().find(|one| one.replica.id == of.id).unwrap().clone()
}

/// Runs a statement, in which `AGO` stands for a time that many seconds ago.
async fn execute(db: &Database, statement: &'static str, seconds: i64) {
    use diesel::RunQueryDsl as _;
    db.write(move |connection| {
        match connection {
            AnyConnection::Sqlite(sqlite) => {
                let ago = format!("(unixepoch() - {seconds}) * 1000000");
                diesel::sql_query(statement.replace("AGO", &ago)).execute(sqlite)?;
            }
            AnyConnection::Postgres(postgres) => {
                let ago = format!("now() - interval '{seconds} s'");
                diesel::sql_query(statement.replace("AGO", &ago)).execute(postgres)?;
            }
        }
        Ok(())
    })
    .await
    .unwrap();
}

async fn the_first_replica_leads_and_keeps_leading(db: Database) {
    let (one, two) = (a_replica(1), a_replica(2));
    let first = db.register(&one).await.unwrap();
    assert_eq!(first.term, Some(Term { replica: one.id, boot: one.boot, epoch: 1 }));
    let second = db.register(&two).await.unwrap();
    assert_eq!((second.term, second.replicas.len()), (None, 2));
    assert!(status(&second, &one).is_leader && !status(&second, &two).is_leader);
    assert_eq!(status(&second, &one).replica, Replica { started_at: first.now, ..one.clone() });
    let later = db.heartbeat(&one).await.unwrap();
    assert_eq!(later.term.unwrap().epoch, 1);
    assert!(later.now >= first.now);
    assert_eq!(db.replicas().await.unwrap(), later.replicas);
    let started_at = second.now;
    let other_engine = Replica { engine: Some("OTHER".to_owned()), started_at, ..two.clone() };
    assert_eq!(status(&db.heartbeat(&other_engine).await.unwrap(), &two).replica, other_engine);
}

async fn a_term_that_ended_passes_to_another_with_a_greater_epoch(db: Database) {
    let (one, two) = (a_replica(1), a_replica(2));
    db.register(&one).await.unwrap();
    db.register(&two).await.unwrap();
    execute(&db, "UPDATE leadership SET valid_until = AGO", 1).await;
    assert_eq!(db.heartbeat(&two).await.unwrap().term.unwrap().epoch, 2);
    assert_eq!(db.heartbeat(&one).await.unwrap().term, None);
    execute(&db, "UPDATE leadership SET valid_until = AGO", 1).await;
    assert_eq!(db.heartbeat(&two).await.unwrap().term.unwrap().epoch, 2, "nobody has led in between");
}

async fn a_replica_that_leaves_leads_no_longer(db: Database) {
    let (one, two) = (a_replica(1), a_replica(2));
    db.register(&one).await.unwrap();
    db.register(&two).await.unwrap();
    db.acknowledge_routes(one.id, 1).await.unwrap();
    db.leave(one.id, Uuid::from_u128(5).into()).await.unwrap();
    assert_eq!(db.heartbeat(&two).await.unwrap().term, None, "that was another run");
    db.leave(one.id, one.boot).await.unwrap();
    let pulse = db.heartbeat(&two).await.unwrap();
    assert_eq!((pulse.term.unwrap().epoch, status(&pulse, &one).is_alive), (2, false));
    assert!(matches!(db.heartbeat(&one).await, Err(StoreError::Stale)));
}

async fn a_new_run_takes_the_place_of_the_old_one(db: Database) {
    let one = a_replica(1);
    db.register(&one).await.unwrap();
    let again = Replica { boot: Uuid::from_u128(7).into(), engine: None, ..one.clone() };
    let pulse = db.register(&again).await.unwrap();
    assert_eq!(pulse.term.unwrap().epoch, 2, "it need not wait for the end of its own term");
    let registered = Replica { engine: one.engine.clone(), started_at: pulse.now, ..again.clone() };
    assert_eq!(status(&pulse, &one).replica, registered);
    assert!(matches!(db.heartbeat(&one).await, Err(StoreError::Stale)));
    let pulse = db.heartbeat(&again).await.unwrap();
    assert_eq!(status(&pulse, &one).replica.engine, one.engine, "an unknown engine changes nothing");
}

/// A write that changes nothing.
fn proved(term: Term) -> Vec<launchway_domain::store::Write> {
    vec![Write::Prove(term).into(), launchway_domain::logs::Write::Append(Vec::new()).into()]
}

async fn a_change_of_an_earlier_leader_is_refused(db: Database) {
    let (one, two) = (a_replica(1), a_replica(2));
    let term = db.register(&one).await.unwrap().term.unwrap();
    db.commit(proved(term)).await.unwrap();
    db.register(&two).await.unwrap();
    execute(&db, "UPDATE leadership SET valid_until = AGO", 1).await;
    db.commit(proved(term)).await.unwrap();
    let newer = db.heartbeat(&two).await.unwrap().term.unwrap();
    assert!(matches!(db.commit(proved(term)).await, Err(StoreError::Stale)));
    db.commit(proved(newer)).await.unwrap();
    let later = Term { epoch: newer.epoch + 1, ..newer };
    assert!(matches!(db.commit(proved(later)).await, Err(StoreError::Stale)));
    let earlier_run = Term { boot: Uuid::from_u128(9).into(), ..newer };
    assert!(matches!(db.commit(proved(earlier_run)).await, Err(StoreError::Stale)));
}

async fn only_one_of_many_at_once_leads(db: Database) {
    let registered = (1..=8).map(|number| {
        let db = db.clone();
        tokio::spawn(async move { db.register(&a_replica(number)).await.unwrap().term.is_some() })
    });
    let mut leaders = 0;
    for registered in registered.collect::<Vec<_>>() {
        leaders += usize::from(registered.await.unwrap());
    }
    assert_eq!((leaders, db.replicas().await.unwrap().len()), (1, 8));
}

async fn the_dead_are_not_waited_for(db: Database) {
    let all = [1, 2, 3].map(a_replica);
    for replica in &all {
        db.register(replica).await.unwrap();
    }
    let own = all[0].id;
    assert_eq!((db.behind(own, 5).await.unwrap(), db.behind(own, 0).await.unwrap()), (2, 0));
    db.acknowledge_routes(all[1].id, 5).await.unwrap();
    assert_eq!((db.behind(own, 5).await.unwrap(), db.behind(own, 6).await.unwrap()), (1, 2));
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-3'", 16).await;
    assert_eq!(db.behind(own, 5).await.unwrap(), 0);
    assert!(!status(&db.heartbeat(&all[0]).await.unwrap(), &all[2]).is_alive);
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-3'", 13).await;
    assert_eq!(db.behind(own, 5).await.unwrap(), 1);
}

async fn a_long_dead_replica_is_forgotten(db: Database) {
    let (one, two) = (a_replica(1), a_replica(2));
    db.register(&one).await.unwrap();
    db.register(&two).await.unwrap();
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-2'", 86_400 - 60).await;
    assert_eq!(db.heartbeat(&one).await.unwrap().replicas.len(), 2);
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-2'", 86_400 + 60).await;
    assert_eq!(db.heartbeat(&one).await.unwrap().replicas.len(), 1);
}

async fn a_replica_that_never_had_a_route_leaves_nothing_behind(db: Database) {
    let (one, two) = (a_replica(1), a_replica(2));
    for replica in [&one, &two] {
        db.register(replica).await.unwrap();
    }
    db.acknowledge_routes(two.id, 3).await.unwrap();
    let again = Replica { boot: Uuid::from_u128(8).into(), ..two.clone() };
    let pulse = db.register(&again).await.unwrap();
    assert_eq!(status(&pulse, &two).routes_seen, 3, "its front proxy goes on");
    db.leave(again.id, again.boot).await.unwrap();
    db.leave(one.id, one.boot).await.unwrap();
    let known: Vec<InstanceId> = db.replicas().await.unwrap().iter().map(|one| one.replica.id).collect();
    assert_eq!(known, [two.id]);
}

async fn a_step_back_of_the_clock_ends_terms_and_lives(db: Database) {
    let (one, two) = (a_replica(1), a_replica(2));
    for replica in [&one, &two] {
        db.register(replica).await.unwrap();
    }
    execute(&db, "UPDATE leadership SET valid_until = AGO", -3600).await;
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-1'", -3600).await;
    assert_eq!(db.behind(two.id, 5).await.unwrap(), 0);
    let pulse = db.heartbeat(&two).await.unwrap();
    assert_eq!((pulse.term.unwrap().epoch, status(&pulse, &one).is_alive), (2, false));
}

async fn a_drain_that_was_left_behind_says_nothing_about_the_next(db: Database) {
    let all = [1, 2].map(a_replica);
    for replica in &all {
        db.register(replica).await.unwrap();
    }
    let drain = Drain { application: Uuid::from_u128(50).into(), container: None };
    db.request_drain(all[0].id, &drain, DrainScope::Living).await.unwrap();
    db.report_drained(all[1].id, &drain).await.unwrap();
    db.request_drain(all[0].id, &drain, DrainScope::Living).await.unwrap();
    assert_eq!(db.undrained(&drain, DrainScope::Living).await.unwrap(), 1);
    execute(&db, "UPDATE drains SET requested_at = AGO", 26 * 3600).await;
    db.heartbeat(&all[0]).await.unwrap();
    assert_eq!(db.drains(all[1].id).await.unwrap(), [], "nobody waits for it any more");
}

async fn drains_are_done_by_the_others(db: Database) {
    let all = [1, 2, 3].map(a_replica);
    for replica in &all {
        db.register(replica).await.unwrap();
    }
    let container: ContainerId = "c".repeat(64).parse().unwrap();
    let one = Drain { application: Uuid::from_u128(50).into(), container: Some(container) };
    let any = Drain { container: None, ..one.clone() };
    let own: InstanceId = all[0].id;
    assert_eq!(db.request_drain(own, &one, DrainScope::Living).await.unwrap(), 2);
    assert_eq!(db.request_drain(own, &one, DrainScope::Living).await.unwrap(), 2, "a repetition");
    assert_eq!(
        (
            db.undrained(&one, DrainScope::Living).await.unwrap(),
            db.undrained(&any, DrainScope::Living).await.unwrap()
        ),
        (2, 0)
    );
    db.request_drain(own, &any, DrainScope::Living).await.unwrap();
    assert_eq!(db.drains(own).await.unwrap(), []);
    let wanted = db.drains(all[1].id).await.unwrap();
    assert!(wanted.len() == 2 && wanted.contains(&one) && wanted.contains(&any), "{wanted:?}");
    db.report_drained(all[1].id, &one).await.unwrap();
    assert_eq!(
        (db.undrained(&one, DrainScope::Living).await.unwrap(), db.drains(all[1].id).await.unwrap()),
        (1, vec![any.clone()])
    );
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-3'", 16).await;
    assert_eq!(
        (
            db.undrained(&one, DrainScope::Living).await.unwrap(),
            db.undrained(&any, DrainScope::Living).await.unwrap()
        ),
        (0, 1)
    );
    db.forget_drain(&one).await.unwrap();
    assert_eq!(db.drains(all[2].id).await.unwrap(), [any]);
}

async fn a_patient_drain_waits_for_a_replica_that_comes_back(db: Database) {
    let all = [1, 2, 3].map(a_replica);
    for replica in &all {
        db.register(replica).await.unwrap();
    }
    let own = all[0].id;
    let drain = Drain { application: Uuid::from_u128(50).into(), container: None };
    let refused = a_replica(4);
    db.register(&refused).await.unwrap();
    db.leave(refused.id, refused.boot).await.unwrap();
    for replica in &all {
        db.acknowledge_routes(replica.id, 1).await.unwrap();
    }
    db.leave(all[1].id, all[1].boot).await.unwrap();
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-3'", 20).await;
    assert_eq!(db.request_drain(own, &drain, DrainScope::Living).await.unwrap(), 0);
    assert_eq!(db.request_drain(own, &drain, DrainScope::Returning).await.unwrap(), 2);
    let left = |drain_scope| {
        let (db, drain) = (db.clone(), drain.clone());
        async move { db.undrained(&drain, drain_scope).await.unwrap() }
    };
    assert_eq!((left(DrainScope::Living).await, left(DrainScope::Returning).await), (0, 2));
    let again = Replica { boot: Uuid::from_u128(8).into(), ..all[1].clone() };
    db.register(&again).await.unwrap();
    assert_eq!(left(DrainScope::Living).await, 1, "it is back, and has to drain");
    db.report_drained(again.id, &drain).await.unwrap();
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-3'", 58).await;
    assert_eq!(left(DrainScope::Returning).await, 1);
    execute(&db, "UPDATE replicas SET seen_at = AGO WHERE hostname = 'host-3'", 61).await;
    assert_eq!(left(DrainScope::Returning).await, 0, "it does not come back");
}
