//! The deploy key of an organization.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    clock::Timestamp,
    organizations::{DeployKey, KeyPair, Write},
    secret::Secret,
    store::{self, StoreError},
};
use launchway_testkit::builders::{an_actor, an_entry, an_organization};
use mockall::predicate::eq;

use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
    sealed_values::sealed,
};

const NEW: &str = "ssh-ed25519 AAAAnew launchway";

fn key(public_key: &str, at: Timestamp) -> DeployKey {
    let id = an_organization().build().id;
    let private_key = sealed(&format!("deploy_keys.private_key:{id}"), "PRIVATE KEY");
    DeployKey { organization_id: id, public_key: public_key.to_owned(), private_key, created_at: at }
}

fn entry(what: &str, at: Timestamp) -> store::Write {
    let organization = an_organization().build().id;
    let entry = an_entry().of(Action::Update, Resource::Organization, organization).with_message(what);
    audited(1, entry.with("deploy_key", "[changed]").at(at))
}

/// Expects that the key is read.
fn expect_key(ports: &mut MockedPorts, found: Option<DeployKey>) {
    ports.deploy_keys.expect_deploy_key().with(eq(scope())).once().return_once(|_| Ok(found));
}

/// Expects that a key is created.
fn expect_making(ports: &mut MockedPorts) {
    let pair = KeyPair { public_key: NEW.to_owned(), private_key: Secret::new("PRIVATE KEY".to_owned()) };
    ports.key_maker.expect_make().with(eq("launchway")).once().return_once(|_| Ok(pair));
}

#[tokio::test]
async fn the_public_key_is_shown_to_whoever_may_look() {
    let mut ports = MockedPorts::default();
    let now = ports.now();
    expect_key(&mut ports, Some(key("ssh-ed25519 AAAA launchway", now)));

    let shown = ports.services().deploy_keys.public_key(&a_viewer()).await;

    assert_eq!(shown.unwrap(), "ssh-ed25519 AAAA launchway");
}

#[tokio::test]
async fn creates_a_sealed_key_on_first_use() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_key(&mut ports, None);
    expect_making(&mut ports);
    ports
        .expect_commit(vec![Write::FirstDeployKey(key(NEW, at)).into(), entry("created the deploy key", at)]);

    assert_eq!(ports.services().deploy_keys.public_key(&an_actor().build()).await.unwrap(), NEW);
}

#[tokio::test]
async fn concurrent_first_reads_return_the_same_key() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_key(&mut ports, None);
    expect_making(&mut ports);
    ports.expect_failing_commit(StoreError::Stale);
    expect_key(&mut ports, Some(key("ssh-ed25519 AAAAtheirs launchway", at)));

    let shown = ports.services().deploy_keys.public_key(&an_actor().build()).await;

    assert_eq!(shown.unwrap(), "ssh-ed25519 AAAAtheirs launchway");
}

#[tokio::test]
async fn an_organization_that_is_gone_has_no_key() {
    let mut ports = MockedPorts::with_a_box();
    expect_key(&mut ports, None);
    expect_making(&mut ports);
    ports.expect_failing_commit(StoreError::Stale);
    expect_key(&mut ports, None);
    let outcome = ports.services().deploy_keys.public_key(&an_actor().build()).await;
    assert_refused(outcome, Error::NotFound("the organization"));

    let mut ports = MockedPorts::with_a_box();
    expect_making(&mut ports);
    ports.expect_failing_commit(StoreError::Stale);
    let outcome = ports.services().deploy_keys.rotate(&an_actor().build()).await;
    assert_refused(outcome, Error::NotFound("the organization"));
}

#[tokio::test]
async fn an_admin_replaces_the_key() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_making(&mut ports);
    let replace = Write::ReplaceDeployKey(key(NEW, at)).into();
    ports.expect_commit(vec![replace, entry("replaced the deploy key", at)]);

    assert_eq!(ports.services().deploy_keys.rotate(&an_actor().build()).await.unwrap(), NEW);
}

#[tokio::test]
async fn nobody_sees_or_replaces_the_key_without_the_permission() {
    let reader = a_program_without("organization:read");
    let outcome = MockedPorts::default().services().deploy_keys.public_key(&reader).await;
    assert_refused(outcome, lacks("organization:read"));

    for actor in [a_viewer(), a_member(), a_program_without("organization:update")] {
        let outcome = MockedPorts::default().services().deploy_keys.rotate(&actor).await;
        assert_refused(outcome, lacks("organization:update"));
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_made_is_a_fault() {
    let mut ports = MockedPorts::default();
    ports.key_maker.expect_make().once().returning(|_| Err("no randomness".to_owned()));

    let outcome = ports.services().deploy_keys.rotate(&an_actor().build()).await;

    assert_refused(outcome, Error::Internal("no randomness".into()));
}

#[tokio::test]
async fn no_key_is_made_or_replaced_without_a_database() {
    let mut ports = MockedPorts::with_a_box();
    expect_key(&mut ports, None);
    expect_making(&mut ports);
    ports.expect_failing_commit(unavailable());
    assert_refused(ports.services().deploy_keys.public_key(&an_actor().build()).await, unavailable());

    let mut ports = MockedPorts::with_a_box();
    expect_making(&mut ports);
    ports.expect_failing_commit(unavailable());
    assert_refused(ports.services().deploy_keys.rotate(&an_actor().build()).await, unavailable());
}
