//! Tests of a store.

use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use launchway_domain::{
    audit::{AuditRepository, Filter},
    deployments::{DeploymentRepository as _, DeploymentState},
    ids::JobId,
    jobs::Write as JobWrite,
    page::PageRequest,
    store::{StoreError, UnitOfWork as _},
};

use super::{
    Durability, Failures, Outcome, Ports, Test, check_repositories, equal,
    fixtures::{NOW, Tenant, advance, id},
    repositories, require, run, said,
};
use crate::{records::Records, repositories::Repositories, store::Store};

/// A store that is being opened.
pub(super) type Opening<'a> = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send + 'a>>;
/// Opens a store.
type Open<'a> = &'a (dyn Fn() -> Opening<'a> + Send + Sync);

pub(super) async fn check<'a>(open: Open<'a>, durability: Durability) -> Result<(), Failures> {
    let mut tests: Vec<(&'static str, Test<'a>)> = vec![
        ("a change is seen by the next query", Box::pin(is_seen(open))),
        ("a failed change changes nothing", Box::pin(is_undone(open))),
        ("changes are made one after the other", Box::pin(is_serial(open))),
        ("a dropped change is made whole or not at all", Box::pin(is_dropped(open))),
    ];
    if durability == Durability::Survives {
        tests.extend([
            ("a change survives", Box::pin(survives(open)) as Test<'a>),
            ("a change survives whole", Box::pin(survives_whole(open))),
            ("of two changes the later one survives", Box::pin(survives_in_order(open))),
            ("a failed change does not come back", Box::pin(stays_undone(open))),
            ("a removed record does not come back", Box::pin(stays_removed(open))),
        ]);
    }
    run(tests).await?;
    let repositories = Repositories(open().await);
    let port = || Arc::new(repositories.clone());
    let ports = Ports {
        store: port(),
        applications: port(),
        deployments: port(),
        jobs: port(),
        log_sink: port(),
        log_reader: port(),
        audit: port(),
    };
    let know = |actor: launchway_domain::auth::Actor| -> repositories::Knowing<'_> {
        let repositories = repositories.clone();
        Box::pin(async move { repositories.know(&actor).await.map_err(said) })
    };
    check_repositories(&ports, &know).await
}

/// Records a tenant.
async fn record(store: &Arc<dyn Store>, tenant: &Tenant) -> Outcome {
    let repositories = Repositories(Arc::clone(store));
    repositories.know(&tenant.actor).await.map_err(said)?;
    repositories.commit(tenant.insert()).await.map_err(said)
}

async fn has(store: &Arc<dyn Store>, tenant: &Tenant) -> Result<bool, String> {
    let mut found = false;
    let into = &mut found;
    let (scope, id) = (tenant.scope(), tenant.id());
    let query = Box::new(move |records: &Records| *into = records.application(scope, id).is_some());
    store.read(query).await.map_err(said)?;
    Ok(found)
}

async fn is_seen(open: Open<'_>) -> Outcome {
    let (store, tenant) = (open().await, Tenant::new());
    record(&store, &tenant).await?;
    require(has(&store, &tenant).await?, "a query does not see what was changed before")
}

/// Changes a record, and then fails.
async fn fail(store: &Arc<dyn Store>, tenant: &Tenant) -> Outcome {
    let actor = tenant.actor.clone();
    let failing = store.change(Box::new(move |records| {
        records.know(&actor);
        Err(StoreError::Stale)
    }));
    let failed = failing.await;
    require(matches!(failed, Err(StoreError::Stale)), "the error of a transaction is not returned")
}

async fn knows(store: &Arc<dyn Store>, tenant: &Tenant) -> Result<bool, String> {
    let mut found = false;
    let (into, actor) = (&mut found, &tenant.actor);
    store.read(Box::new(move |records: &Records| *into = records.is_known(actor))).await.map_err(said)?;
    Ok(found)
}

async fn is_undone(open: Open<'_>) -> Outcome {
    let (store, tenant) = (open().await, Tenant::new());
    fail(&store, &tenant).await?;
    require(!knows(&store, &tenant).await?, "a query sees what a failed transaction changed")
}

async fn is_serial(open: Open<'_>) -> Outcome {
    const LINES: usize = 50;
    let (store, tenant) = (open().await, Tenant::new());
    record(&store, &tenant).await?;
    let repositories = Repositories(Arc::clone(&store));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..LINES {
        let (repositories, line) = (repositories.clone(), tenant.line(id(), "line"));
        tasks.spawn(async move {
            let append = launchway_domain::logs::Write::Append(vec![line]);
            repositories.commit(vec![append.into()]).await
        });
    }
    while let Some(appended) = tasks.join_next().await {
        appended.map_err(said)?.map_err(said)?;
    }
    let mut numbers = Vec::new();
    let (into, of) = (&mut numbers, tenant.id());
    let query = Box::new(move |records: &Records| into.extend(records.lines_of(of).map(|line| line.number)));
    store.read(query).await.map_err(said)?;
    equal(numbers, (1..=LINES as i64).collect(), "the numbers of lines that were appended at once")
}

/// Cancels a job, so that no other test claims it.
async fn abandon(repositories: &Repositories, tenant: &Tenant, id: JobId) -> Outcome {
    let cancel = JobWrite::RequestCancel { scope: tenant.scope(), id, at: NOW };
    repositories.commit(vec![cancel.into(), tenant.follow(), tenant.entry()]).await.map_err(said)
}

/// Drops changes after their first poll. The next ones work, and the dropped ones are there whole or not at all.
async fn is_dropped(open: Open<'_>) -> Outcome {
    let store = open().await;
    for _ in 0..10 {
        let tenant = Tenant::new();
        let repositories = Repositories(Arc::clone(&store));
        repositories.know(&tenant.actor).await.map_err(said)?;
        let mut change = Box::pin(repositories.commit(tenant.insert()));
        let poll =
            |context: &mut std::task::Context<'_>| Poll::Ready(change.as_mut().poll(context).is_ready());
        poll_fn(poll).await;
        drop(change);
        let (scope, id) = (tenant.scope(), tenant.id());
        let is_there = has(&store, &tenant).await?;
        let page = PageRequest::new(1, 10, 10).map_err(said)?;
        let filter = Filter::default();
        let entries = AuditRepository::page(&repositories, scope, &filter, page);
        let entries = entries.await.map_err(said)?.total;
        equal(entries, i64::from(is_there), "the audit entries of a dropped change")?;
        if is_there {
            let delete = launchway_domain::applications::Write::Delete { scope, id, at: NOW };
            repositories.commit(vec![delete.into(), tenant.entry()]).await.map_err(said)?;
        } else {
            record(&store, &tenant).await?;
        }
    }
    Ok(())
}

async fn survives(open: Open<'_>) -> Outcome {
    for _ in 0..3 {
        let (store, tenant) = (open().await, Tenant::new());
        record(&store, &tenant).await?;
        drop(store);
        require(
            has(&open().await, &tenant).await?,
            "a confirmed change is lost when the store is opened again",
        )?;
    }
    Ok(())
}

async fn survives_whole(open: Open<'_>) -> Outcome {
    let (store, tenant) = (open().await, Tenant::new());
    record(&store, &tenant).await?;
    let (deployment, job, writes) = tenant.request();
    Repositories(Arc::clone(&store)).commit(writes).await.map_err(said)?;
    drop(store);
    let store = open().await;
    let mut found = (false, false);
    let (into, scope) = (&mut found, tenant.scope());
    let query = Box::new(move |records: &Records| {
        *into = (records.deployment(scope, deployment).is_some(), records.job(scope, job).is_some());
    });
    store.read(query).await.map_err(said)?;
    abandon(&Repositories(store), &tenant, job).await?;
    equal(found, (true, true), "the deployment and the job of one transaction")
}

async fn survives_in_order(open: Open<'_>) -> Outcome {
    let (store, tenant) = (open().await, Tenant::new());
    record(&store, &tenant).await?;
    let (deployment, job, writes) = tenant.request();
    let repositories = Repositories(Arc::clone(&store));
    repositories.commit(writes).await.map_err(said)?;
    for state in [DeploymentState::Deploying, DeploymentState::Queued, DeploymentState::Failed] {
        repositories.commit(vec![advance(deployment, state)]).await.map_err(said)?;
    }
    drop((store, repositories));
    let repositories = Repositories(open().await);
    let found = repositories.get(tenant.scope(), deployment).await.map_err(said)?;
    abandon(&repositories, &tenant, job).await?;
    equal(
        found.map(|found| found.status.state),
        Some(DeploymentState::Failed),
        "the state after three changes",
    )
}

async fn stays_undone(open: Open<'_>) -> Outcome {
    let (store, tenant) = (open().await, Tenant::new());
    fail(&store, &tenant).await?;
    record(&store, &Tenant::new()).await?;
    drop(store);
    require(!knows(&open().await, &tenant).await?, "the store kept what a failed transaction changed")
}

async fn stays_removed(open: Open<'_>) -> Outcome {
    let (store, tenant) = (open().await, Tenant::new());
    record(&store, &tenant).await?;
    let (scope, id) = (tenant.scope(), tenant.id());
    let delete = launchway_domain::applications::Write::Delete { scope, id, at: NOW };
    let deleted = Repositories(Arc::clone(&store)).commit(vec![delete.into(), tenant.entry()]).await;
    deleted.map_err(said)?;
    drop(store);
    require(
        !has(&open().await, &tenant).await?,
        "a removed application is back when the store is opened again",
    )
}
