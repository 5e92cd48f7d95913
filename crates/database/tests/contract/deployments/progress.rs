//! State changes of deployments.

use launchway_database::Database;
use launchway_domain::{
    applications::Port,
    deployments::{ContainerRecord, Deployment, DeploymentState as S, ImageName, Progress},
    jobs,
    store::UnitOfWork as _,
};
use launchway_testkit::builders::{a_container, a_deployment, parsed};

use super::{advance, deploy, go_live, go_on, insert_deployment, now, web};
use crate::{
    applications::{again, delete, stored},
    builders::{Resident, at, id, is_stale},
};

contract!(
    legal_moves_succeed_and_all_others_are_stale,
    what_becomes_known_is_added_to_what_is_known,
    facts_are_recorded_while_the_deployment_is_open,
    an_unknown_deployment_goes_nowhere,
    of_two_who_move_a_deployment_at_once_one_does,
    only_what_is_deploying_goes_live,
    guarded_writes_fail_without_the_lease,
    a_commit_of_an_upload_brings_its_digest,
);

async fn legal_moves_succeed_and_all_others_are_stale(db: Database) {
    let application = web(&db).await;
    let mut number = 0;
    for from in S::ALL {
        for to in S::ALL {
            number += 1;
            let deployment = a_deployment().of(&application).numbered(number).in_state(from).build();
            insert_deployment(&db, &deployment).await;
            let application = again(&db, &application).await;
            let outcome = advance(&db, deployment.id, to, 1).await;
            let moved = now(&db, &deployment).await;
            if from.advance(to).is_ok() {
                outcome.unwrap();
                assert_eq!((moved.status.state, moved.status.updated_at), (to, at(1)), "{from:?} {to:?}");
                assert_eq!((moved.updated_at, moved.created_at), (at(1), deployment.created_at));
            } else {
                assert!(is_stale(&outcome), "{from:?} {to:?}: {outcome:?}");
                assert_eq!(moved, deployment);
                assert_eq!(again(&db, &application).await, application);
            }
        }
    }
}

async fn what_becomes_known_is_added_to_what_is_known(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    let (commit, container) = (parsed(&"a".repeat(40)), a_container("web"));
    let image = ImageName::of(application.id, deployment.id);
    let port = Port::try_from(65_535).unwrap();
    let unaddressed = ContainerRecord { address: None, port, ..container.clone() };
    let steps = [
        Progress { state: Some(S::Cloning), ..Progress::default() },
        Progress { state: Some(S::Building), commit: Some(commit), ..Progress::default() },
        Progress { image: Some(image), ..Progress::default() },
        Progress { state: Some(S::Deploying), container: Some(container), ..Progress::default() },
        Progress { container: Some(unaddressed), ..Progress::default() },
    ];
    let mut expected = deployment.clone();
    for (seconds, step) in (10..).zip(steps) {
        go_on(&db, deployment.id, step.clone(), seconds).await.unwrap();
        if let Some(state) = step.state {
            expected.status.state = state;
            expected.status.updated_at = at(seconds);
        }
        expected.commit = step.commit.or(expected.commit);
        expected.image = step.image.or(expected.image);
        expected.container = step.container.or(expected.container);
        expected.updated_at = at(seconds);
        assert_eq!(now(&db, &deployment).await, expected);
    }
}

async fn facts_are_recorded_while_the_deployment_is_open(db: Database) {
    let application = web(&db).await;
    for (number, state) in (1..).zip(S::ALL) {
        let deployment = a_deployment().of(&application).numbered(number).in_state(state).build();
        insert_deployment(&db, &deployment).await;
        let facts = Progress { commit: Some(parsed(&"b".repeat(64))), ..Progress::default() };
        let outcome = go_on(&db, deployment.id, facts.clone(), 5).await;
        let expected = if state.is_final() {
            assert!(is_stale(&outcome), "{state:?}");
            deployment.clone()
        } else {
            outcome.unwrap();
            Deployment { commit: facts.commit, updated_at: at(5), ..deployment.clone() }
        };
        assert_eq!(now(&db, &deployment).await, expected);
    }
}

async fn an_unknown_deployment_goes_nowhere(db: Database) {
    assert!(is_stale(&advance(&db, id(), S::Cloning, 1).await));
    assert!(is_stale(&go_on(&db, id(), Progress::default(), 1).await));
    assert!(is_stale(&go_live(&db, id(), 1).await));
}

async fn of_two_who_move_a_deployment_at_once_one_does(db: Database) {
    let application = web(&db).await;
    for number in 1..=10 {
        let deployment = deploy(&db, &application, number).await;
        let (one, two) = tokio::join!(
            advance(&db, deployment.id, S::Cloning, 1),
            advance(&db, deployment.id, S::Cloning, 2)
        );
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        assert!(is_stale(&one) || is_stale(&two), "{one:?} {two:?}");
    }
}

async fn only_what_is_deploying_goes_live(db: Database) {
    let application = web(&db).await;
    for (number, state) in (1..).zip(S::ALL).filter(|(_, state)| *state != S::Deploying) {
        let deployment = a_deployment().of(&application).numbered(number).in_state(state).build();
        insert_deployment(&db, &deployment).await;
        let before = again(&db, &application).await;
        assert!(is_stale(&go_live(&db, deployment.id, 1).await), "{state:?}");
        assert_eq!(again(&db, &application).await, before);
    }
    let late = a_deployment().of(&application).numbered(99).in_state(S::Deploying).build();
    insert_deployment(&db, &late).await;
    delete(&db, &application, 2).await.unwrap();
    assert!(is_stale(&go_live(&db, late.id, 3).await));
    // What became of it is still recorded.
    advance(&db, late.id, S::Cancelled, 4).await.unwrap();
}

async fn guarded_writes_fail_without_the_lease(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    let worker = jobs::WorkerId { instance: id(), boot: id(), worker: 1 };
    let prove = jobs::Write::Prove(jobs::Lease { job: deployment.job_id, attempt: 1, worker });
    let progress = Progress { state: Some(S::Cloning), ..Progress::default() };
    let advance = super::Write::Advance { id: deployment.id, progress, at: at(1) };
    assert!(is_stale(&db.commit(vec![advance.into(), prove.into()]).await));
    assert_eq!(now(&db, &deployment).await, deployment);
}

async fn a_commit_of_an_upload_brings_its_digest(db: Database) {
    let application = web(&db).await;
    let other = stored(&db, &Resident::of(&db, "grace").await, "web").await;
    let digest = Some(parsed(&format!("sha256:{}", "c".repeat(64))));
    let uploaded = a_deployment().of(&application).made_of('a').created_at(at(1)).build();
    let uploaded = Deployment { source_digest: digest.clone(), ..uploaded };
    insert_deployment(&db, &uploaded).await;
    assert_eq!(now(&db, &uploaded).await, uploaded);
    for (application, number, commit, expected) in [
        (&application, 2, "a", digest),
        (&application, 3, "b", None),
        // The same commit of another application.
        (&other, 4, "a", None),
    ] {
        let deployment = deploy(&db, application, number).await;
        let commit = Some(parsed(&commit.repeat(40)));
        go_on(&db, deployment.id, Progress { commit, ..Progress::default() }, 9).await.unwrap();
        assert_eq!(now(&db, &deployment).await.source_digest, expected, "{number}");
    }
}
