//! Applications.

mod create;
mod delete;
mod domains;
mod operations;
mod show;
mod update;
mod update_refusals;

use std::collections::BTreeMap;

use launchway_application::{Error, applications::ShownVariables};
use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationSecrets, Blueprint, GitCredentials, Variables,
    },
    clock::Timestamp,
    deployments::{Deployment, DeploymentKind, Write as DeploymentWrite},
    ids::ApplicationId,
    jobs::{JobKind, NewJob, Pool, Write as JobWrite},
    logs::Write as LogWrite,
    organizations::Scope,
    secret::{Sealed, Secret},
    store::Write,
};
use launchway_testkit::{
    CountingIds,
    builders::{
        ApplicationBuilder, a_blueprint, a_deployment, a_log_line, an_application, an_organization, scope_of,
    },
};
use mockall::predicate::eq;

use crate::{ports::MockedPorts, sealed_values::sealed};

/// The error for an application that does not exist or belongs to another organization.
pub(crate) const NO_APPLICATION: Error = Error::NotFound("the application");

/// An application as an actor sees it.
type Seen = (ApplicationDetail, ShownVariables);

/// Returns the scope of every actor.
pub(crate) fn scope() -> Scope {
    scope_of(&an_organization().build())
}

pub(crate) fn variables(given: &[(&str, &str)]) -> Variables {
    let map: BTreeMap<String, String> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    map.try_into().unwrap_or_else(|refused| panic!("{refused}"))
}

pub(crate) fn credentials() -> GitCredentials {
    GitCredentials { username: "ada".to_owned(), password: Secret::new("ghp_token".to_owned()) }
}

/// Returns the sealed form of a secret of the application `id` in its `column`.
pub(crate) fn sealed_for(id: ApplicationId, column: &str, plain: &str) -> Sealed {
    sealed(&ApplicationSecrets::associated_data(id, column), plain)
}

/// Returns secrets as JSON, sealed for the application `id`.
pub(crate) fn secrets(id: ApplicationId, build: &str, environment: &str) -> ApplicationSecrets {
    ApplicationSecrets {
        build_variables: sealed_for(id, "build_variables", build),
        environment_variables: sealed_for(id, "environment_variables", environment),
        credentials: None,
    }
}

/// Returns [`an_application`] with the build variable TOKEN and the environment variable PASSWORD.
pub(crate) fn web() -> ApplicationBuilder {
    let id = an_application().build().id;
    let kept = secrets(id, r#"{"TOKEN":"build-token"}"#, r#"{"PASSWORD":"open-sesame"}"#);
    an_application().with_secrets(kept)
}

/// Returns the variables of [`web`] as an actor who may update it sees them.
fn shown() -> ShownVariables {
    ShownVariables {
        build: variables(&[("TOKEN", "build-token")]),
        environment: variables(&[("PASSWORD", "open-sesame")]),
    }
}

fn detail(application: ApplicationBuilder) -> ApplicationDetail {
    application.detail(vec![a_deployment().build()], vec![a_log_line().build()])
}

fn expect_detail(ports: &mut MockedPorts, id: ApplicationId, found: Option<ApplicationDetail>) {
    ports.applications.expect_detail().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(found));
}

pub(crate) fn expect_application(ports: &mut MockedPorts, id: ApplicationId, found: Option<Application>) {
    ports.applications.expect_get().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(found));
}

/// Returns job number `n` of a kind for the application `id`.
pub(crate) fn job(n: u64, kind: JobKind, id: ApplicationId, payload: String, at: Timestamp) -> NewJob {
    NewJob {
        id: CountingIds::nth(n).into(),
        kind,
        scope: scope(),
        subject: id.into(),
        replaceable: true,
        payload,
        pool: if kind == JobKind::Deploy { Pool::Builds } else { Pool::Operations },
        run_at: at,
        enqueued_at: at,
    }
}

/// Returns the writes of a request of `by` for a deployment, with ids from number `n` on.
pub(crate) fn request_writes(
    n: u64,
    id: ApplicationId,
    kind: DeploymentKind,
    by: &str,
    at: Timestamp,
) -> Vec<Write> {
    let deployment = Deployment { requested_by: by.to_owned(), ..requested(n, id, kind, at) };
    let text = match kind {
        DeploymentKind::Fresh => format!("Deployment requested by {by}"),
        DeploymentKind::Rollback { to } => format!("Rollback to deployment {to} requested by {by}"),
    };
    let line = a_log_line().of(&deployment).saying(&text).at(at).new_line();
    vec![
        JobWrite::Enqueue(job(n, JobKind::Deploy, id, deployment.id.to_string(), at)).into(),
        DeploymentWrite::Insert(deployment).into(),
        DeploymentWrite::FollowJobs { application: Some(id), at }.into(),
        LogWrite::Append(vec![line]).into(),
    ]
}

/// Returns the deployment that such a request of ada creates.
pub(crate) fn requested(n: u64, id: ApplicationId, kind: DeploymentKind, at: Timestamp) -> Deployment {
    let ids = (CountingIds::nth(n + 1).into(), CountingIds::nth(n + 2).into());
    let deployment = Deployment::new(ids, (scope().id(), id), kind, CountingIds::nth(n).into(), at);
    Deployment { requested_by: "ada".to_owned(), ..deployment }
}

/// Returns [`a_blueprint`] with a change.
fn blueprint(change: impl FnOnce(&mut Blueprint)) -> Blueprint {
    let mut blueprint = a_blueprint();
    change(&mut blueprint);
    blueprint
}
