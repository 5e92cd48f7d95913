//! Logout.

use launchway_domain::{
    audit::{Action, Resource},
    auth::{Forbidden, Write},
    store::StoreError,
};
use launchway_testkit::builders::{a_session, a_user, an_actor, an_api_token, an_entry};

use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

#[tokio::test]
async fn logging_out_ends_the_callers_own_session() {
    let session = a_session().recognised_by("lws_laptop").build();
    let actor = an_actor().with_session(session.clone()).build();
    let mut ports = MockedPorts::default();
    let logout =
        an_entry().of(Action::Access, Resource::User, a_user().build().id).with_message("logged out");
    ports.expect_commit(vec![
        Write::EndSession { id: session.id, at: ports.now() }.into(),
        audited(1, logout),
    ]);

    let outcome = ports.services().logins.log_out(&actor).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_session_that_has_ended_can_be_logged_out() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().logins.log_out(&an_actor().build()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn logout_fails_if_it_cannot_be_committed() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    let outcome = ports.services().logins.log_out(&an_actor().build()).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn an_api_token_cannot_log_out() {
    let actor = an_actor().with_api_token(an_api_token().build()).build();

    let outcome = MockedPorts::default().services().logins.log_out(&actor).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}
