//! API tokens.

use chrono::TimeDelta;
use launchway_application::{
    Error,
    auth::{IssuedApiToken, NewApiToken},
};
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Actor, ApiToken, Forbidden, Token, TokenKind, Write},
    organizations::Role,
    store::{self, StoreError, Unique},
};
use launchway_testkit::{
    CountingEntropy, CountingIds,
    builders::{
        ApiTokenBuilder, EntryBuilder, a_profile, a_user, an_actor, an_api_token, an_entry, an_organization,
        parsed, permissions, scope_of,
    },
};
use mockall::predicate::eq;

use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn new() -> NewApiToken {
    NewApiToken { name: parsed("ci"), permissions: None, expires_at: None }
}

fn program() -> Actor {
    an_actor().with_api_token(an_api_token().build()).build()
}

fn actor_without_organization() -> Actor {
    an_actor().of(a_profile().build()).build()
}

fn issued_text() -> Token {
    Token::new(TokenKind::Api, CountingEntropy::nth(1))
}

/// Returns the token that is issued for the request `token`.
fn issued(token: ApiTokenBuilder) -> ApiToken {
    ApiToken { id: CountingIds::nth(1).into(), token_hash: issued_text().hash(), ..token.named("ci").build() }
}

/// Returns the audit entry of the issue of `token`.
fn issuing(token: &ApiToken) -> EntryBuilder {
    an_entry()
        .of(Action::Create, Resource::Token, token.id)
        .with_message("issued the API token `ci`")
        .with("name", "ci")
        .with("permissions", token.permissions.names().join(" "))
}

fn issue_writes(token: &ApiToken) -> Vec<store::Write> {
    vec![Write::IssueApiToken(token.clone()).into(), audited(2, issuing(token))]
}

#[track_caller]
fn assert_issued(outcome: Result<IssuedApiToken, Error>, expected: ApiToken) {
    match outcome {
        Ok(IssuedApiToken { token, details }) => {
            assert_eq!((token, details), (issued_text(), expected));
        }
        Err(error) => panic!("not issued: {error:?}"),
    }
}

#[tokio::test]
async fn token_has_all_permissions_of_its_owner_by_default() {
    for role in Role::ALL {
        let names = role.permissions().names();
        let expected = issued(an_api_token().permitting(&names));
        let mut ports = MockedPorts::default();
        ports.expect_commit(issue_writes(&expected));

        let outcome = ports.services().api_tokens.issue(&an_actor().with_role(role).build(), new()).await;

        assert_issued(outcome, expected);
    }
}

#[tokio::test]
async fn a_token_may_do_less_than_its_owner() {
    for names in [&["deploy:create", "deploy:read"][..], &[]] {
        let expected = issued(an_api_token().permitting(names));
        let mut ports = MockedPorts::default();
        ports.expect_commit(issue_writes(&expected));
        let new = NewApiToken { permissions: Some(permissions(names)), ..new() };

        let outcome = ports.services().api_tokens.issue(&an_actor().build(), new).await;

        assert_issued(outcome, expected);
    }
}

#[tokio::test]
async fn token_has_requested_name_expiry_and_organization() {
    let [oldest, other] = ["Oldest", "Other"].map(|name| an_organization().named(name).build());
    let profile = a_profile().member_of(&oldest, Role::Admin).member_of(&other, Role::Admin).build();
    let actor = an_actor().of(profile).acting_in(&other).build();
    let mut ports = MockedPorts::default();
    let (now, end) = (ports.now() + TimeDelta::days(3), ports.now() + TimeDelta::days(90));
    ports.clock.set(now);
    let expected = issued(an_api_token().in_organization(&other).created_at(now).expires_at(end));
    let entry =
        issuing(&expected).in_audit_log_of(&other).with("expires_at", "2026-04-01T00:00:00+00:00").at(now);
    ports.expect_commit(vec![Write::IssueApiToken(expected.clone()).into(), audited(2, entry)]);
    let new = NewApiToken { expires_at: Some(end), ..new() };

    let outcome = ports.services().api_tokens.issue(&actor, new).await;

    assert_issued(outcome, expected);
}

#[tokio::test]
async fn permissions_that_the_owner_lacks_are_refused_by_name() {
    let viewer = an_actor().with_role(Role::Viewer).build();
    let wanted = permissions(&["deploy:read", "deploy:create", "audit:read"]);
    let new = NewApiToken { permissions: Some(wanted), ..new() };

    let outcome = MockedPorts::default().services().api_tokens.issue(&viewer, new).await;

    let problem = "permissions must be among your own, and you lack `deploy:create`, `audit:read`";
    assert_refused(outcome, Error::Invalid(problem.to_owned()));
}

#[tokio::test]
async fn a_token_cannot_end_at_the_moment_it_begins() {
    let ports = MockedPorts::default();
    let new = NewApiToken { expires_at: Some(ports.now()), ..new() };

    let outcome = ports.services().api_tokens.issue(&an_actor().build(), new).await;

    assert_refused(outcome, Error::Invalid("expires_at must be in the future".to_owned()));
}

#[tokio::test]
async fn a_token_may_end_a_microsecond_after_it_begins() {
    let mut ports = MockedPorts::default();
    let end = ports.now() + TimeDelta::microseconds(1);
    let expected = issued(an_api_token().expires_at(end));
    let entry = issuing(&expected).with("expires_at", "2026-01-01T00:00:00.000001+00:00");
    ports.expect_commit(vec![Write::IssueApiToken(expected.clone()).into(), audited(2, entry)]);
    let new = NewApiToken { expires_at: Some(end), ..new() };

    let outcome = ports.services().api_tokens.issue(&an_actor().build(), new).await;

    assert_issued(outcome, expected);
}

#[tokio::test]
async fn every_problem_of_a_new_token_is_reported_at_once() {
    let ports = MockedPorts::default();
    let new = NewApiToken {
        permissions: Some(permissions(&["user:delete"])),
        expires_at: Some(ports.now() - TimeDelta::days(1)),
        ..new()
    };
    let member = an_actor().with_role(Role::Member).build();

    let outcome = ports.services().api_tokens.issue(&member, new).await;

    let problems =
        "permissions must be among your own, and you lack `user:delete`; expires_at must be in the future";
    assert_refused(outcome, Error::Invalid(problems.to_owned()));
}

#[tokio::test]
async fn a_name_that_is_in_use_conflicts() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Taken(Unique::ApiTokenName));

    let outcome = ports.services().api_tokens.issue(&an_actor().build(), new()).await;

    assert_refused(outcome, Error::Conflict("you have an API token named `ci` already".to_owned()));
}

#[tokio::test]
async fn no_token_is_issued_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    let outcome = ports.services().api_tokens.issue(&an_actor().build(), new()).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn an_api_token_cannot_issue_another() {
    let outcome = MockedPorts::default().services().api_tokens.issue(&program(), new()).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}

#[tokio::test]
async fn whoever_is_in_no_organization_is_issued_no_token() {
    let actor = actor_without_organization();

    let outcome = MockedPorts::default().services().api_tokens.issue(&actor, new()).await;

    assert_refused(outcome, Forbidden::NoOrganization);
}

#[tokio::test]
async fn the_callers_own_tokens_are_listed_where_they_act() {
    let tokens = ["new", "old"].map(|name| an_api_token().named(name).build()).to_vec();
    let listed = tokens.clone();
    let mut ports = MockedPorts::default();
    ports
        .credentials
        .expect_api_tokens()
        .with(eq(scope_of(&an_organization().build())), eq(a_user().build().id))
        .once()
        .return_once(|_, _| Ok(listed));

    let outcome = ports.services().api_tokens.list(&an_actor().build()).await;

    assert_eq!(outcome.unwrap(), tokens);
}

#[tokio::test]
async fn an_api_token_cannot_list_tokens() {
    let outcome = MockedPorts::default().services().api_tokens.list(&program()).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}

#[tokio::test]
async fn who_is_removed_at_the_same_moment_gets_no_token() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().api_tokens.issue(&an_actor().build(), new()).await;

    assert_refused(outcome, Forbidden::NotAMember);
}

#[tokio::test]
async fn whoever_is_in_no_organization_has_no_tokens_to_list() {
    let outcome = MockedPorts::default().services().api_tokens.list(&actor_without_organization()).await;

    assert_eq!(outcome.unwrap(), []);
}

#[tokio::test]
async fn no_tokens_are_listed_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_api_tokens().once().returning(|_, _| Err(unavailable()));

    let outcome = ports.services().api_tokens.list(&an_actor().build()).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn a_revoked_token_is_the_callers_own_where_they_act() {
    let token = an_api_token().build();
    let mut ports = MockedPorts::default();
    let revocation = Write::RevokeApiToken {
        id: token.id,
        organization_id: an_organization().build().id,
        user_id: a_user().build().id,
        at: ports.now(),
    };
    let entry = an_entry().of(Action::Delete, Resource::Token, token.id).with_message("revoked an API token");
    ports.expect_commit(vec![revocation.into(), audited(1, entry)]);

    let outcome = ports.services().api_tokens.revoke(&an_actor().build(), token.id).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_token_that_is_not_the_callers_own_is_not_found() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().api_tokens.revoke(&an_actor().build(), an_api_token().build().id).await;

    assert_refused(outcome, Error::NotFound("the API token"));
}

#[tokio::test]
async fn no_token_is_revoked_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    let outcome = ports.services().api_tokens.revoke(&an_actor().build(), an_api_token().build().id).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn an_api_token_cannot_revoke_tokens_not_even_itself() {
    let id = an_api_token().build().id;

    let outcome = MockedPorts::default().services().api_tokens.revoke(&program(), id).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}

#[tokio::test]
async fn whoever_is_in_no_organization_has_no_token_to_revoke() {
    let id = an_api_token().build().id;

    let outcome =
        MockedPorts::default().services().api_tokens.revoke(&actor_without_organization(), id).await;

    assert_refused(outcome, Forbidden::NoOrganization);
}
