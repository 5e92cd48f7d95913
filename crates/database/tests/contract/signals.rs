//! Contract of `Signals`, and of the epoch of routes.

use std::time::Duration;

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, Port},
    audit::{self, Chain},
    deployments::{ContainerRecord, ContainerState, DeploymentState, Write as DeploymentWrite},
    ids::DeploymentId,
    jobs::{JobQueue, Outcome, Write as JobWrite},
    organizations::Scope,
    signals::{Signal, SignalReceiver, Signals as _},
    store::{UnitOfWork as _, Write},
};
use launchway_testkit::builders::{a_container, a_deployment, a_log_line};
use tokio::time::timeout;

use crate::{
    applications::{
        an_application_of, delete,
        domains::{add as add_domain, move_to, remove as remove_domain},
        insert, set_stopped, stored,
    },
    builders::{Resident, an_entry, at, audited, commit, execute, id, is_stale},
    deployments::{advance, deploy, go_live, insert_deployment},
    extensions::routes::{a_route, add as add_route, remove as remove_route, set_route_address},
    fresh::Fresh,
    jobs::{a_job, a_worker, claim, enqueue, running},
    logs::append,
};

contract!(
    a_subscriber_receives_each_signal_at_first,
    jobs_that_are_enqueued_or_cancelled_are_signalled,
    jobs_that_return_to_the_queue_are_signalled,
    a_version_that_goes_live_or_stops_is_signalled,
    a_changed_container_record_is_signalled,
    changed_host_names_are_signalled,
    changed_routes_of_extensions_are_signalled,
    statements_by_hand_are_signalled,
    other_commits_have_no_signal,
    commits_that_were_rolled_back_have_no_signal,
    commits_of_another_process_are_signalled,
    subscriptions_end_when_the_database_is_closed,
);

type Receiver = Box<dyn SignalReceiver>;

/// A subscriber that has received the first signals.
async fn subscribed(db: &Database) -> Receiver {
    let mut receiver = db.subscribe();
    assert_eq!([next(&mut receiver).await, next(&mut receiver).await], [Signal::Jobs, Signal::Routes]);
    receiver
}

async fn next(receiver: &mut Receiver) -> Signal {
    timeout(Duration::from_secs(60), receiver.next()).await.unwrap().unwrap()
}

/// Checks that `work`, one commit, is signalled as a change of jobs alone.
async fn changes_jobs<T>(db: &Database, receiver: &mut Receiver, work: impl Future<Output = T>) -> T {
    let before = db.routes_epoch().await.unwrap();
    let outcome = work.await;
    assert_eq!(next(receiver).await, Signal::Jobs);
    assert_eq!(db.routes_epoch().await.unwrap(), before);
    outcome
}

/// Checks that `work`, one commit, is signalled as a change of routes alone. A signal of jobs would come first.
async fn changes_routes<T>(db: &Database, receiver: &mut Receiver, work: impl Future<Output = T>) -> T {
    let before = db.routes_epoch().await.unwrap();
    let outcome = work.await;
    assert_eq!(next(receiver).await, Signal::Routes);
    assert!(db.routes_epoch().await.unwrap() > before);
    outcome
}

/// Checks that `work` has no signal.
async fn changes_nothing<T>(db: &Database, receiver: &mut Receiver, work: impl Future<Output = T>) -> T {
    let before = db.routes_epoch().await.unwrap();
    let outcome = work.await;
    assert_eq!(db.routes_epoch().await.unwrap(), before);
    // The next signal is that of the next commit.
    changes_routes(db, receiver, touch(db)).await;
    outcome
}

/// A change of routes that nothing refers to.
async fn touch(db: &Database) {
    execute(db, "UPDATE extension_routes SET port = port + 1 WHERE host = 'touched.example.com'").await;
}

/// A user whose organization has a route that [`touch`] changes.
async fn ada(db: &Database) -> Resident {
    let ada = Resident::of(db, "ada").await;
    add_route(db, &a_route(&ada, "touched", "touched.example.com")).await.unwrap();
    ada
}

async fn one(db: &Database, write: impl Into<Write>) {
    db.commit(vec![write.into()]).await.unwrap();
}

async fn record(db: &Database, id: DeploymentId, container: &ContainerRecord) {
    one(db, DeploymentWrite::RecordContainer { id, container: container.clone(), at: at(9) }).await;
}

/// A deployment of `web` that is ready to go live, with the container "web".
async fn ready(db: &Database, web: &Application) -> DeploymentId {
    let deployment = a_deployment().of(web).with_image().run_by(a_container("web")).build();
    insert_deployment(db, &deployment).await;
    advance(db, deployment.id, DeploymentState::Deploying, 1).await.unwrap();
    deployment.id
}

async fn a_subscriber_receives_each_signal_at_first(db: Database) {
    let ada = ada(&db).await;
    let mut early = subscribed(&db).await;
    enqueue(&db, &a_job(ada.scope())).await;
    assert_eq!(next(&mut early).await, Signal::Jobs);
    let mut late = subscribed(&db).await;
    touch(&db).await;
    assert_eq!(next(&mut early).await, Signal::Routes);
    assert_eq!(next(&mut late).await, Signal::Routes);
}

async fn jobs_that_are_enqueued_or_cancelled_are_signalled(db: Database) {
    let scope = ada(&db).await.scope();
    let mut receiver = subscribed(&db).await;
    let running = changes_jobs(&db, &mut receiver, enqueue(&db, &a_job(scope))).await;
    changes_nothing(&db, &mut receiver, claim(&db, a_worker(), 0)).await.unwrap();
    let waiting = changes_jobs(&db, &mut receiver, enqueue(&db, &a_job(scope))).await;
    for id in [running, waiting] {
        let cancel = JobWrite::RequestCancel { scope, id, at: at(1) };
        changes_jobs(&db, &mut receiver, commit(&db, cancel)).await.unwrap();
    }
    // It is to be cancelled already.
    let again = JobWrite::RequestCancel { scope, id: running, at: at(2) };
    changes_nothing(&db, &mut receiver, commit(&db, again)).await.unwrap();
}

async fn jobs_that_return_to_the_queue_are_signalled(db: Database) {
    let ada = ada(&db).await;
    let first = running(&db, ada.scope()).await;
    let mut receiver = subscribed(&db).await;
    changes_jobs(&db, &mut receiver, db.release(&first.lease, at(1))).await.unwrap();
    let second = claim(&db, a_worker(), 2).await.unwrap();
    changes_jobs(&db, &mut receiver, db.retry(&second.lease, "why", at(3), at(4))).await.unwrap();
    let third = claim(&db, a_worker(), 5).await.unwrap();
    let rescued = changes_jobs(&db, &mut receiver, db.rescue(id(), id(), at(100))).await.unwrap();
    assert_eq!(rescued[0].job.id, third.job.id);
    let fourth = claim(&db, a_worker(), 101).await.unwrap();
    let far = at(365 * 24 * 3600);
    changes_jobs(&db, &mut receiver, db.postpone(&fourth.lease, "why", at(102), far)).await.unwrap();
    // A time that is so far away comes from a wrong clock: the job is due now.
    changes_jobs(&db, &mut receiver, db.rescue(id(), id(), at(103))).await.unwrap();
}

async fn a_version_that_goes_live_or_stops_is_signalled(db: Database) {
    let web = stored(&db, &ada(&db).await, "web").await;
    let mut receiver = subscribed(&db).await;
    let deployment = changes_nothing(&db, &mut receiver, ready(&db, &web)).await;
    changes_routes(&db, &mut receiver, go_live(&db, deployment, 2)).await.unwrap();
    let deployed = advance(&db, deployment, DeploymentState::Deployed, 3);
    changes_nothing(&db, &mut receiver, deployed).await.unwrap();
    changes_routes(&db, &mut receiver, set_stopped(&db, &web, true, 4)).await.unwrap();
    changes_nothing(&db, &mut receiver, set_stopped(&db, &web, true, 5)).await.unwrap();
    changes_routes(&db, &mut receiver, set_stopped(&db, &web, false, 6)).await.unwrap();
    changes_routes(&db, &mut receiver, delete(&db, &web, 7)).await.unwrap();
}

async fn a_changed_container_record_is_signalled(db: Database) {
    let web = stored(&db, &ada(&db).await, "web").await;
    let id = ready(&db, &web).await;
    go_live(&db, id, 2).await.unwrap();
    let mut receiver = subscribed(&db).await;
    let mut container = a_container("web");
    changes_nothing(&db, &mut receiver, record(&db, id, &container)).await;
    container.state = ContainerState::Exited;
    changes_routes(&db, &mut receiver, record(&db, id, &container)).await;
    container.address = None;
    changes_routes(&db, &mut receiver, record(&db, id, &container)).await;
    container.port = Port::try_from(81).unwrap();
    changes_routes(&db, &mut receiver, record(&db, id, &container)).await;
    let replace = |further_copies| {
        let container = a_container("copy");
        DeploymentWrite::ReplaceContainer { id, container, further_copies, at: at(3) }
    };
    changes_routes(&db, &mut receiver, one(&db, replace(vec![]))).await;
    let mut copy = a_container("another copy");
    changes_routes(&db, &mut receiver, one(&db, replace(vec![copy.clone()]))).await;
    changes_nothing(&db, &mut receiver, record(&db, id, &copy)).await;
    copy.state = ContainerState::Exited;
    changes_routes(&db, &mut receiver, record(&db, id, &copy)).await;
}

async fn changed_host_names_are_signalled(db: Database) {
    let ada = ada(&db).await;
    let web = an_application_of(&ada).at_domain("a.example.com").build();
    let mut receiver = subscribed(&db).await;
    changes_routes(&db, &mut receiver, insert(&db, &web)).await.unwrap();
    changes_routes(&db, &mut receiver, add_domain(&db, &web, "b.example.com")).await.unwrap();
    changes_routes(&db, &mut receiver, remove_domain(&db, &web, "b.example.com")).await.unwrap();
    changes_nothing(&db, &mut receiver, move_to(&db, &web, Some("a.example.com"))).await.unwrap();
    changes_routes(&db, &mut receiver, move_to(&db, &web, Some("c.example.com"))).await.unwrap();
    changes_routes(&db, &mut receiver, delete(&db, &web, 9)).await.unwrap();
}

async fn changed_routes_of_extensions_are_signalled(db: Database) {
    let ada = ada(&db).await;
    let route = a_route(&ada, "db", "db.example.com");
    let mut receiver = subscribed(&db).await;
    changes_routes(&db, &mut receiver, add_route(&db, &route)).await.unwrap();
    changes_nothing(&db, &mut receiver, add_route(&db, &route)).await.unwrap();
    changes_nothing(&db, &mut receiver, set_route_address(&db, route.id, 7)).await;
    changes_routes(&db, &mut receiver, set_route_address(&db, route.id, 8)).await;
    changes_routes(&db, &mut receiver, remove_route(&db, &route)).await.unwrap();
}

async fn statements_by_hand_are_signalled(db: Database) {
    let ada = ada(&db).await;
    enqueue(&db, &a_job(ada.scope())).await;
    let mut receiver = subscribed(&db).await;
    for statement in [
        "UPDATE hosts SET host = 'moved.example.com'",
        "UPDATE extension_routes SET address = '10.0.0.9'",
        "DELETE FROM extension_routes",
    ] {
        changes_routes(&db, &mut receiver, execute(&db, statement)).await;
    }
    let cancel = "UPDATE jobs SET state = 'cancelled', finished_at = enqueued_at";
    changes_jobs(&db, &mut receiver, execute(&db, cancel)).await;
}

async fn other_commits_have_no_signal(db: Database) {
    let ada = ada(&db).await;
    let web = stored(&db, &ada, "web").await;
    let deployment = deploy(&db, &web, 1).await;
    let claimed = running(&db, ada.scope()).await;
    let mut receiver = subscribed(&db).await;
    let quiet = async {
        db.heartbeat(&claimed.lease, at(60)).await.unwrap();
        append(&db, vec![a_log_line().of(&deployment).new_line()]).await;
        commit(&db, audit::Write::Append(an_entry(Chain::Organization(id())))).await.unwrap();
        ada.log_in(&db, "one").await;
        advance(&db, deployment.id, DeploymentState::Cloning, 2).await.unwrap();
        let settle = JobWrite::Settle { lease: claimed.lease, outcome: Outcome::Succeeded, at: at(61) };
        one(&db, settle).await;
        JobQueue::forget(&db, at(100)).await.unwrap();
    };
    changes_nothing(&db, &mut receiver, quiet).await;
}

async fn commits_that_were_rolled_back_have_no_signal(db: Database) {
    let ada = ada(&db).await;
    let mut receiver = subscribed(&db).await;
    let stale = JobWrite::RequestCancel { scope: Scope::of_record(id()), id: id(), at: at(1) };
    let failed = db.commit(audited(vec![JobWrite::Enqueue(a_job(ada.scope())).into(), stale.into()]));
    assert!(is_stale(&changes_nothing(&db, &mut receiver, failed).await));
}

async fn commits_of_another_process_are_signalled(fresh: &Fresh) {
    let db = &fresh.database;
    let ada = ada(db).await;
    let other = fresh.open_again();
    let mut receiver = subscribed(db).await;
    changes_jobs(db, &mut receiver, enqueue(&other, &a_job(ada.scope()))).await;
    let before = db.routes_epoch().await.unwrap();
    stored(&other, &ada, "web").await;
    assert_eq!(next(&mut receiver).await, Signal::Routes);
    assert!(db.routes_epoch().await.unwrap() > before);
}

async fn subscriptions_end_when_the_database_is_closed(fresh: &Fresh) {
    let db = fresh.open_again();
    let mut receiver = subscribed(&db).await;
    db.close().await;
    assert_eq!(receiver.next().await, None);
    let db = fresh.open_again();
    let mut receiver = subscribed(&db).await;
    drop(db);
    assert_eq!(receiver.next().await, None);
}

/// Ends the connections that receive notifications.
const KILL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'launchway signals'";

#[tokio::test]
async fn a_lost_connection_to_postgres_is_replaced() {
    let fresh = Fresh::on_postgres().await;
    let db = &fresh.database;
    let ada = ada(db).await;
    let mut receiver = subscribed(db).await;
    for _ in 0..2 {
        execute(db, KILL).await;
        assert_eq!([next(&mut receiver).await, next(&mut receiver).await], [Signal::Jobs, Signal::Routes]);
        changes_jobs(db, &mut receiver, enqueue(db, &a_job(ada.scope()))).await;
        changes_routes(db, &mut receiver, touch(db)).await;
    }
}
