//! The preview settings of applications.

use launchway_application::{
    Error,
    applications::ShownVariables,
    previews::{PreviewChange, ShownPreviewSettings},
};
use launchway_domain::{
    applications::{Application, GitUrl, Repository},
    audit::{Action, Resource},
    auth::Actor,
    previews::{PreviewSettings, Write},
    store::StoreError,
};
use launchway_testkit::builders::{an_actor, an_entry};

use super::{expect_settings, settings};
use crate::{
    actors::{a_program_without, a_viewer, lacks},
    applications::{NO_APPLICATION, expect_application, scope, variables, web},
    audit_log::audited,
    ports::MockedPorts,
    refusals::assert_refused,
    sealed_values::sealed,
};

fn shown() -> ShownVariables {
    ShownVariables { build: variables(&[("LEVEL", "1")]), environment: variables(&[("MODE", "preview")]) }
}

/// Expects that [`web`] is read as an application that is no preview.
fn expect_web(ports: &mut MockedPorts) {
    expect_application(ports, web().build().id, Some(web().build()));
    ports.previews.expect_is_preview().once().returning(|_, _| Ok(false));
}

async fn change(
    ports: MockedPorts,
    actor: &Actor,
    change: PreviewChange,
) -> Result<ShownPreviewSettings, Error> {
    ports.services().previews.change(actor, web().build().id, change).await
}

#[tokio::test]
async fn variables_are_shown_to_who_may_change_settings() {
    let id = web().build().id;
    for (actor, variables) in [(an_actor().build(), shown()), (a_viewer(), ShownVariables::default())] {
        let mut ports = MockedPorts::with_a_box();
        let at = ports.now();
        expect_application(&mut ports, id, Some(web().build()));
        expect_settings(&mut ports, vec![settings(at)]);
        let found = ports.services().previews.settings(&actor, id).await.unwrap();
        assert_eq!(found, ShownPreviewSettings { settings: settings(at), variables });
    }
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, id, Some(web().build()));
    expect_settings(&mut ports, vec![]);
    let found = ports.services().previews.settings(&an_actor().build(), id).await.unwrap();
    assert_eq!(found.variables, ShownVariables::default());
    assert!(!found.settings.is_enabled && !found.settings.runs_commands);
    assert_eq!((found.settings.limit.get(), found.settings.lifetime.hours()), (5, 168));
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name_and_no_value_is_logged() {
    let mut ports = MockedPorts::with_a_box();
    let (at, id) = (ports.now(), web().build().id);
    let earlier = at - chrono::TimeDelta::hours(1);
    expect_web(&mut ports);
    expect_settings(&mut ports, vec![settings(earlier)]);
    let place = PreviewSettings::associated_data(id, "environment_variables");
    let next = PreviewSettings {
        is_enabled: false,
        limit: 3.try_into().unwrap(),
        environment_variables: sealed(&place, r#"{"MODE":"other"}"#),
        ..settings(at)
    };
    let entry = an_entry()
        .of(Action::Update, Resource::Application, id)
        .with_message("changed the preview settings of the application `web` (production)")
        .with("enabled", false)
        .with("limit", 3)
        .with("environment_variables", "[changed]");
    ports.expect_commit(vec![
        Write::SetSettings { scope: scope(), settings: next.clone(), seen: Some(earlier) }.into(),
        audited(1, entry.at(at)),
    ]);
    let asked = PreviewChange {
        enabled: Some(false),
        limit: Some(3.try_into().unwrap()),
        environment_variables: Some(variables(&[("MODE", "other")])),
        ..PreviewChange::default()
    };
    let found = change(ports, &an_actor().build(), asked).await.unwrap();
    assert_eq!(found.settings, next);
    assert_eq!(found.variables.environment, variables(&[("MODE", "other")]));
}

#[tokio::test]
async fn a_concurrent_change_is_kept() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    for found in [vec![], vec![settings(at)]] {
        expect_web(&mut ports);
        expect_settings(&mut ports, found);
    }
    ports.expect_failing_commit(StoreError::Stale);
    ports.expect_any_commit();
    let asked = PreviewChange { enabled: Some(false), ..PreviewChange::default() };
    let found = change(ports, &an_actor().build(), asked).await.unwrap();
    assert_eq!(found.settings.limit, settings(at).limit);
}

#[tokio::test]
async fn what_has_no_requests_has_no_previews() {
    let id = web().build().id;
    let hosted = |mut application: Application| {
        application.blueprint.repository = Repository::Git(GitUrl::hosted(id));
        application
    };
    for (application, sentence) in [
        (
            web().from_image("nginx:1").build(),
            "this application is deployed from an image: it has no requests to preview",
        ),
        (
            hosted(web().build()),
            "this application is deployed from this server: it has no requests to preview",
        ),
    ] {
        let mut ports = MockedPorts::with_a_box();
        ports.applications.expect_get().once().return_once(|_, _| Ok(Some(application)));
        let outcome = change(ports, &an_actor().build(), PreviewChange::default()).await;
        assert_refused(outcome, Error::Conflict(sentence.to_owned()));
    }
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, id, Some(web().build()));
    ports.previews.expect_is_preview().once().returning(|_, _| Ok(true));
    let outcome = change(ports, &an_actor().build(), PreviewChange::default()).await;
    assert_refused(outcome, Error::Conflict("this application is a preview itself".to_owned()));
}

#[tokio::test]
async fn nobody_changes_settings_without_the_permission() {
    for actor in [a_viewer(), a_program_without("deploy:update")] {
        let outcome = change(MockedPorts::default(), &actor, PreviewChange::default()).await;
        assert_refused(outcome, lacks("deploy:update"));
    }
    let actor = a_program_without("deploy:read");
    let previews = MockedPorts::default().services().previews;
    assert_refused(previews.settings(&actor, web().build().id).await, lacks("deploy:read"));
    assert_refused(previews.list(&actor, web().build().id).await, lacks("deploy:read"));
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, web().build().id, None);
    let outcome = change(ports, &an_actor().build(), PreviewChange::default()).await;
    assert_refused(outcome, NO_APPLICATION);
}
