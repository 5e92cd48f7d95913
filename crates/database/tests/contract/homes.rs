//! Contract of `HomeRepository`, and of the queue for what has a home.

use launchway_database::Database;
use launchway_domain::{
    deployments::{CompositionRepository as _, Deployment},
    extensions::{ExecutionState, Write},
    homes::{Home, HomeRepository, Machine},
    ids::{InstanceId, SubjectId},
    jobs::{JobKind, JobQueue as _, JobState, NewJob},
    secret::Sealed,
};
use launchway_testkit::builders::a_deployment;
use uuid::Uuid;

use crate::{
    applications::stored,
    builders::{Resident, at, commit, id},
    deployments::insert_deployment,
    extensions::{a_fork, a_run_of, an_entry, begin, finish, quietly, request},
    jobs::{a_job, claim, enqueue, job, somebody, worker},
};

contract!(
    a_home_is_assigned_once_and_never_changes,
    jobs_of_a_subject_run_at_its_home_only,
    a_job_that_was_queued_before_waits_for_the_home,
    deployments_that_wait_for_a_server_are_listed,
    runs_that_wait_for_a_server_are_listed,
    homes_follow_their_machine_to_another_node_or_server,
    the_homes_on_a_node_are_forgotten_together,
    the_home_of_extensions_is_forgotten_with_the_last_one,
    a_request_binds_an_extension_to_the_home_of_all,
    extensions_from_before_the_swarm_have_no_home,
    compositions_from_before_the_swarm_have_no_home,
);

fn a_home(subject: SubjectId, server: InstanceId) -> Home {
    let node = "zk9ltvpzp6r2r8lz1sm1imk1x".parse().unwrap();
    let machine = Machine { engine: format!("engine of {server}"), node, hostname: "server-1".to_owned() };
    Home { subject, server, machine }
}

async fn a_home_is_assigned_once_and_never_changes(db: Database) {
    let [first, second] = [1, 2].map(|number| InstanceId::from(Uuid::from_u128(number)));
    let subject = SubjectId::from(Uuid::from_u128(7));
    let home = a_home(subject, first);
    assert_eq!(db.assign(&home).await.unwrap(), home);
    assert_eq!(db.assign(&a_home(subject, second)).await.unwrap(), home);
    let other = a_home(Uuid::from_u128(8).into(), second);
    assert_eq!(db.assign(&other).await.unwrap(), other);
    let mut all = db.homes().await.unwrap();
    all.sort_by_key(|home| home.subject);
    assert_eq!(all, [home, other.clone()]);
    for _ in 0..2 {
        HomeRepository::forget(&db, subject).await.unwrap();
    }
    assert_eq!(db.homes().await.unwrap(), [other]);
}

async fn homes_follow_their_machine_to_another_node_or_server(db: Database) {
    let [first, second, third] = [1, 2, 3].map(|number| InstanceId::from(Uuid::from_u128(number)));
    // They were cloned, so that their engines have one id.
    let machine = |hostname: &str, node: &str| Machine {
        engine: "cloned".to_owned(),
        node: node.parse().unwrap(),
        hostname: hostname.to_owned(),
    };
    let home = |subject: u128, server: InstanceId, machine: &Machine| Home {
        subject: Uuid::from_u128(subject).into(),
        server,
        machine: machine.clone(),
    };
    let (before, elsewhere) = (machine("server-1", "nodeone"), machine("server-2", "nodetwo"));
    let now = machine("server-1", "nodethree");
    for new in [home(1, first, &before), home(2, second, &elsewhere), home(3, second, &now)] {
        db.assign(&new).await.unwrap();
    }
    let homes = async || {
        let mut homes = db.homes().await.unwrap();
        homes.sort_by_key(|home| home.subject);
        homes
    };
    // The machine joined again as another node, on which another server that is alive has a home.
    assert_eq!(db.renew(first, &now, &[first, second]).await.unwrap(), 1);
    let renewed = [home(1, first, &now), home(2, second, &elsewhere), home(3, second, &now)];
    assert_eq!(homes().await, renewed);
    // The data directory of that server was lost. The other machine is left alone, although its server is not alive.
    assert_eq!(db.renew(third, &now, &[first, third]).await.unwrap(), 1);
    assert_eq!(homes().await, [home(1, first, &now), home(2, second, &elsewhere), home(3, third, &now)]);
    assert_eq!(db.renew(third, &now, &[first, third]).await.unwrap(), 0);
    assert_eq!(
        db.renew(second, &machine("server-3", "nodefour"), &[]).await.unwrap(),
        0,
        "no volumes are there"
    );
}

async fn the_homes_on_a_node_are_forgotten_together(db: Database) {
    let server = InstanceId::from(Uuid::from_u128(1));
    let (lost, mut kept) =
        (a_home(Uuid::from_u128(7).into(), server), a_home(Uuid::from_u128(8).into(), server));
    kept.machine.node = "other".parse().unwrap();
    for home in [&lost, &kept] {
        db.assign(home).await.unwrap();
    }
    let node = lost.machine.node.clone();
    assert_eq!(db.forget_node(&node).await.unwrap(), [lost]);
    assert_eq!(db.homes().await.unwrap(), [kept]);
    assert_eq!(db.forget_node(&node).await.unwrap(), []);
}

async fn a_request_binds_an_extension_to_the_home_of_all(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let all = SubjectId::from(Uuid::from(ada.scope().id()));
    let [first, second] = [1, 2].map(|number| InstanceId::from(Uuid::from_u128(number)));
    let jobs = [5, 6].map(|number| SubjectId::from(Uuid::from_u128(number)));
    for (number, (server, subject)) in (1..).zip([first, second].into_iter().zip(jobs)) {
        let fork = a_fork(&db, &ada, &format!("fork-{number}")).await;
        let (execution, steps) = a_run_of(&ada, &fork).numbered(number).with_steps();
        let home = Some((a_home(all, server), subject));
        let request = Write::Request { execution: Box::new(execution), steps, installs: true, home };
        commit(&db, request).await.unwrap();
    }
    let homes = db.homes().await.unwrap();
    let mut bound: Vec<_> = homes.iter().map(|home| (home.subject, home.server)).collect();
    bound.sort();
    let mut expected = [(all, first), (jobs[0], first), (jobs[1], first)];
    expected.sort();
    assert_eq!(bound, expected);
}

async fn jobs_of_a_subject_run_at_its_home_only(db: Database) {
    let scope = somebody(&db).await;
    let [home, other] = [worker(1, 1, 1), worker(2, 1, 1)];
    for kind in JobKind::ALL {
        let new = NewJob { kind, replaceable: false, ..a_job(scope) };
        db.assign(&a_home(new.subject, home.instance)).await.unwrap();
        enqueue(&db, &new).await;
        assert_eq!(claim(&db, other, 0).await, None, "{}", kind.as_str());
        let claimed = claim(&db, home, 0).await.unwrap();
        assert_eq!(claimed.job.id, new.id);
        db.release(&claimed.lease, at(1)).await.unwrap();
        assert_eq!(claim(&db, other, 10_000).await, None, "{}", kind.as_str());
        let again = claim(&db, home, 1).await.unwrap();
        db.postpone(&again.lease, "waiting", at(2), at(2)).await.unwrap();
        // Nothing is left of it there.
        HomeRepository::forget(&db, new.subject).await.unwrap();
        let next = if kind.is_bound() { home } else { other };
        assert_eq!(claim(&db, next, 2).await.unwrap().job.id, new.id, "{}", kind.as_str());
    }
}

async fn a_job_that_was_queued_before_waits_for_the_home(db: Database) {
    let scope = somebody(&db).await;
    let [home, other] = [worker(1, 1, 1), worker(2, 1, 1)];
    let (first, free) = (a_job(scope), a_job(scope));
    enqueue(&db, &first).await;
    db.assign(&a_home(first.subject, home.instance)).await.unwrap();
    enqueue(&db, &free).await;
    // It holds up nobody else.
    assert_eq!(claim(&db, other, 0).await.unwrap().job.id, free.id);
    assert_eq!(claim(&db, other, 0).await, None);
    assert_eq!(job(&db, scope, first.id).await.state, JobState::Queued);
    assert_eq!(claim(&db, worker(1, 2, 5), 0).await.unwrap().job.id, first.id, "in its next boot too");
}

async fn deployments_that_wait_for_a_server_are_listed(db: Database) {
    let scope = somebody(&db).await;
    let [home, other] = [worker(1, 1, 1), worker(2, 1, 1)];
    let deployment = Uuid::from_u128(77);
    let deploys = NewJob { kind: JobKind::Deploy, payload: deployment.to_string(), ..a_job(scope) };
    let restarts = NewJob { kind: JobKind::Restart, ..a_job(scope) };
    for job in [&deploys, &restarts] {
        db.assign(&a_home(job.subject, home.instance)).await.unwrap();
        enqueue(&db, job).await;
    }
    let waiting = db.waiting_for(home.instance).await.unwrap();
    assert_eq!(waiting, [(deploys.subject.into(), deployment.into())]);
    assert_eq!(db.waiting_for(other.instance).await.unwrap(), []);
    while claim(&db, home, 0).await.is_some() {}
    assert_eq!(db.waiting_for(home.instance).await.unwrap(), []);
}

async fn runs_that_wait_for_a_server_are_listed(db: Database) {
    let scope = somebody(&db).await;
    let [home, other] = [worker(1, 1, 1), worker(2, 1, 1)];
    let run = Uuid::from_u128(77);
    let runs =
        NewJob { kind: JobKind::RunExtension, replaceable: false, payload: run.to_string(), ..a_job(scope) };
    let removes = NewJob { kind: JobKind::UninstallExtension, replaceable: false, ..a_job(scope) };
    for job in [&runs, &removes] {
        db.assign(&a_home(job.subject, home.instance)).await.unwrap();
        enqueue(&db, job).await;
    }
    assert_eq!(db.runs_waiting_for(home.instance).await.unwrap(), [(runs.subject, run.into())]);
    assert_eq!(db.runs_waiting_for(other.instance).await.unwrap(), []);
    claim(&db, home, 0).await.unwrap();
    claim(&db, home, 0).await.unwrap();
    assert_eq!(db.runs_waiting_for(home.instance).await.unwrap(), []);
}

async fn the_home_of_extensions_is_forgotten_with_the_last_one(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let server = worker(1, 1, 1).instance;
    let [first, second] = [5, 6].map(|number| SubjectId::from(Uuid::from_u128(number)));
    let all = SubjectId::from(Uuid::from(ada.scope().id()));
    let forks = [a_fork(&db, &ada, "first").await, a_fork(&db, &ada, "second").await];
    for (number, fork) in (1..).zip(&forks) {
        let run = a_run_of(&ada, fork).numbered(number).with_steps();
        request(&db, run.clone(), true).await.unwrap();
        finish(&db, run.0.id, ExecutionState::Failed).await.unwrap();
    }
    for subject in [all, first, second] {
        db.assign(&a_home(subject, server)).await.unwrap();
    }
    let homes = async || {
        let homes = db.homes().await.unwrap();
        let mut subjects: Vec<SubjectId> = homes.into_iter().map(|home| home.subject).collect();
        subjects.sort();
        subjects
    };
    let sorted = |mut subjects: Vec<SubjectId>| {
        subjects.sort();
        subjects
    };
    let uninstall = async |key: &str, subject: SubjectId, with_volumes: bool| {
        let scope = ada.scope();
        let extension = key.parse().unwrap();
        quietly(&db, Write::Uninstall { scope, extension, subject, with_volumes }).await.unwrap();
    };
    uninstall("first", first, false).await;
    assert_eq!(homes().await, sorted(vec![all, first, second]), "its volumes are there");
    uninstall("first", first, true).await;
    assert_eq!(homes().await, sorted(vec![all, second]));
    uninstall("second", second, true).await;
    assert_eq!(homes().await, []);
}

async fn extensions_from_before_the_swarm_have_no_home(db: Database) {
    let [ada, bob] = [Resident::of(&db, "ada").await, Resident::of(&db, "bob").await];
    let entry = an_entry(&db).await;
    let run = a_run_of(&ada, &entry).with_steps();
    request(&db, run.clone(), true).await.unwrap();
    let waits = a_run_of(&bob, &entry).numbered(2).with_steps();
    request(&db, waits, true).await.unwrap();
    assert_eq!(db.extensions_without_home().await.unwrap(), [], "nothing was created yet");
    begin(&db, run.0.id).await.unwrap();
    finish(&db, run.0.id, ExecutionState::Completed).await.unwrap();
    assert_eq!(db.extensions_without_home().await.unwrap(), [ada.scope().id()]);
    let subject = Uuid::from(ada.scope().id()).into();
    db.assign(&a_home(subject, worker(1, 1, 1).instance)).await.unwrap();
    assert_eq!(db.extensions_without_home().await.unwrap(), []);
}

async fn compositions_from_before_the_swarm_have_no_home(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let [web, other] = [stored(&db, &ada, "web").await, stored(&db, &ada, "other").await];
    for application in [&web, &web, &other] {
        let deployment = Deployment { id: id(), ..a_deployment().of(application).build() };
        insert_deployment(&db, &deployment).await;
        db.keep(application.id, deployment.id, Sealed("text".to_owned()), 100).await.unwrap();
    }
    let mut found = db.compositions_without_home().await.unwrap();
    found.sort();
    let mut expected = [web.id, other.id];
    expected.sort();
    assert_eq!(found, expected);
    db.assign(&a_home(web.id.into(), worker(1, 1, 1).instance)).await.unwrap();
    assert_eq!(db.compositions_without_home().await.unwrap(), [other.id]);
}
