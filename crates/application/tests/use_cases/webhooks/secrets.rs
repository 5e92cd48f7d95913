//! The webhook secrets of repositories.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    clock::Timestamp,
    ids::WebhookSecretId,
    secret::Sealed,
    store::{self, StoreError},
    webhooks::{KeptSecret, Write},
};
use launchway_testkit::{
    CountingIds,
    builders::{an_actor, an_entry},
};
use mockall::predicate::eq;

use super::{kept, repository, secret};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    applications::{NO_APPLICATION, expect_application, scope, web},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn expect_web(ports: &mut MockedPorts) {
    expect_application(ports, web().build().id, Some(web().build()));
}

fn expect_secret(ports: &mut MockedPorts, found: Option<KeptSecret>) {
    let with = (eq(scope()), eq(repository()));
    ports.webhooks.expect_secret().with(with.0, with.1).once().return_once(|_, _| Ok(found));
}

fn entry(n: u64, action: Action, secret: u64, what: &str, at: Timestamp) -> store::Write {
    let id: WebhookSecretId = CountingIds::nth(secret).into();
    let what = format!("{what} the webhook secret of {}", repository());
    let entry = an_entry().of(action, Resource::Webhook, id).with_message(&what).at(at);
    audited(n, if action == Action::Access { entry } else { entry.with("secret", "[changed]") })
}

#[tokio::test]
async fn a_secret_is_made_when_it_is_first_asked_for_and_sealed() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_web(&mut ports);
    expect_secret(&mut ports, None);
    let first = Write::FirstSecret(kept(1, 1, at)).into();
    ports.expect_commit(vec![first, entry(2, Action::Create, 1, "created", at)]);

    let shown = ports.services().webhooks.secret(&an_actor().build(), web().build().id).await;

    assert_eq!(shown.unwrap(), secret(1));
}

#[tokio::test]
async fn who_looks_at_a_secret_is_in_the_audit_log() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_web(&mut ports);
    expect_secret(&mut ports, Some(kept(9, 9, at)));
    ports.expect_commit(vec![entry(1, Action::Access, 9, "read", at)]);

    let shown = ports.services().webhooks.secret(&an_actor().build(), web().build().id).await;

    assert_eq!(shown.unwrap(), secret(9));
}

#[tokio::test]
async fn no_secret_is_shown_without_an_entry() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_web(&mut ports);
    expect_secret(&mut ports, Some(kept(9, 9, at)));
    ports.expect_failing_commit(unavailable());

    let shown = ports.services().webhooks.secret(&an_actor().build(), web().build().id).await;

    assert_refused(shown, unavailable());
}

#[tokio::test]
async fn concurrent_first_reads_return_the_same_secret() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_web(&mut ports);
    expect_secret(&mut ports, None);
    ports.expect_failing_commit(StoreError::Stale);
    expect_secret(&mut ports, Some(kept(9, 9, at)));
    ports.expect_any_commit();

    let shown = ports.services().webhooks.secret(&an_actor().build(), web().build().id).await;

    assert_eq!(shown.unwrap(), secret(9));
}

#[tokio::test]
async fn a_replaced_secret_stays_valid_for_a_day() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_web(&mut ports);
    let until = at + chrono::TimeDelta::hours(24);
    let replace = Write::ReplaceSecret { secret: kept(1, 1, at), until }.into();
    ports.expect_commit(vec![replace, entry(2, Action::Update, 1, "replaced", at)]);

    let shown = ports.services().webhooks.rotate(&an_actor().build(), web().build().id).await;

    assert_eq!(shown.unwrap(), secret(1));
}

#[tokio::test]
async fn only_admins_see_and_replace_it() {
    for actor in [a_viewer(), a_member(), a_program_without("organization:update")] {
        let webhooks = MockedPorts::default().services().webhooks;
        assert_refused(webhooks.secret(&actor, web().build().id).await, lacks("organization:update"));
        assert_refused(webhooks.rotate(&actor, web().build().id).await, lacks("organization:update"));
    }
}

#[tokio::test]
async fn what_has_no_repository_has_no_secret() {
    let image = web().from_image("registry.example/web").build();
    for found in [None, Some(image)] {
        let refusal = || match &found {
            None => NO_APPLICATION,
            Some(_) => Error::Conflict(
                "this application is deployed from an image: it has no webhook secret".to_owned(),
            ),
        };
        let mut ports = MockedPorts::default();
        expect_application(&mut ports, web().build().id, found.clone());
        let shown = ports.services().webhooks.secret(&an_actor().build(), web().build().id).await;
        assert_refused(shown, refusal());

        let mut ports = MockedPorts::default();
        expect_application(&mut ports, web().build().id, found.clone());
        let replaced = ports.services().webhooks.rotate(&an_actor().build(), web().build().id).await;
        assert_refused(replaced, refusal());
    }
}

#[tokio::test]
async fn an_organization_that_is_gone_gets_no_secret() {
    let mut ports = MockedPorts::with_a_box();
    expect_web(&mut ports);
    ports.expect_failing_commit(StoreError::Stale);
    let outcome = ports.services().webhooks.rotate(&an_actor().build(), web().build().id).await;
    assert_refused(outcome, NO_APPLICATION);
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_is_a_fault() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_web(&mut ports);
    expect_secret(&mut ports, Some(KeptSecret { secret: Sealed("broken".to_owned()), ..kept(9, 9, at) }));
    let outcome = ports.services().webhooks.secret(&an_actor().build(), web().build().id).await;
    assert!(matches!(outcome, Err(Error::Internal(_))), "{outcome:?}");
}
