//! Detection of missed commits.

use launchway_database::Database;
use launchway_domain::{
    applications::{self, Application, Repository},
    deployments::{self, Deployment, DeploymentState},
    jobs::{self, JobKind, NewJob},
    organizations::Scope,
    store::{StoreError, UnitOfWork as _},
    webhooks::{BranchHead, FollowedBranches, Write},
};
use launchway_testkit::builders::a_deployment;
use tokio::task::JoinSet;

use crate::{
    applications::{delete, stored},
    builders::{Resident, at, audited, commit, id, is_stale},
    deployments::{advance, insert_deployment},
};

contract!(
    a_commit_that_was_never_deployed_is_missed,
    a_commit_that_has_a_deployment_in_whatever_state_is_not,
    nothing_is_missed_while_a_deployment_is_not_over,
    a_rollback_is_not_undone_until_the_next_deployment,
    a_stop_is_not_undone_until_the_next_deployment,
    who_called_a_deployment_off_does_not_miss_it,
    a_commit_that_asked_to_be_passed_over_is_not_missed,
    who_does_not_follow_the_branch_any_more_misses_nothing,
    of_those_who_notice_at_once_one_deploys,
);

/// The head of the application's branch, at a commit of that digit.
fn head(application: &Application, digit: char) -> BranchHead {
    let Repository::Git(repository) = application.blueprint.repository.clone() else {
        panic!("no repository");
    };
    BranchHead {
        application: application.id,
        repository,
        branch: application.blueprint.branch.clone().unwrap(),
        commit: digit.to_string().repeat(40).parse().unwrap(),
    }
}

/// Asserts that the query and the guard agree.
#[track_caller]
fn agree(asked: bool, guarded: &Result<(), StoreError>) -> bool {
    match (asked, guarded) {
        (true, Ok(())) => true,
        (false, Err(StoreError::Stale)) => false,
        other => panic!("{other:?}"),
    }
}

async fn is_missed(db: &Database, head: &BranchHead) -> bool {
    let asked = FollowedBranches::is_missed(db, head).await.unwrap();
    agree(asked, &db.commit(vec![Write::RequireMissed(head.clone()).into()]).await)
}
/// The application "web", deployed from commit `a`.
async fn web(db: &Database) -> Application {
    let web = stored(db, &Resident::of(db, "ada").await, "web").await;
    deployed(db, &web, 1, 'a').await;
    web
}

async fn deployed(db: &Database, application: &Application, number: u32, digit: char) -> Deployment {
    let deployment = a_deployment().of(application).numbered(number).made_of(digit);
    let deployment = deployment.in_state(DeploymentState::Deployed).created_at(at(number.into()));
    insert_deployment(db, &deployment.build()).await
}

async fn stop(db: &Database, application: &Application, seconds: i64) {
    let job = NewJob {
        id: id(),
        kind: JobKind::Stop,
        scope: Scope::of_record(application.organization_id),
        subject: application.id.into(),
        replaceable: true,
        payload: String::new(),
        pool: launchway_domain::jobs::Pool::Operations,
        run_at: at(seconds),
        enqueued_at: at(seconds),
    };
    db.commit(vec![jobs::Write::Enqueue(job).into()]).await.unwrap();
}

async fn a_commit_that_was_never_deployed_is_missed(db: Database) {
    let web = web(&db).await;
    assert!(is_missed(&db, &head(&web, 'b')).await);
    assert!(!is_missed(&db, &head(&web, 'a')).await);
}

async fn a_commit_that_has_a_deployment_in_whatever_state_is_not(db: Database) {
    let web = web(&db).await;
    for (number, state) in (2..).zip(DeploymentState::ALL) {
        let digit = char::from_digit(number, 16).unwrap();
        assert!(is_missed(&db, &head(&web, digit)).await, "{state:?}");
        let deployment = a_deployment().of(&web).numbered(number).made_of(digit).in_state(state);
        let deployment = insert_deployment(&db, &deployment.created_at(at(number.into())).build()).await;
        assert!(!is_missed(&db, &head(&web, digit)).await, "{state:?}");
        if !state.is_final() {
            finish(&db, &deployment).await;
            assert!(!is_missed(&db, &head(&web, digit)).await, "{state:?}");
        }
    }
}

/// Fails the deployment.
async fn finish(db: &Database, deployment: &Deployment) {
    advance(db, deployment.id, DeploymentState::Failed, 50).await.unwrap();
}

async fn nothing_is_missed_while_a_deployment_is_not_over(db: Database) {
    let web = web(&db).await;
    let open = insert_deployment(&db, &a_deployment().of(&web).numbered(2).created_at(at(2)).build()).await;
    assert!(!is_missed(&db, &head(&web, 'b')).await);
    finish(&db, &open).await;
    assert!(is_missed(&db, &head(&web, 'b')).await);
}

async fn a_rollback_is_not_undone_until_the_next_deployment(db: Database) {
    let web = web(&db).await;
    let first = deployed(&db, &web, 2, 'b').await;
    let back = a_deployment().of(&web).numbered(3).back_to(first.id).made_of('b').created_at(at(3));
    insert_deployment(&db, &back.in_state(DeploymentState::Deployed).build()).await;
    assert!(!is_missed(&db, &head(&web, 'c')).await);
    deployed(&db, &web, 4, 'd').await;
    assert!(is_missed(&db, &head(&web, 'c')).await);
}

async fn a_stop_is_not_undone_until_the_next_deployment(db: Database) {
    let web = web(&db).await;
    stop(&db, &web, 1).await;
    assert!(!is_missed(&db, &head(&web, 'b')).await);
    deployed(&db, &web, 2, 'c').await;
    assert!(is_missed(&db, &head(&web, 'b')).await);
}

async fn who_called_a_deployment_off_does_not_miss_it(db: Database) {
    let web = web(&db).await;
    let off = a_deployment().of(&web).numbered(2).in_state(DeploymentState::Cancelled).created_at(at(2));
    insert_deployment(&db, &off.build()).await;
    assert!(!is_missed(&db, &head(&web, 'b')).await);
    // Of this one it is known what it was made of.
    let off = a_deployment().of(&web).numbered(3).made_of('c').in_state(DeploymentState::Cancelled);
    insert_deployment(&db, &off.created_at(at(3)).build()).await;
    assert!(is_missed(&db, &head(&web, 'b')).await);
    assert!(!is_missed(&db, &head(&web, 'c')).await);
}

async fn a_commit_that_asked_to_be_passed_over_is_not_missed(db: Database) {
    let web = web(&db).await;
    for digit in ['b', 'c'] {
        let commit = head(&web, digit).commit;
        let pass_over = Write::PassOver { application: web.id, commit, at: at(2) };
        db.commit(vec![pass_over.into()]).await.unwrap();
        assert!(!is_missed(&db, &head(&web, digit)).await);
    }
    assert!(is_missed(&db, &head(&web, 'd')).await);
}

async fn who_does_not_follow_the_branch_any_more_misses_nothing(db: Database) {
    let web = web(&db).await;
    let head = head(&web, 'b');
    let other = BranchHead { branch: "other".parse().unwrap(), ..head.clone() };
    assert!(!is_missed(&db, &other).await);
    let elsewhere = "https://git.example.com/elsewhere".to_owned().try_into().unwrap();
    assert!(!is_missed(&db, &BranchHead { repository: elsewhere, ..head.clone() }).await);
    assert!(!is_missed(&db, &BranchHead { application: id(), ..head.clone() }).await);

    let mut blueprint = web.blueprint.clone();
    blueprint.auto_deploy = false;
    let update = |blueprint| applications::Write::Update {
        scope: Scope::of_record(web.organization_id),
        id: web.id,
        seen: None,
        blueprint: Box::new(blueprint),
        secrets: web.secrets.clone(),
        at: at(3),
    };
    commit(&db, update(blueprint)).await.unwrap();
    assert!(!is_missed(&db, &head).await);
    commit(&db, update(web.blueprint.clone())).await.unwrap();
    assert!(is_missed(&db, &head).await);
    delete(&db, &web, 4).await.unwrap();
    assert!(!is_missed(&db, &head).await);
}

async fn of_those_who_notice_at_once_one_deploys(db: Database) {
    let web = web(&db).await;
    let mut tasks = JoinSet::new();
    for number in 2..8 {
        let (db, head) = (db.clone(), head(&web, 'b'));
        let deployment = a_deployment().of(&web).numbered(number).created_at(at(number.into())).build();
        tasks.spawn(async move {
            let insert = deployments::Write::Insert(deployment);
            db.commit(audited(vec![Write::RequireMissed(head).into(), insert.into()])).await
        });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| is_stale(outcome)).count(), 5, "{outcomes:?}");
}
