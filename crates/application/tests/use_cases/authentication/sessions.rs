//! Authentication by sessions.

use chrono::TimeDelta;
use launchway_application::Error;
use launchway_domain::{
    auth::{Forbidden, Session, Write},
    clock::Timestamp,
    organizations::{Organization, Role},
    store::{self, StoreError},
};
use launchway_testkit::builders::{
    ActorBuilder, ProfileBuilder, a_profile, a_session, an_actor, an_organization, an_origin, scope_of,
};

use super::{TOKEN, ports_that_know};
use crate::{
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const HOUR: TimeDelta = TimeDelta::hours(1);
const INSTANT: TimeDelta = TimeDelta::microseconds(1);

fn with_session(session: &Session) -> ActorBuilder {
    an_actor().with_session(session.clone())
}

fn extension(session: &Session, now: Timestamp) -> store::Write {
    Write::ExtendSession { id: session.id, at: now, expires_at: now + TimeDelta::days(7) }.into()
}

fn organizations() -> [Organization; 2] {
    ["Analytics", "Engines"].map(|name| an_organization().named(name).build())
}

fn viewer_of_one_and_member_of_two() -> ProfileBuilder {
    let [one, two] = organizations();
    a_profile().member_of(&one, Role::Viewer).member_of(&two, Role::Member)
}

#[tokio::test]
async fn session_acts_in_the_oldest_membership_by_default() {
    let [oldest, _] = organizations();
    let holder = an_actor().of(viewer_of_one_and_member_of_two().build());
    let ports = ports_that_know(Some(holder.clone().identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await.unwrap();

    assert_eq!(actor, holder.build());
    assert_eq!(
        (actor.organization(), actor.permissions()),
        (Ok(scope_of(&oldest)), Role::Viewer.permissions())
    );
}

#[tokio::test]
async fn session_acts_in_the_given_organization_with_its_role() {
    let [_, other] = organizations();
    let holder = an_actor().of(viewer_of_one_and_member_of_two().build());
    let ports = ports_that_know(Some(holder.clone().identity()));

    let actor =
        ports.services().authentication.authenticate(TOKEN, Some(other.id), an_origin()).await.unwrap();

    assert_eq!(actor, holder.acting_in(&other).build());
    assert_eq!(
        (actor.organization(), actor.permissions()),
        (Ok(scope_of(&other)), Role::Member.permissions())
    );
}

#[tokio::test]
async fn an_organization_that_the_caller_is_not_in_is_forbidden() {
    let foreign = an_organization().named("Foreign").build();
    let ports = ports_that_know(Some(an_actor().identity()));

    let outcome = ports.services().authentication.authenticate(TOKEN, Some(foreign.id), an_origin()).await;

    assert_refused(outcome, Forbidden::NotAMember);
}

#[tokio::test]
async fn caller_without_membership_has_no_permissions() {
    let holder = an_actor().of(a_profile().build());
    let ports = ports_that_know(Some(holder.clone().identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await.unwrap();

    assert_eq!(actor, holder.build());
    assert_eq!(actor.organization(), Err(Forbidden::NoOrganization));
    assert_eq!(actor.permissions().names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_session_is_refused_at_the_moment_it_ends() {
    let now = MockedPorts::default().now();
    let session = a_session().expires_at(now).build();
    let ports = ports_that_know(Some(with_session(&session).identity()));

    let outcome = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_refused(outcome, Error::Unauthenticated);
}

#[tokio::test]
async fn a_session_is_good_until_the_moment_before_it_ends() {
    let now = MockedPorts::default().now();
    let session = a_session().expires_at(now + INSTANT).build();
    let ports = ports_that_know(Some(with_session(&session).identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_eq!(actor.unwrap(), with_session(&session).build());
}

#[tokio::test]
async fn ended_session_is_never_extended() {
    let now = MockedPorts::default().now();
    let session = a_session().opened_at(now - Session::LIFETIME).build();
    let ports = ports_that_know(Some(with_session(&session).identity()));

    let outcome = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_refused(outcome, Error::Unauthenticated);
}

#[tokio::test]
async fn a_session_in_use_is_extended_after_exactly_an_hour() {
    let now = MockedPorts::default().now();
    let session = a_session().opened_at(now - HOUR).build();
    let mut ports = ports_that_know(Some(with_session(&session).identity()));
    ports.expect_commit(vec![extension(&session, now)]);

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_eq!(actor.unwrap(), with_session(&session).build());
}

#[tokio::test]
async fn a_session_in_use_is_not_extended_within_the_hour() {
    let now = MockedPorts::default().now();
    let session = a_session().opened_at(now - HOUR + INSTANT).build();
    let ports = ports_that_know(Some(with_session(&session).identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_eq!(actor.unwrap(), with_session(&session).build());
}

#[tokio::test]
async fn the_hour_counts_from_the_last_extension() {
    let now = MockedPorts::default().now();
    let session = a_session().opened_at(now - HOUR * 48).extended_at(now - HOUR + INSTANT).build();
    let ports = ports_that_know(Some(with_session(&session).identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_eq!(actor.unwrap(), with_session(&session).build());
}

#[tokio::test]
async fn a_session_that_cannot_be_extended_now_is_valid_all_the_same() {
    for error in [unavailable(), StoreError::Internal("disk full".into())] {
        let session = a_session().opened_at(MockedPorts::default().now() - HOUR).build();
        let mut ports = ports_that_know(Some(with_session(&session).identity()));
        ports.expect_failing_commit(error);

        let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

        assert_eq!(actor.unwrap(), with_session(&session).build());
    }
}

#[tokio::test]
async fn session_ended_during_extension_is_rejected() {
    let session = a_session().opened_at(MockedPorts::default().now() - HOUR).build();
    let mut ports = ports_that_know(Some(with_session(&session).identity()));
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_refused(outcome, Error::Unauthenticated);
}
