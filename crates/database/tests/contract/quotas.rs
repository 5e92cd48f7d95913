//! Contract of `UsageRepository` and the quota guard of a transaction.

use chrono::TimeDelta;
use launchway_database::Database;
use launchway_domain::{
    applications,
    extensions::{self, ExecutionState, Extension, WORKSPACE_RETENTION},
    organizations::Scope,
    quotas::{self, Quota, QuotaExceeded, Quotas, Resource, UsageRepository as _},
    store::{StoreError, UnitOfWork as _, Write},
};
use launchway_testkit::builders::{a_log_line, an_extension};
use tokio::task::JoinSet;

use crate::{
    applications::{an_application_of, delete, stored},
    builders::{Resident, at, audited, commit, id},
    deployments::deploy,
    extensions::{a_run, begin, finish},
    fresh::Fresh,
    jobs::running,
    logs::append,
};

contract!(
    an_application_within_the_quota_is_made,
    what_exists_beyond_a_lowered_quota_stays,
    a_deleted_application_makes_room,
    another_organization_has_a_quota_of_its_own,
    of_many_at_the_last_place_one_gets_it,
    forks_are_limited,
    running_builds_are_counted,
    workspaces_count_while_they_are_kept,
    the_workspace_of_a_failed_run_does_not_count,
    a_resource_that_is_not_stored_cannot_be_required,
    bytes_of_logs_are_those_of_the_organization,
);

fn at_most(applications: u64) -> Quotas {
    Quotas { applications, ..Quotas::default() }
}

/// Creates an application as the use case does: with the guard.
async fn create(db: &Database, resident: &Resident, name: &str, quotas: Quotas) -> Result<(), StoreError> {
    let application = an_application_of(resident).named(name).build();
    let mut writes: Vec<Write> = quotas
        .require(resident.scope(), Resource::Applications, 1, at(0))
        .into_iter()
        .map(Into::into)
        .collect();
    writes.push(applications::Write::Insert(Box::new(application)).into());
    db.commit(audited(writes)).await
}

async fn used(db: &Database, scope: Scope, resource: Resource) -> Option<u64> {
    let usage = db.usage(scope, at(0)).await.unwrap();
    usage.into_iter().find(|(stored, _)| *stored == resource).map(|(_, used)| used)
}

fn exceeded(outcome: &Result<(), StoreError>) -> Option<(u64, u64)> {
    match outcome {
        Err(StoreError::QuotaExceeded(QuotaExceeded { used, limit, .. })) => Some((*used, *limit)),
        _ => None,
    }
}

async fn an_application_within_the_quota_is_made(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for name in ["one", "two"] {
        create(&db, &ada, name, at_most(2)).await.unwrap();
    }
    assert_eq!(exceeded(&create(&db, &ada, "three", at_most(2)).await), Some((2, 2)));
    assert_eq!(used(&db, ada.scope(), Resource::Applications).await, Some(2));
}

async fn what_exists_beyond_a_lowered_quota_stays(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for name in ["one", "two", "three"] {
        create(&db, &ada, name, at_most(0)).await.unwrap();
    }
    assert_eq!(exceeded(&create(&db, &ada, "four", at_most(2)).await), Some((3, 2)));
    assert_eq!(used(&db, ada.scope(), Resource::Applications).await, Some(3));
}

async fn a_deleted_application_makes_room(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let one = stored(&db, &ada, "one").await;
    assert_eq!(exceeded(&create(&db, &ada, "two", at_most(1)).await), Some((1, 1)));
    delete(&db, &one, 5).await.unwrap();
    create(&db, &ada, "two", at_most(1)).await.unwrap();
}

async fn another_organization_has_a_quota_of_its_own(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    create(&db, &ada, "one", at_most(1)).await.unwrap();
    create(&db, &grace, "one", at_most(1)).await.unwrap();
    assert_eq!(used(&db, grace.scope(), Resource::Applications).await, Some(1));
}

async fn of_many_at_the_last_place_one_gets_it(fresh: &Fresh) {
    let db = fresh.database.clone();
    // A SQLite file has one server.
    let replica = if fresh.folder().is_some() { db.clone() } else { fresh.open_again() };
    let servers = [db, replica];
    let ada = Resident::of(&servers[0], "ada").await;
    for round in 1..=5 {
        let mut tasks = JoinSet::new();
        for caller in 0..8 {
            let db = servers[caller % 2].clone();
            let application = an_application_of(&ada).named(&format!("web-{round}-{caller}")).build();
            let require = at_most(round).require(ada.scope(), Resource::Applications, 1, at(0));
            tasks.spawn(async move {
                let mut writes: Vec<Write> = require.into_iter().map(Into::into).collect();
                writes.push(applications::Write::Insert(Box::new(application)).into());
                db.commit(audited(writes)).await
            });
        }
        let outcomes = tasks.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        let refused = outcomes.iter().filter(|outcome| exceeded(outcome) == Some((round, round)));
        assert_eq!(refused.count(), 7, "{outcomes:?}");
        assert_eq!(used(&servers[0], ada.scope(), Resource::Applications).await, Some(round));
    }
}

async fn forks_are_limited(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let quotas = Quotas { extension_forks: 1, ..Quotas::default() };
    let fork = async |key: &str| {
        let fork = an_extension().keyed(key).forked_by(&ada.organization).build();
        let fork = Extension { id: id(), ..fork };
        let mut writes: Vec<Write> = quotas
            .require(ada.scope(), Resource::ExtensionForks, 1, at(0))
            .into_iter()
            .map(Into::into)
            .collect();
        writes.push(extensions::Write::Fork(Box::new(fork)).into());
        db.commit(audited(writes)).await
    };
    fork("one").await.unwrap();
    assert_eq!(exceeded(&fork("two").await), Some((1, 1)));
    let delete = extensions::Write::Delete { scope: ada.scope(), key: "one".parse().unwrap(), at: at(5) };
    commit(&db, delete).await.unwrap();
    assert_eq!(used(&db, ada.scope(), Resource::ExtensionForks).await, Some(0));
    fork("two").await.unwrap();
}

async fn running_builds_are_counted(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    running(&db, ada.scope()).await;
    assert_eq!(used(&db, ada.scope(), Resource::Builds).await, Some(1));
    assert_eq!(used(&db, grace.scope(), Resource::Builds).await, Some(0));
}

async fn workspaces_count_while_they_are_kept(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    let kept = async |moment| {
        let usage = db.usage(ada.scope(), moment).await.unwrap();
        usage.into_iter().find(|(resource, _)| *resource == Resource::ExtensionWorkspaces).unwrap().1
    };
    let long_after = at(5) + WORKSPACE_RETENTION + WORKSPACE_RETENTION;
    assert_eq!(kept(long_after).await, 1, "it waits");
    begin(&db, run.id).await.unwrap();
    assert_eq!(kept(long_after).await, 1, "it runs");
    finish(&db, run.id, ExecutionState::Completed).await.unwrap();
    assert_eq!(kept(at(5) + WORKSPACE_RETENTION - TimeDelta::seconds(1)).await, 1);
    assert_eq!(kept(at(5) + WORKSPACE_RETENTION).await, 0);
}

async fn the_workspace_of_a_failed_run_does_not_count(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    begin(&db, run.id).await.unwrap();
    finish(&db, run.id, ExecutionState::Failed).await.unwrap();
    assert_eq!(used(&db, ada.scope(), Resource::ExtensionWorkspaces).await, Some(0));
}

async fn a_resource_that_is_not_stored_cannot_be_required(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let quota = Quota { resource: Resource::LogStreams, limit: 1 };
    let require = quotas::Write::Require { scope: ada.scope(), quota, wanted: 1, at: at(0) };
    let outcome = db.commit(vec![require.into()]).await;
    assert!(matches!(outcome, Err(StoreError::Internal(_))), "{outcome:?}");
}

async fn bytes_of_logs_are_those_of_the_organization(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    for (resident, text) in [(&ada, "héllo"), (&grace, "a line of somebody else")] {
        let web = stored(&db, resident, "web").await;
        let deployment = deploy(&db, &web, 1).await;
        append(&db, vec![a_log_line().of(&deployment).saying(text).new_line()]).await;
    }
    let other = stored(&db, &ada, "other").await;
    let deployment = deploy(&db, &other, 2).await;
    append(&db, vec![a_log_line().of(&deployment).saying("12345").new_line()]).await;
    assert_eq!(used(&db, ada.scope(), Resource::LogBytes).await, Some(106 + 105));
    delete(&db, &other, 5).await.unwrap();
    assert_eq!(used(&db, ada.scope(), Resource::LogBytes).await, Some(106));
}
