//! Quotas: log streams and the usage of an organization.

use std::{sync::Arc, time::Duration};

use launchway_application::{Error, logs::LogStreams};
use launchway_domain::{
    auth::{Actor, Forbidden},
    organizations::Role,
    quotas::{QuotaExceeded, Quotas, Resource},
};
use launchway_testkit::builders::{a_profile, a_user, an_actor, an_organization};

use crate::{
    actors::{a_program_without, lacks},
    ports::MockedPorts,
    refusals::assert_refused,
};

/// Returns a member of that organization.
fn member(name: &str, organization: &str) -> Actor {
    let organization = an_organization().named(organization).build();
    let profile = a_profile().of(&a_user().named(name).build()).member_of(&organization, Role::Viewer);
    an_actor().of(profile.build()).build()
}

fn streams(user: u64, organization: u64) -> Arc<LogStreams> {
    let quotas = Quotas { user_log_streams: user, log_streams: organization, ..Quotas::default() };
    Arc::new(LogStreams::new(quotas))
}

fn refused<T>(outcome: Result<T, Error>) -> Option<(Resource, u64, u64)> {
    match outcome {
        Err(Error::Busy { exceeded: QuotaExceeded { resource, used, limit, .. }, retry_after }) => {
            assert_eq!(retry_after, Duration::from_secs(5));
            Some((resource, used, limit))
        }
        _ => None,
    }
}

#[test]
fn a_user_has_a_limit_of_streams_in_all_organizations() {
    let streams = streams(2, 0);
    let (engines, looms) = (member("ada", "Engines"), member("ada", "Looms"));
    let _held = [streams.open(&engines).unwrap(), streams.open(&looms).unwrap()];
    assert_eq!(refused(streams.open(&engines)), Some((Resource::UserLogStreams, 2, 2)));
    assert!(streams.open(&member("grace", "Engines")).is_ok());
}

#[test]
fn an_organization_has_a_limit_of_streams_for_all_users() {
    let streams = streams(0, 2);
    let _held = [
        streams.open(&member("ada", "Engines")).unwrap(),
        streams.open(&member("grace", "Engines")).unwrap(),
    ];
    assert_eq!(refused(streams.open(&member("bob", "Engines"))), Some((Resource::LogStreams, 2, 2)));
    assert!(streams.open(&member("bob", "Looms")).is_ok());
}

#[test]
fn a_stream_that_ends_makes_room() {
    let streams = streams(1, 1);
    let ada = member("ada", "Engines");
    for _ in 0..3 {
        let permit = streams.open(&ada).unwrap();
        assert!(refused(streams.open(&ada)).is_some());
        drop(permit);
    }
    assert_eq!(
        (streams.of_user(ada.user_id()), streams.of_organization(ada.organization().unwrap().id())),
        (0, 0)
    );
}

#[test]
fn a_refused_stream_is_not_counted() {
    let streams = streams(1, 0);
    let ada = member("ada", "Engines");
    let _held = streams.open(&ada).unwrap();
    assert!(refused(streams.open(&ada)).is_some());
    assert_eq!(streams.of_organization(ada.organization().unwrap().id()), 1);
}

#[test]
fn a_process_has_256_streams_without_quotas() {
    let streams = streams(0, 0);
    let ada = member("ada", "Engines");
    let held: Vec<_> = (0..256).map(|_| streams.open(&ada).unwrap()).collect();
    assert_eq!(refused(streams.open(&ada)), Some((Resource::ServerLogStreams, 256, 256)));
    drop(held);
    assert!(streams.open(&ada).is_ok());
}

#[tokio::test]
async fn usage_joins_what_is_stored_with_open_streams() {
    let mut ports = MockedPorts::default();
    ports.policy.quotas = Quotas { applications: 5, log_streams: 7, ..Quotas::default() };
    ports.usage.expect_usage().once().returning(|_, _| Ok(vec![(Resource::Applications, 3)]));
    let services = ports.services();
    let actor = an_actor().build();
    let _held = services.streams.open(&actor).unwrap();
    let usage = services.quotas.usage(&actor, None).await.unwrap();
    let shown: Vec<_> = usage.iter().map(|one| (one.quota.resource, one.used, one.quota.limit)).collect();
    let expected =
        [(Resource::Applications, 3, 5), (Resource::LogStreams, 1, 7), (Resource::UserLogStreams, 1, 0)];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn usage_needs_the_permission_to_read_the_organization() {
    let services = MockedPorts::default().services();
    let program = a_program_without("organization:read");
    let outcome = services.quotas.usage(&program, None).await;
    assert_refused(outcome, lacks("organization:read"));
    let foreign = an_organization().named("Looms").build();
    let outcome = services.quotas.usage(&an_actor().build(), Some(foreign.id)).await;
    assert!(matches!(outcome, Err(Error::NotFound(_) | Error::Forbidden(Forbidden::NotAMember))));
}
