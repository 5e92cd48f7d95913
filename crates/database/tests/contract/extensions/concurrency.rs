//! Concurrency: lines of one run, contended names, and replicas that start.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use launchway_database::Database;
use launchway_domain::{
    extensions::{ExecutionLine, ExecutionLog as _, ExtensionRepository},
    store::{Unique, UnitOfWork as _},
};
use launchway_testkit::builders::an_extension;
use tokio::task::JoinSet;

use super::{
    S, Write, a_line, a_run, a_run_of, an_entry, begin, begin_step, finish,
    logs::lines,
    now, request,
    routes::{a_route, add, hosts},
};
use crate::{
    applications::{an_application_of, insert, is_taken},
    builders::{Resident, is_stale},
    fresh::Fresh,
};

contract!(
    appends_at_once_leave_no_gap_and_who_polls_misses_nothing,
    a_step_that_begins_while_its_run_ends_does_not_go_on,
    of_many_who_end_a_run_one_does,
    an_application_and_an_extension_cannot_share_a_name,
    concurrent_runs_of_an_extension_may_both_add_a_route,
    replicas_that_publish_at_once_have_one_catalog,
);

/// Returns the database as two servers open it. A SQLite file has one server.
fn servers(fresh: &Fresh) -> [Database; 2] {
    let db = fresh.database.clone();
    let replica = if fresh.folder().is_some() { db.clone() } else { fresh.open_again() };
    [db, replica]
}

const CALLERS: usize = 6;
const ROUNDS: usize = 15;

async fn appends_at_once_leave_no_gap_and_who_polls_misses_nothing(fresh: &Fresh) {
    let servers = servers(fresh);
    let ada = Resident::of(&servers[0], "ada").await;
    let (run, steps) = a_run(&servers[0], &ada).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn({
        let (db, run, is_over) = (servers[0].clone(), run.clone(), Arc::clone(&is_over));
        async move {
            let mut read: Vec<ExecutionLine> = Vec::new();
            loop {
                let was_over = is_over.load(Ordering::SeqCst);
                let after = read.last().map_or(0, |line| line.seq);
                let more = lines(&db, &run, after, 1000).await;
                if more.is_empty() && was_over {
                    return read;
                }
                read.extend(more);
                tokio::task::yield_now().await;
            }
        }
    });
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let (db, id, step) = (servers[caller % 2].clone(), run.id, steps[caller % 3].id);
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let text = |line: usize| format!("{caller} {}", round * 5 + line);
                let lines = (0..5).map(|line| a_line((line % 2 == 0).then_some(step), &text(line)));
                db.append(id, lines.collect()).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    is_over.store(true, Ordering::SeqCst);
    let read = reader.await.unwrap();
    let all = CALLERS * ROUNDS * 5;
    assert_eq!(read.iter().map(|line| line.seq).collect::<Vec<_>>(), (1..=all as i64).collect::<Vec<_>>());
    assert_eq!(now(&servers[0], &run).await.0.log_seq, all as i64);
    for caller in 0..CALLERS {
        let said = read.iter().filter_map(|line| line.text.strip_prefix(&format!("{caller} ")));
        let expected: Vec<_> = (0..ROUNDS * 5).map(|number| number.to_string()).collect();
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }
}

async fn a_step_that_begins_while_its_run_ends_does_not_go_on(fresh: &Fresh) {
    let [db, replica] = servers(fresh);
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    for number in 1..=20 {
        let run = a_run_of(&ada, &entry).numbered(number).with_steps();
        request(&db, run.clone(), false).await.unwrap();
        begin(&db, run.0.id).await.unwrap();
        let (ended, begun) =
            tokio::join!(finish(&db, run.0.id, S::Failed), begin_step(&replica, run.0.id, 1));
        ended.unwrap();
        let steps = now(&db, &run.0).await.1;
        let expected = if begun.is_ok() { S::Failed } else { S::Cancelled };
        assert!(begun.is_ok() || is_stale(&begun), "{begun:?}");
        let states: Vec<_> = steps.into_iter().map(|step| step.state).collect();
        assert_eq!(states, [expected, S::Cancelled, S::Cancelled]);
    }
}

async fn of_many_who_end_a_run_one_does(fresh: &Fresh) {
    let servers = servers(fresh);
    let ada = Resident::of(&servers[0], "ada").await;
    let (run, _) = a_run(&servers[0], &ada).await;
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let (db, id) = (servers[caller % 2].clone(), run.id);
        let state = if caller % 2 == 0 { S::Failed } else { S::Cancelled };
        tasks.spawn(async move { finish(&db, id, state).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| is_stale(outcome)).count(), CALLERS - 1, "{outcomes:?}");
}

async fn an_application_and_an_extension_cannot_share_a_name(fresh: &Fresh) {
    let [db, replica] = servers(fresh);
    let ada = Resident::of(&db, "ada").await;
    for round in 0..10 {
        let host = format!("{round}.example.com");
        let web = an_application_of(&ada).named(&format!("web{round}")).at_domain(&host).build();
        let route = a_route(&ada, "db", &host);
        let outcomes = tokio::join!(insert(&db, &web), add(&replica, &route));
        assert!(outcomes.0.is_ok() != outcomes.1.is_ok(), "{outcomes:?}");
        let lost = if outcomes.0.is_ok() { &outcomes.1 } else { &outcomes.0 };
        assert!(is_taken(lost, Unique::Domain), "{outcomes:?}");
    }
}

async fn concurrent_runs_of_an_extension_may_both_add_a_route(fresh: &Fresh) {
    let [db, replica] = servers(fresh);
    let ada = Resident::of(&db, "ada").await;
    for _ in 0..10 {
        let routes = [a_route(&ada, "db", "a.example.com"), a_route(&ada, "db", "a.example.com")];
        let outcomes = tokio::join!(add(&db, &routes[0]), add(&replica, &routes[1]));
        assert!(outcomes.0.is_ok() && outcomes.1.is_ok(), "{outcomes:?}");
        assert_eq!(hosts(&db).await, ["a.example.com"]);
    }
}

async fn replicas_that_publish_at_once_have_one_catalog(fresh: &Fresh) {
    let [db, replica] = servers(fresh);
    for round in 0..5 {
        let keys: Vec<String> = (0..6).map(|number| format!("e{number}")).collect();
        let publish = |key: &String| {
            let yaml = format!("{key} {round}");
            Write::Publish(Box::new(an_extension().keyed(key).defined_by(&yaml).asking_for("who").build()))
        };
        let forward = keys.iter().map(|key| publish(key).into()).collect();
        let backward = keys.iter().rev().map(|key| publish(key).into()).collect();
        let outcomes = tokio::join!(db.commit(forward), replica.commit(backward));
        assert!(outcomes.0.is_ok() && outcomes.1.is_ok(), "{outcomes:?}");
        let stored = ExtensionRepository::catalog(&db).await.unwrap();
        assert_eq!(stored.into_iter().map(|(key, ..)| key.to_string()).collect::<Vec<_>>(), keys);
    }
}
