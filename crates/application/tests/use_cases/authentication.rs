//! Authentication of the caller of a request.

mod api_tokens;
mod sessions;

use std::sync::Arc;

use launchway_application::Error;
use launchway_domain::auth::{Identity, Origin, TokenHash};
use launchway_testkit::builders::{a_client, an_actor, an_origin};
use mockall::predicate::eq;

use crate::{
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

/// The token of the callers.
const TOKEN: &str = "lws_presented";

/// Returns ports that resolve the hash of [`TOKEN`] to `holder`.
fn ports_that_know(holder: Option<Arc<Identity>>) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports.identities.expect_by_token().with(eq(TokenHash::of(TOKEN))).once().return_once(|_| Ok(holder));
    ports
}

#[tokio::test]
async fn a_token_is_recognised_by_its_hash() {
    let ports = ports_that_know(Some(an_actor().identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_eq!(actor.unwrap(), an_actor().build());
}

#[tokio::test]
async fn a_caller_acts_by_the_request_that_brought_the_token() {
    let ports = ports_that_know(Some(an_actor().identity()));
    let origin = Origin { client: a_client(), request_id: "req-2".to_owned() };

    let actor = ports.services().authentication.authenticate(TOKEN, None, origin.clone()).await;

    assert_eq!(actor.unwrap(), an_actor().by_request(origin).build());
}

#[tokio::test]
async fn an_unknown_token_is_refused() {
    let outcome =
        ports_that_know(None).services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_refused(outcome, Error::Unauthenticated);
}

#[tokio::test]
async fn nobody_is_recognised_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.identities.expect_by_token().once().returning(|_| Err(unavailable()));

    let outcome = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_refused(outcome, unavailable());
}
