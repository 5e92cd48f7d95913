//! Pushes to applications that watch paths.

use launchway_application::webhooks::{Ignored, WebhookOutcome};
use launchway_domain::{
    applications::Application,
    deployments::{Deployment, StepError},
    sources::Comparison,
    webhooks::Write,
};
use launchway_testkit::builders::a_deployment;

use super::delivery::{after, expect_applications, expect_secrets, expect_taken, known, push, receive};
use crate::{
    applications::{scope, secrets, web},
    ports::MockedPorts,
};

/// Returns an application that watches a folder, and its newest deployment.
fn watching() -> (Application, Deployment) {
    let mut application = web().watching(&["apps/web/"]).build();
    application.secrets = secrets(application.id, "{}", "{}");
    let deployed = a_deployment().of(&application).made_of('5').build();
    (application, deployed)
}

/// Expects a push to `application`, and returns the ports.
fn pushed_to(application: &Application, newest: Vec<Deployment>) -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![application.clone()]);
    expect_taken(&mut ports, vec![application.id], &push("main", "A change"), vec![]);
    let id = application.id;
    let of = ports.deployments.expect_newest().withf(move |of, ids| *of == scope() && ids == [id]);
    of.once().return_once(|_, _| Ok(newest));
    ports
}

fn compares(application: &Application, deployed: &Deployment) -> impl Fn(&Comparison) -> bool + use<> {
    let (application, old) = (application.clone(), deployed.commit.clone());
    move |asked| {
        assert_eq!((Some(&asked.old), &asked.new), (old.as_ref(), &after()));
        assert_eq!(asked.watched, application.blueprint.watch_paths);
        assert_eq!(asked.source.url.as_str(), application.blueprint.repository.as_str());
        asked.organization == application.organization_id
    }
}

#[tokio::test]
async fn a_push_that_touches_nothing_watched_is_ignored() {
    let (application, deployed) = watching();
    let mut ports = pushed_to(&application, vec![deployed.clone()]);
    let asked = ports.changes.expect_touches().withf(compares(&application, &deployed));
    asked.once().return_once(|_| Ok(Some(false)));
    let at = ports.now();
    ports.expect_commit(vec![Write::PassOver { application: application.id, commit: after(), at }.into()]);

    let ignored = Ignored::Unwatched { commit: after(), deployed: deployed.commit.unwrap() };
    let outcome = receive(ports, push("main", "A change")).await.unwrap();
    assert_eq!(outcome, WebhookOutcome::Ignored(ignored));
}

#[tokio::test]
async fn a_push_that_touches_or_cannot_be_compared_deploys() {
    let (application, deployed) = watching();
    for compared in [Ok(Some(true)), Ok(None), Err(StepError::Rejected("no access".to_owned()))] {
        let mut ports = pushed_to(&application, vec![deployed.clone()]);
        ports.changes.expect_touches().once().return_once(|_| compared);
        ports.expect_any_commit();
        assert_eq!(receive(ports, push("main", "A change")).await.unwrap(), WebhookOutcome::Deployed);
    }
}

#[tokio::test]
async fn what_was_never_deployed_is_deployed_by_any_push() {
    let (application, _) = watching();
    let waiting = a_deployment().of(&application).build();
    assert_eq!(waiting.commit, None);
    for newest in [vec![], vec![waiting]] {
        let mut ports = pushed_to(&application, newest);
        ports.expect_any_commit();
        assert_eq!(receive(ports, push("main", "A change")).await.unwrap(), WebhookOutcome::Deployed);
    }
}
