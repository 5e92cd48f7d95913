//! Contract of `DeploymentRepository` and its writes.

mod concurrency;
mod containers;
mod follow;
pub(crate) mod jobs;
mod live;
mod progress;
mod requests;

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    deployments::{Deployment, DeploymentDetail, DeploymentRepository, DeploymentState, Progress, Write},
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    page::Page,
    store::{StoreError, UnitOfWork as _},
};
use launchway_testkit::builders::{a_container, a_deployment, a_log_line, a_page};

use crate::{
    applications::{again, an_application_of, delete, insert, stored},
    builders::{Resident, at, commit, id, is_stale},
    logs::append,
};

contract!(
    a_deployment_is_read_as_it_was_made,
    deployments_come_newest_first_and_ties_by_id,
    pages_divide_the_deployments_and_count_them,
    others_see_no_deployment,
    the_newest_deployment_of_each_application_is_found,
    deployments_of_a_deleted_application_are_not_seen,
    nobody_deploys_what_is_gone,
    a_deployment_is_seen_with_everything_around_it,
);

pub(crate) async fn insert_deployment(db: &Database, deployment: &Deployment) -> Deployment {
    commit(db, Write::Insert(deployment.clone())).await.unwrap();
    deployment.clone()
}

/// A queued deployment, requested `number` seconds after time zero.
pub(crate) async fn deploy(db: &Database, application: &Application, number: u32) -> Deployment {
    let deployment = a_deployment().of(application).numbered(number).created_at(at(number.into()));
    insert_deployment(db, &deployment.build()).await
}

/// Advances a deployment. Without an audit entry, because the request has one.
pub(crate) async fn advance(
    db: &Database,
    id: DeploymentId,
    to: DeploymentState,
    seconds: i64,
) -> Result<(), StoreError> {
    go_on(db, id, Progress { state: Some(to), ..Progress::default() }, seconds).await
}

async fn go_on(db: &Database, id: DeploymentId, progress: Progress, seconds: i64) -> Result<(), StoreError> {
    db.commit(vec![Write::Advance { id, progress, at: at(seconds) }.into()]).await
}

pub(crate) async fn go_live(db: &Database, id: DeploymentId, seconds: i64) -> Result<(), StoreError> {
    db.commit(vec![Write::GoLive { id, at: at(seconds) }.into()]).await
}

/// Advances a queued deployment until it is deployed.
pub(crate) async fn bring_to_life(db: &Database, id: DeploymentId, seconds: i64) {
    advance(db, id, DeploymentState::Deploying, seconds).await.unwrap();
    go_live(db, id, seconds).await.unwrap();
    advance(db, id, DeploymentState::Deployed, seconds).await.unwrap();
}

pub(crate) async fn get(db: &Database, scope: Scope, id: DeploymentId) -> Option<Deployment> {
    DeploymentRepository::get(db, scope, id).await.unwrap()
}

async fn detail(db: &Database, scope: Scope, id: DeploymentId) -> Option<DeploymentDetail> {
    DeploymentRepository::detail(db, scope, id).await.unwrap()
}

/// Returns the deployment as it is stored now.
async fn now(db: &Database, deployment: &Deployment) -> Deployment {
    get(db, Scope::of_record(deployment.organization_id), deployment.id).await.unwrap()
}

async fn page(
    db: &Database,
    scope: Scope,
    application: ApplicationId,
    (number, size): (i64, i64),
) -> Page<Deployment> {
    DeploymentRepository::page(db, scope, application, a_page(number, size)).await.unwrap()
}

async fn web(db: &Database) -> Application {
    stored(db, &Resident::of(db, "ada").await, "web").await
}

fn scope(application: &Application) -> Scope {
    Scope::of_record(application.organization_id)
}

async fn a_deployment_is_read_as_it_was_made(db: Database) {
    let application = web(&db).await;
    let bare = a_deployment().of(&application).build();
    let mut full = a_deployment()
        .of(&application)
        .numbered(2)
        .back_to(bare.id)
        .in_state(DeploymentState::Deploying)
        .made_of('a')
        .with_image()
        .run_by(a_container("web"))
        .build();
    full.requested_by = "a push to main on GitHub".to_owned();
    for deployment in [bare, full] {
        insert_deployment(&db, &deployment).await;
        assert_eq!(now(&db, &deployment).await, deployment);
    }
    assert_eq!(get(&db, scope(&application), id()).await, None);
}

async fn deployments_come_newest_first_and_ties_by_id(db: Database) {
    let application = web(&db).await;
    let mut stored = Vec::new();
    for (number, seconds) in [(1, 1), (2, 9), (3, 5), (4, 5)] {
        let deployment = a_deployment().of(&application).numbered(number).created_at(at(seconds)).build();
        stored.push(insert_deployment(&db, &Deployment { id: id(), ..deployment }).await.id);
    }
    let page = page(&db, scope(&application), application.id, (1, 10)).await;
    let ids: Vec<_> = page.items.into_iter().map(|deployment| deployment.id).collect();
    assert_eq!(ids, [stored[1], stored[3], stored[2], stored[0]]);
}

async fn pages_divide_the_deployments_and_count_them(db: Database) {
    let application = web(&db).await;
    let other = insert_other(&db, &application).await;
    deploy(&db, &other, 1).await;
    let mut expected = Vec::new();
    for number in 1..=7 {
        expected.insert(0, deploy(&db, &application, number).await);
    }
    let mut walked = Vec::new();
    for number in 1..=4 {
        let page = page(&db, scope(&application), application.id, (number, 3)).await;
        assert_eq!((page.total, page.request.number()), (7, number));
        walked.extend(page.items);
    }
    assert_eq!(walked, expected);
    let beyond = page(&db, scope(&application), application.id, (i64::MAX, 100)).await;
    assert_eq!((beyond.items, beyond.total), (vec![], 7));
}

/// Another application of the same organization.
async fn insert_other(db: &Database, application: &Application) -> Application {
    let mut other = Application { id: id(), ..application.clone() };
    other.blueprint.name = "other".parse().unwrap();
    insert(db, &other).await.unwrap();
    other
}

async fn the_newest_deployment_of_each_application_is_found(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let web = stored(&db, &ada, "web").await;
    let foreign = stored(&db, &grace, "web").await;
    deploy(&db, &web, 1).await;
    let newest = deploy(&db, &web, 2).await;
    deploy(&db, &foreign, 3).await;
    let found = db.newest(ada.scope(), &[web.id, foreign.id, id()]).await.unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [newest.id]);
    delete(&db, &web, 4).await.unwrap();
    assert_eq!(db.newest(ada.scope(), &[web.id]).await.unwrap(), []);
}

async fn others_see_no_deployment(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    let stranger = Resident::of(&db, "bob").await.scope();
    assert_eq!(get(&db, stranger, deployment.id).await, None);
    assert_eq!(detail(&db, stranger, deployment.id).await, None);
    let page = page(&db, stranger, application.id, (1, 10)).await;
    assert_eq!((page.items, page.total), (vec![], 0));
}

async fn deployments_of_a_deleted_application_are_not_seen(db: Database) {
    let application = web(&db).await;
    let deployment = deploy(&db, &application, 1).await;
    delete(&db, &application, 2).await.unwrap();
    assert_eq!(get(&db, scope(&application), deployment.id).await, None);
    assert_eq!(detail(&db, scope(&application), deployment.id).await, None);
    let page = page(&db, scope(&application), application.id, (1, 10)).await;
    assert_eq!((page.items, page.total), (vec![], 0));
}

async fn nobody_deploys_what_is_gone(db: Database) {
    let application = web(&db).await;
    let bob = Resident::of(&db, "bob").await;
    let never_stored = an_application_of(&bob).build();
    let foreign = Application { organization_id: bob.organization.id, ..application.clone() };
    for application in [&never_stored, &foreign] {
        let deployment = a_deployment().of(application).build();
        assert!(is_stale(&commit(&db, Write::Insert(deployment)).await));
    }
    delete(&db, &application, 1).await.unwrap();
    let late = a_deployment().of(&application).build();
    assert!(is_stale(&commit(&db, Write::Insert(late)).await));
}

async fn a_deployment_is_seen_with_everything_around_it(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let application = stored(&db, &ada, "web").await;
    let (deployment, other) = (deploy(&db, &application, 1).await, deploy(&db, &application, 2).await);
    let line = |number: i64| a_log_line().of(&deployment).numbered(number + 1).saying(&number.to_string());
    append(&db, vec![a_log_line().of(&other).new_line()]).await;
    append(&db, (1..=1001).map(|number| line(number).new_line()).collect()).await;
    append(&db, vec![a_log_line().of(&other).new_line()]).await;
    let lines: Vec<_> = (2..=1001).map(|number| line(number).build()).collect();
    let seen = detail(&db, ada.scope(), deployment.id).await.unwrap();
    assert_eq!(seen.deployment, deployment);
    assert_eq!(seen.application.application, again(&db, &application).await);
    assert_eq!((seen.application.organization, seen.application.user), (ada.organization, ada.user));
    assert_eq!(seen.logs, lines);
}
