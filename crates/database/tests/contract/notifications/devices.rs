//! Events of logins from a new device.

use chrono::TimeDelta;
use launchway_database::Database;
use launchway_domain::{
    auth::{self, Client, Session},
    clock::Timestamp,
    notifications::EventKind,
    organizations::{self, Role},
    store::UnitOfWork as _,
};

use super::{a_reader, delivered, deliveries, facts};
use crate::builders::{Resident, a_membership, a_session, at, audited, commit, id, is_stale};

contract!(
    a_login_from_a_new_device_notifies_all_organizations,
    a_known_device_is_not_announced,
    another_address_or_program_is_another_device,
    a_device_is_known_for_ninety_days_after_its_last_use,
    a_device_is_known_although_its_session_was_ended,
    devices_of_others_are_not_known,
    a_login_that_fails_is_not_announced,
);

/// A session from a device that begins then.
fn a_login(resident: &Resident, token: &str, when: Timestamp) -> Session {
    let session = a_session(resident.user.id, token);
    Session { created_at: when, extended_at: when, expires_at: when + Session::LIFETIME, ..session }
}

async fn open(db: &Database, session: &Session) {
    commit(db, auth::Write::OpenSession(session.clone())).await.unwrap();
}

async fn count(db: &Database, resident: &Resident) -> usize {
    deliveries(db, resident.scope()).await.len()
}

async fn a_login_from_a_new_device_notifies_all_organizations(db: Database) {
    let (ada, bob) = (a_reader(&db, "ada").await, a_reader(&db, "bob").await);
    // The user is a member of eve's, which has no channel, was one of zoe's, and never was one of kim's.
    let (eve, zoe, kim) =
        (Resident::of(&db, "eve").await, a_reader(&db, "zoe").await, a_reader(&db, "kim").await);
    for other in [&bob, &eve, &zoe] {
        let membership = a_membership(&other.organization, &ada.user, Role::Member);
        commit(&db, organizations::Write::InsertMembership(membership)).await.unwrap();
    }
    let (scope, user_id) = (zoe.scope(), ada.user.id);
    commit(&db, organizations::Write::RemoveMember { scope, user_id, at: at(1) }).await.unwrap();
    open(&db, &a_login(&ada, "one", at(2))).await;

    for (resident, expected) in [(&ada, 1), (&bob, 1), (&eve, 0), (&zoe, 0), (&kim, 0)] {
        assert_eq!(count(&db, resident).await, expected, "{}", resident.user.username);
    }
    let events = delivered(&db, 10).await;
    let event = events.iter().find(|event| event.organization_id == bob.organization.id).unwrap();
    assert_eq!((event.kind, event.at), (EventKind::LoginNewDevice, at(2)));
    assert_eq!(
        facts(event),
        [
            ("organization", "bob's Team"),
            ("organization_id", bob.organization.id.to_string().as_str()),
            ("user", "ada"),
            ("user_id", ada.user.id.to_string().as_str()),
            ("email", "ada@example.com"),
            ("address", "192.0.2.7"),
            ("user_agent", "curl/8"),
        ]
    );
}

async fn a_known_device_is_not_announced(db: Database) {
    let ada = a_reader(&db, "ada").await;
    for (token, seconds) in [("one", 1), ("two", 1), ("three", 2), ("four", 3000)] {
        open(&db, &a_login(&ada, token, at(seconds))).await;
        assert_eq!(count(&db, &ada).await, 1, "{token}");
    }
}

async fn another_address_or_program_is_another_device(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let known = a_login(&ada, "one", at(1));
    open(&db, &known).await;
    let other_program = Client { user_agent: "curl/9".to_owned(), ..known.client.clone() };
    let other_place = Client { address: "2001:db8::7".parse().unwrap(), ..known.client.clone() };
    let nameless = Client { user_agent: String::new(), ..known.client };
    for (number, client) in [other_program, other_place, nameless].into_iter().enumerate() {
        for token in ["first", "second"] {
            let session = a_login(&ada, &format!("{token} {number}"), at(2));
            open(&db, &Session { client: client.clone(), ..session }).await;
        }
        assert_eq!(count(&db, &ada).await, number + 2);
    }
}

async fn a_device_is_known_for_ninety_days_after_its_last_use(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let session = a_login(&ada, "one", at(0));
    open(&db, &session).await;
    let extended = at(0) + TimeDelta::days(5);
    let extend =
        auth::Write::ExtendSession { id: session.id, at: extended, expires_at: extended + Session::LIFETIME };
    commit(&db, extend).await.unwrap();
    let last = extended + TimeDelta::days(90);
    open(&db, &a_login(&ada, "two", last)).await;
    assert_eq!(count(&db, &ada).await, 1);
    let long_after = last + TimeDelta::days(90) + TimeDelta::microseconds(1);
    open(&db, &a_login(&ada, "three", long_after)).await;
    assert_eq!(count(&db, &ada).await, 2);
}

async fn a_device_is_known_although_its_session_was_ended(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let session = a_login(&ada, "one", at(0));
    open(&db, &session).await;
    commit(&db, auth::Write::EndSession { id: session.id, at: at(1) }).await.unwrap();
    let end = auth::Write::EndSessions { user_id: ada.user.id, keep: None, at: at(2) };
    commit(&db, end).await.unwrap();
    open(&db, &a_login(&ada, "two", at(0) + TimeDelta::days(90))).await;
    assert_eq!(count(&db, &ada).await, 1);
}

async fn devices_of_others_are_not_known(db: Database) {
    let (ada, bob) = (a_reader(&db, "ada").await, a_reader(&db, "bob").await);
    open(&db, &a_login(&ada, "one", at(1))).await;
    open(&db, &a_login(&bob, "two", at(1))).await;
    assert_eq!((count(&db, &ada).await, count(&db, &bob).await), (1, 1));
}

async fn a_login_that_fails_is_not_announced(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let log_in = auth::Write::OpenSession(a_login(&ada, "one", at(1))).into();
    let impossible = auth::Write::EndSession { id: id(), at: at(1) }.into();
    assert!(is_stale(&db.commit(audited(vec![log_in, impossible])).await));
    assert_eq!(count(&db, &ada).await, 0);
    open(&db, &a_login(&ada, "one", at(1))).await;
    assert_eq!(count(&db, &ada).await, 1);
}
