//! Rotation of signing secrets.

use chrono::TimeDelta;
use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    notifications::{SigningSecret, WebhookKind, Write},
    store::StoreError,
};
use launchway_testkit::{
    CountingIds,
    builders::{an_actor, an_entry},
};

use super::{NO_WEBHOOK, a_webhook, actors_without, expect_webhook, kept_secret, signing_secret};
use crate::{
    actors::lacks,
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const GENERIC: WebhookKind = WebhookKind::Generic;

fn ports_that_find_it() -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    expect_webhook(&mut ports, GENERIC, Some(a_webhook(GENERIC)));
    ports
}

async fn rotate(ports: MockedPorts) -> Result<SigningSecret, Error> {
    ports.services().notifications.rotate_signing_secret(&an_actor().build()).await
}

#[tokio::test]
async fn rotation_returns_new_secret_and_keeps_the_old_one_for_a_day() {
    let mut ports = ports_that_find_it();
    let at = ports.now();
    let replace = Write::ReplaceSigningSecret {
        scope: scope(),
        kind: GENERIC,
        secret: kept_secret(CountingIds::nth(1), 1),
        until: at + TimeDelta::hours(24),
        at,
    };
    let entry = an_entry()
        .of(Action::Update, Resource::Notification, a_webhook(GENERIC).id)
        .with_message("rotated the signing secret of notifications")
        .with("secret", "[changed]")
        .at(at);
    ports.expect_commit(vec![replace.into(), audited(2, entry)]);

    assert_eq!(rotate(ports).await.unwrap(), signing_secret(1));
}

#[tokio::test]
async fn without_a_receiver_there_is_nothing_to_sign() {
    let mut ports = MockedPorts::default();
    expect_webhook(&mut ports, GENERIC, None);
    assert_refused(rotate(ports).await, NO_WEBHOOK);

    let mut ports = ports_that_find_it();
    ports.expect_failing_commit(StoreError::Stale);
    assert_refused(rotate(ports).await, NO_WEBHOOK);
}

#[tokio::test]
async fn nobody_makes_a_secret_without_the_permission() {
    for actor in actors_without("notification:update") {
        let outcome = MockedPorts::default().services().notifications.rotate_signing_secret(&actor).await;
        assert_refused(outcome, lacks("notification:update"));
    }
}

#[tokio::test]
async fn a_secret_that_could_not_be_kept_is_shown_to_nobody() {
    let mut ports = ports_that_find_it();
    ports.expect_failing_commit(unavailable());
    assert_refused(rotate(ports).await, unavailable());
}
