//! Logout.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Forbidden, Write},
    ids::SessionId,
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

#[tokio::test]
async fn logging_out_everywhere_ends_all_sessions() {
    let user_id = a_user().build().id;
    let mut ports = MockedPorts::default();
    let logout = an_entry().of(Action::Access, Resource::User, user_id).with_message("logged out everywhere");
    ports.expect_commit(vec![
        Write::EndSessions { user_id, keep: None, at: ports.now() }.into(),
        audited(1, logout),
    ]);

    let outcome = ports.services().logins.log_out_everywhere(&an_actor().build()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_session_of_another_user_cannot_be_ended() {
    let own = a_session().recognised_by("lws_laptop").build();
    let foreign = SessionId::from(uuid::Uuid::from_u128(77));
    let mut ports = MockedPorts::default();
    ports.credentials.expect_sessions().returning(move |_, _| Ok(vec![own.clone()]));

    let outcome = ports.services().logins.end_session(&an_actor().build(), foreign).await;

    assert_refused(outcome, Error::NotFound("the session"));
}

#[tokio::test]
async fn an_own_session_can_be_ended() {
    let own = a_session().recognised_by("lws_laptop").build();
    let (id, address) = (own.id, own.client.address);
    let mut ports = MockedPorts::default();
    ports.credentials.expect_sessions().returning(move |_, _| Ok(vec![own.clone()]));
    let ended = an_entry()
        .of(Action::Access, Resource::User, a_user().build().id)
        .with_message("ended a session")
        .with("client", address.to_string());
    ports.expect_commit(vec![Write::EndSession { id, at: ports.now() }.into(), audited(1, ended)]);

    let outcome = ports.services().logins.end_session(&an_actor().build(), id).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn an_api_token_ends_no_sessions() {
    let actor = an_actor().with_api_token(an_api_token().build()).build();
    let services = MockedPorts::default().services();

    assert_refused(services.logins.log_out_everywhere(&actor).await, Forbidden::NeedsSession);
    assert_refused(services.logins.sessions(&actor).await, Forbidden::NeedsSession);
}
