//! Previews of pull and merge requests.

mod approval;
mod expiry;
mod report;
mod settings;
mod statuses;

use launchway_domain::{
    applications::Application,
    clock::Timestamp,
    ids::ApplicationId,
    previews::{Preview, PreviewSettings, PreviewState, PreviewSummary},
    webhooks::CodeHost,
};

use crate::{
    applications::{scope, web},
    ports::MockedPorts,
    sealed_values::sealed,
};

/// The head of the request.
const HEAD: &str = "ec26c3e57ca3a959ca5aad62de7213c562f8c821";

/// Returns a value that its rule accepts.
fn valid<T: TryFrom<R, Error: std::fmt::Display>, R>(raw: R) -> T {
    raw.try_into().unwrap_or_else(|refused| panic!("{refused}"))
}

/// Returns settings of [`web`] with variables of its previews, of which it shares TOKEN.
fn settings(at: Timestamp) -> PreviewSettings {
    let id = web().build().id;
    let sealed_for = |column, plain| sealed(&PreviewSettings::associated_data(id, column), plain);
    PreviewSettings {
        application: id,
        is_enabled: true,
        limit: valid(2_i64),
        lifetime: valid(24_i64),
        shared: valid(vec!["TOKEN".to_owned()]),
        runs_commands: false,
        build_variables: sealed_for("build_variables", r#"{"LEVEL":"1"}"#),
        environment_variables: sealed_for("environment_variables", r#"{"MODE":"preview"}"#),
        updated_at: at,
    }
}

/// Returns the record of request 7 of a fork on GitLab that waits for an approval.
fn waiting(at: Timestamp) -> Preview {
    Preview {
        parent: web().build().id,
        number: valid(7_i64),
        code_host: CodeHost::GitLab,
        application: None,
        state: PreviewState::Waiting,
        branch: "feature/login".to_owned(),
        head: HEAD.parse().ok(),
        is_from_fork: true,
        approved: None,
        expires_at: at + chrono::TimeDelta::hours(24),
        created_at: at,
        updated_at: at,
    }
}

/// Returns the record of request 7 whose preview runs.
fn active(application: &Application, at: Timestamp) -> Preview {
    Preview {
        application: Some(application.id),
        state: PreviewState::Active,
        is_from_fork: false,
        ..waiting(at)
    }
}

/// Expects that the settings of [`web`] are read.
fn expect_settings(ports: &mut MockedPorts, found: Vec<PreviewSettings>) {
    let id = web().build().id;
    let asked = ports.previews.expect_settings().withf(move |of, ids| *of == scope() && ids == [id]);
    asked.once().return_once(|_, _| Ok(found));
}

/// Expects that the preview of request 7 of [`web`] is read.
fn expect_preview(ports: &mut MockedPorts, found: Option<Preview>) {
    let id = web().build().id;
    let asked = ports.previews.expect_of_request();
    let asked = asked.withf(move |of, ids, number| *of == scope() && ids == [id] && number.get() == 7);
    asked.once().return_once(|_, _, _| Ok(found.into_iter().collect()));
}

/// Expects that the previews of an application are listed.
pub(crate) fn expect_previews(ports: &mut MockedPorts, of: ApplicationId, found: Vec<Application>) {
    let found: Vec<_> = found
        .into_iter()
        .map(|application| PreviewSummary {
            preview: active(&application, Timestamp::UNIX_EPOCH),
            application: Some(application),
        })
        .collect();
    let asked = ports.previews.expect_of_application();
    let asked = asked.withf(move |given, parent| *given == scope() && *parent == of);
    asked.once().return_once(|_, _| Ok(found));
}
