//! Idempotent requests.

use launchway_application::{Error, idempotency::PriorRequest};
use launchway_domain::{
    auth::{Action, Actor, Permission, Resource},
    idempotency::{BodyHash, IdempotencyKey, StoredResponse},
    secret::{Sealed, SecretBoxError},
};
use launchway_testkit::{builders::an_actor, ids::id_of};
use mockall::predicate::eq;

use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    keys::a_key,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
    sealed_values::sealed,
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);

fn actor() -> Actor {
    an_actor().build()
}

/// Returns a response as it is stored for an actor.
fn kept_for(actor: &Actor) -> Sealed {
    let names = actor.permissions().names().join(" ");
    sealed(&key().associated_data(), &format!("permissions: {names}\nmade"))
}

fn key() -> IdempotencyKey {
    a_key("POST /deploy")
}

fn remembered(answer: Option<Sealed>) -> StoredResponse {
    StoredResponse { body: key().body, resource: id_of("what was made"), answer }
}

/// Expects a lookup of the request among those of the last day.
fn expect_find(ports: &mut MockedPorts, found: Option<StoredResponse>) {
    let since = ports.now() - IdempotencyKey::KEPT;
    ports.idempotency.expect_find().with(eq(key()), eq(since)).once().return_once(|_, _| Ok(found));
}

#[tokio::test]
async fn a_request_that_is_new_has_no_earlier_answer() {
    let mut ports = MockedPorts::default();
    expect_find(&mut ports, None);

    assert_eq!(ports.services().idempotency.earlier(&actor(), CREATE, &key()).await.unwrap(), None);
}

#[tokio::test]
async fn a_request_that_comes_again_has_the_answer_of_the_first() {
    let mut ports = MockedPorts::with_a_box();
    expect_find(&mut ports, Some(remembered(Some(kept_for(&actor())))));

    let earlier = ports.services().idempotency.earlier(&actor(), CREATE, &key()).await.unwrap();

    assert_eq!(earlier, Some(PriorRequest::Answered(b"made".to_vec())));
}

#[tokio::test]
async fn an_answer_is_not_given_to_who_may_do_less_now() {
    for caller in [a_member(), a_program_without("deploy:update"), a_program_without("audit:read")] {
        let mut ports = MockedPorts::with_a_box();
        expect_find(&mut ports, Some(remembered(Some(kept_for(&actor())))));

        let earlier = ports.services().idempotency.earlier(&caller, CREATE, &key()).await.unwrap();

        assert_eq!(earlier, Some(PriorRequest::CarriedOut(id_of("what was made"))));
    }
}

#[tokio::test]
async fn an_answer_without_permissions_is_not_given() {
    for kept in ["{\"data\":{}}", "permissions: deploy:create", "permissions: deploy:fly\nmade"] {
        let mut ports = MockedPorts::with_a_box();
        expect_find(&mut ports, Some(remembered(Some(sealed(&key().associated_data(), kept)))));

        let earlier = ports.services().idempotency.earlier(&actor(), CREATE, &key()).await.unwrap();

        assert_eq!(earlier, Some(PriorRequest::CarriedOut(id_of("what was made"))));
    }
}

#[tokio::test]
async fn a_repeated_request_needs_its_permission() {
    for caller in [a_viewer(), a_program_without("deploy:create")] {
        let outcome = MockedPorts::default().services().idempotency.earlier(&caller, CREATE, &key()).await;

        assert_refused(outcome, lacks("deploy:create"));
    }
}

#[tokio::test]
async fn a_request_whose_answer_was_lost_returns_what_it_made() {
    let mut ports = MockedPorts::default();
    expect_find(&mut ports, Some(remembered(None)));

    let earlier = ports.services().idempotency.earlier(&actor(), CREATE, &key()).await.unwrap();

    assert_eq!(earlier, Some(PriorRequest::CarriedOut(id_of("what was made"))));
}

#[tokio::test]
async fn a_key_that_comes_with_another_body_conflicts() {
    for answer in [None, Some(sealed(&key().associated_data(), "made"))] {
        let mut ports = MockedPorts::default();
        let other = StoredResponse { body: BodyHash::of(b"{\"name\":\"shop\"}"), ..remembered(answer) };
        expect_find(&mut ports, Some(other));

        let outcome = ports.services().idempotency.earlier(&actor(), CREATE, &key()).await;

        assert_refused(outcome, Error::IdempotencyKeyReused);
    }
}

#[tokio::test]
async fn an_answer_that_was_sealed_for_another_request_is_not_given() {
    let mut ports = MockedPorts::with_a_box();
    let elsewhere = a_key("POST /organizations").associated_data();
    expect_find(&mut ports, Some(remembered(Some(sealed(&elsewhere, "made")))));

    assert_refused(
        ports.services().idempotency.earlier(&actor(), CREATE, &key()).await,
        SecretBoxError::CannotOpen,
    );
}

#[tokio::test]
async fn an_answer_is_kept_sealed_for_its_request() {
    let mut ports = MockedPorts::with_a_box();
    let kept = kept_for(&actor());
    ports.idempotency.expect_keep_answer().with(eq(key()), eq(kept)).once().returning(|_, _| Ok(()));

    assert!(ports.services().idempotency.keep(&actor(), &key(), b"made").await.is_ok());
}

#[tokio::test]
async fn nothing_is_remembered_without_a_database() {
    let mut ports = MockedPorts::with_a_box();
    ports.idempotency.expect_find().once().returning(|_, _| Err(unavailable()));
    ports.idempotency.expect_keep_answer().once().returning(|_, _| Err(unavailable()));
    let idempotency = ports.services().idempotency;

    assert_refused(idempotency.earlier(&actor(), CREATE, &key()).await, unavailable());
    assert_refused(idempotency.keep(&actor(), &key(), b"made").await, unavailable());
}
