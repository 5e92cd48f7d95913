//! Extensions: forks, runs and the catalog.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cancel;
mod catalog;
mod fork;
mod remove;
mod run;

use launchway_application::extensions::{Catalog, CatalogFile};
use launchway_domain::{
    auth::Actor,
    extensions::{
        Execution, ExecutionDetail, ExecutionState, ExecutionStep, Extension, ExtensionKey, Phase,
        PrintedStep, Write,
    },
    organizations::Scope,
    secret::Sealed,
    store,
    users::UserKind,
};
use launchway_testkit::{
    CountingIds,
    builders::{an_actor, parsed},
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

use crate::ports::MockedPorts;

/// A definition that acts on the host.
pub(crate) const HELLO: &str = r#"
metadata: {id: hello-note, name: Hello note, description: Writes a greeting, author: someone, icon: "N", category: Utility, type: run, version: 1.0.0, isVerified: true}
variables:
  who: {type: string, default: world, is_required: true, validation_pattern: "[a-z]{1,20}"}
  token: {type: string, sensitive: true}
execution:
  run:
    - {name: Make folder, type: file, properties: {action: mkdir, dest: "{{ workspace }}/notes"}}
    - {name: Write greeting, type: command, properties: {cmd: "echo {{ who }}", revert_cmd: "rm -f hi"}, timeout: 10}
  validate:
    - {name: Check file, type: command, properties: {cmd: "test -s hi"}}
"#;

/// A definition that does not act on the host.
pub(crate) const DATABASE: &str = r#"
metadata: {id: database, name: Database, description: "", author: someone, icon: "D", category: Database, type: install}
variables:
  domain: {type: string, default: db.example}
execution:
  run:
    - {name: Start, type: docker, properties: {action: run, name: db, image: "postgres:16"}}
    - {name: Name, type: proxy, properties: {action: add, domain: "{{ domain }}", container: db, port: 80}}
"#;

/// Returns an administrator of the installation.
fn an_operator() -> Actor {
    an_actor().of_kind(UserKind::Admin).build()
}

/// Returns an admin of their organization only.
fn an_admin() -> Actor {
    an_actor().of_kind(UserKind::AppUser).build()
}

pub(crate) fn scope() -> Scope {
    crate::applications::scope()
}

pub(crate) fn key(key: &str) -> ExtensionKey {
    parsed(key)
}

/// Returns the catalog entry of `yaml`.
pub(crate) async fn an_entry(yaml: &'static str) -> Extension {
    let mut ports = MockedPorts::default();
    ports.extensions.expect_catalog().return_once(|| Ok(Vec::new()));
    let (sender, channel) = std::sync::mpsc::channel();
    ports.expect_commit_seen_by(move |writes| {
        let [_, store::Write::Extension(Write::Publish(entry)), _] = writes else { panic!("{writes:?}") };
        sender.send((**entry).clone()).unwrap();
    });
    let name = if yaml == HELLO { "hello-note" } else { "database" };
    let catalog: Catalog = ports.services().catalog;
    assert_eq!(catalog.load(&[CatalogFile { name, yaml }], "1.2.3".parse().unwrap()).await.unwrap(), 1);
    channel.recv().unwrap()
}

/// Returns a requested run of `extension` with `values`.
pub(crate) fn a_run(extension: Extension, values: &str, steps: &[(&str, ExecutionState)]) -> ExecutionDetail {
    let (id, at) = (id_of("execution").into(), moment(NEW_YEAR));
    let is_new = steps.iter().all(|(_, state)| *state == ExecutionState::Pending);
    let execution = Execution {
        id,
        scope: scope(),
        extension_id: extension.id,
        user_id: an_operator().user_id(),
        job_id: id_of("job").into(),
        state: if is_new { ExecutionState::Pending } else { ExecutionState::Running },
        server_hostname: String::new(),
        exit_code: 0,
        error_message: String::new(),
        shown_values: values.to_owned(),
        sealed_values: Sealed(format!("<{}>{values}", Execution::associated_data(id))),
        definition: extension.yaml.clone(),
        log_seq: 0,
        started_at: None,
        completed_at: None,
        created_at: at,
    };
    let steps = (1_i32..).zip(steps).map(|(order, (name, state))| ExecutionStep {
        id: CountingIds::nth(1000 + u64::from(order.unsigned_abs())).into(),
        execution_id: id,
        name: (*name).to_owned(),
        order,
        phase: Phase::Run,
        state: *state,
        exit_code: 0,
        started_at: None,
        completed_at: None,
        created_at: at,
    });
    let steps = steps.map(|step| PrintedStep { step, output: String::new() }).collect();
    ExecutionDetail { execution, extension, steps, log: String::new() }
}
