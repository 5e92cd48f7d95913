//! Contract of `ExtensionRepository`, `ExecutionRepository`, `ExecutionLog` and their writes.

mod catalog;
mod concurrency;
pub(crate) mod follow;
mod forks;
mod host_ports;
mod logs;
mod moves;
mod pages;
mod requests;
pub(crate) mod routes;

use launchway_database::Database;
use launchway_domain::{
    extensions::{
        Execution, ExecutionEnd, ExecutionLog as _, ExecutionRepository, ExecutionState as S, ExecutionStep,
        Extension, ExtensionKey, ExtensionRepository, NewExecutionLine, Phase, Write,
    },
    ids::{ExecutionId, ExecutionStepId},
    logs::Level,
    organizations::Scope,
    store::{StoreError, UnitOfWork as _},
};
use launchway_testkit::builders::{ExecutionBuilder, an_execution, an_extension, parsed};

use crate::builders::{Resident, at, commit};

/// Commits a write without an audit entry.
pub(crate) async fn quietly(db: &Database, write: Write) -> Result<(), StoreError> {
    db.commit(vec![write.into()]).await
}

async fn publish(db: &Database, extension: &Extension) -> Result<(), StoreError> {
    quietly(db, Write::Publish(Box::new(extension.clone()))).await
}

async fn withdraw_all_but(db: &Database, keep: &[&str], seconds: i64) {
    let keep = keep.iter().map(|key| parsed(key)).collect();
    quietly(db, Write::Withdraw { keep, at: at(seconds) }).await.unwrap();
}

/// The stored entry `hello-note` of the catalog.
pub(crate) async fn an_entry(db: &Database) -> Extension {
    let entry = an_extension().created_at(at(0)).asking_for("who").build();
    publish(db, &entry).await.unwrap();
    entry
}

async fn fork(db: &Database, extension: &Extension) -> Result<(), StoreError> {
    commit(db, Write::Fork(Box::new(extension.clone()))).await
}

/// A stored fork of that user's organization.
pub(crate) async fn a_fork(db: &Database, resident: &Resident, key: &str) -> Extension {
    let extension = an_extension().keyed(key).forked_by(&resident.organization).created_at(at(0)).build();
    fork(db, &extension).await.unwrap();
    extension
}

async fn delete(db: &Database, scope: Scope, key: &ExtensionKey, seconds: i64) -> Result<(), StoreError> {
    commit(db, Write::Delete { scope, key: key.clone(), at: at(seconds) }).await
}

async fn by_key(db: &Database, scope: Scope, key: &str) -> Option<Extension> {
    ExtensionRepository::by_key(db, scope, &parsed(key)).await.unwrap()
}

/// A run requested by a user in their organization, with two steps and one that checks them.
pub(crate) fn a_run_of(resident: &Resident, extension: &Extension) -> ExecutionBuilder {
    an_execution()
        .of(extension)
        .in_organization(&resident.organization)
        .asked_for_by(&resident.user)
        .created_at(at(1))
        .with_step("Make folder", Phase::Run)
        .with_step("Write greeting", Phase::Run)
        .with_step("Check file", Phase::Validate)
}

pub(crate) type RunWithSteps = (Execution, Vec<ExecutionStep>);

pub(crate) async fn request(
    db: &Database,
    (execution, steps): RunWithSteps,
    installs: bool,
) -> Result<(), StoreError> {
    commit(db, Write::Request { execution: Box::new(execution), steps, installs, home: None }).await
}

/// A stored pending run of a catalog entry.
pub(crate) async fn a_run(db: &Database, resident: &Resident) -> RunWithSteps {
    let run = a_run_of(resident, &an_entry(db).await).with_steps();
    request(db, run.clone(), false).await.unwrap();
    run
}

pub(crate) async fn begin(db: &Database, id: ExecutionId) -> Result<(), StoreError> {
    quietly(db, Write::Begin { id, server_hostname: "box".to_owned(), at: at(2) }).await
}

async fn begin_step(db: &Database, execution: ExecutionId, order: i32) -> Result<(), StoreError> {
    quietly(db, Write::BeginStep { execution, order, at: at(3) }).await
}

async fn end_step(db: &Database, execution: ExecutionId, order: i32, state: S) -> Result<(), StoreError> {
    quietly(db, Write::EndStep { execution, order, state, exit_code: 7, at: at(4) }).await
}

pub(crate) async fn finish(db: &Database, id: ExecutionId, state: S) -> Result<(), StoreError> {
    let end = ExecutionEnd { state, exit_code: 9, error_message: "why".to_owned() };
    quietly(db, Write::Finish { id, end, at: at(5) }).await
}

/// Returns the run as it is stored now.
async fn now(db: &Database, run: &Execution) -> RunWithSteps {
    ExecutionRepository::get(db, run.scope, run.id).await.unwrap().unwrap()
}

async fn say(db: &Database, run: &Execution, step: Option<&ExecutionStep>, text: &str) {
    db.append(run.id, vec![a_line(step.map(|step| step.id), text)]).await.unwrap();
}

fn a_line(step_id: Option<ExecutionStepId>, text: &str) -> NewExecutionLine {
    NewExecutionLine { step_id, level: Level::Info, text: text.to_owned(), at: at(3) }
}
