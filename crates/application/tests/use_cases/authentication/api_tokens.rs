//! Authentication by API tokens.

use chrono::TimeDelta;
use launchway_application::Error;
use launchway_domain::{auth::Forbidden, organizations::Role};
use launchway_testkit::builders::{a_profile, an_actor, an_api_token, an_organization, an_origin, scope_of};

use super::{TOKEN, ports_that_know};
use crate::{ports::MockedPorts, refusals::assert_refused};

#[tokio::test]
async fn api_token_acts_in_its_organization_despite_older_membership() {
    let [older, own] = ["Older", "Own"].map(|name| an_organization().named(name).build());
    let profile = a_profile().member_of(&older, Role::Admin).member_of(&own, Role::Admin).build();
    let token = an_api_token().in_organization(&own).build();
    let holder = an_actor().of(profile).with_api_token(token);
    let ports = ports_that_know(Some(holder.clone().identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await.unwrap();

    assert_eq!(actor, holder.build());
    assert_eq!(actor.organization(), Ok(scope_of(&own)));
}

#[tokio::test]
async fn an_api_token_may_name_its_own_organization() {
    let own = an_organization().build();
    let holder = an_actor().with_api_token(an_api_token().in_organization(&own).build());
    let ports = ports_that_know(Some(holder.clone().identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, Some(own.id), an_origin()).await;

    assert_eq!(actor.unwrap(), holder.build());
}

#[tokio::test]
async fn api_token_is_forbidden_in_other_organizations_of_its_owner() {
    let [own, other] = ["Own", "Other"].map(|name| an_organization().named(name).build());
    let profile = a_profile().member_of(&own, Role::Admin).member_of(&other, Role::Admin).build();
    let token = an_api_token().in_organization(&own).build();
    let ports = ports_that_know(Some(an_actor().of(profile).with_api_token(token).identity()));

    let outcome = ports.services().authentication.authenticate(TOKEN, Some(other.id), an_origin()).await;

    assert_refused(outcome, Forbidden::NotAMember);
}

#[tokio::test]
async fn an_api_token_is_void_once_its_owner_left() {
    let [left, kept] = ["Left", "Kept"].map(|name| an_organization().named(name).build());
    for requested in [None, Some(left.id)] {
        let profile = a_profile().member_of(&kept, Role::Admin).build();
        let token = an_api_token().in_organization(&left).build();
        let ports = ports_that_know(Some(an_actor().of(profile).with_api_token(token).identity()));

        let outcome = ports.services().authentication.authenticate(TOKEN, requested, an_origin()).await;

        assert_refused(outcome, Error::Unauthenticated);
    }
}

#[tokio::test]
async fn an_api_token_may_do_what_both_it_and_its_owners_role_allow() {
    let token = an_api_token().permitting(&["deploy:read", "deploy:create", "audit:read"]).build();
    let holder = an_actor().with_role(Role::Viewer).with_api_token(token);
    let ports = ports_that_know(Some(holder.identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await.unwrap();

    assert_eq!(actor.permissions().names(), ["deploy:read"]);
}

#[tokio::test]
async fn an_api_token_is_refused_at_the_moment_it_ends() {
    let token = an_api_token().expires_at(MockedPorts::default().now()).build();
    let ports = ports_that_know(Some(an_actor().with_api_token(token).identity()));

    let outcome = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_refused(outcome, Error::Unauthenticated);
}

#[tokio::test]
async fn an_api_token_is_good_until_the_moment_before_it_ends() {
    let end = MockedPorts::default().now() + TimeDelta::microseconds(1);
    let holder = an_actor().with_api_token(an_api_token().expires_at(end).build());
    let ports = ports_that_know(Some(holder.clone().identity()));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_eq!(actor.unwrap(), holder.build());
}

#[tokio::test]
async fn an_api_token_without_an_end_never_ends_and_is_never_extended() {
    let holder = an_actor().with_api_token(an_api_token().build());
    let ports = ports_that_know(Some(holder.clone().identity()));
    ports.clock.advance(TimeDelta::days(36_500));

    let actor = ports.services().authentication.authenticate(TOKEN, None, an_origin()).await;

    assert_eq!(actor.unwrap(), holder.build());
}
