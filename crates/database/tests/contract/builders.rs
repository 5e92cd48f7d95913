//! Builders of records for the tests, each different from all others.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use chrono::{DateTime, TimeDelta};
use diesel::connection::SimpleConnection as _;
use launchway_database::Database;
use launchway_domain::{
    audit::{self, Action, Chain, Entry, Resource},
    auth::{self, ApiToken, Client, PasswordHash, Permission, Session, TokenHash},
    clock::Timestamp,
    ids::{OrganizationId, UserId},
    organizations::{self, Membership, Organization, Role, Scope},
    store::{StoreError, UnitOfWork as _, Write},
    users::{self, User, UserKind},
};
use uuid::Uuid;

/// Returns the time so many seconds after the tests' time zero.
pub(crate) fn at(seconds: i64) -> Timestamp {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::seconds(seconds)
}

/// Returns an id that was not used before.
pub(crate) fn id<T: From<Uuid>>() -> T {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()).into()
}

pub(crate) fn a_user(name: &str) -> User {
    let email = format!("{name}@example.com").parse().unwrap();
    User::new(id(), name.parse().unwrap(), email, UserKind::AppUser, at(0))
}

pub(crate) fn an_organization(name: &str) -> Organization {
    Organization::new(id(), name.parse().unwrap(), "For tests.".parse().unwrap(), at(0))
}

pub(crate) fn a_membership(organization: &Organization, user: &User, role: Role) -> Membership {
    Membership::new(id(), organization.id, user.id, role, at(0))
}

pub(crate) fn a_session(user_id: UserId, token: &str) -> Session {
    let client = Client { address: "192.0.2.7".parse().unwrap(), user_agent: "curl/8".to_owned() };
    Session::open(id(), user_id, TokenHash::of(token), client, at(0))
}

pub(crate) fn an_api_token(organization_id: OrganizationId, user_id: UserId, name: &str) -> ApiToken {
    let permissions: [Permission; 2] = ["deploy:create", "user:read"].map(|name| name.parse().unwrap());
    ApiToken {
        id: id(),
        organization_id,
        user_id,
        name: name.parse().unwrap(),
        token_hash: TokenHash::of(&format!("token of {user_id} called {name} in {organization_id}")),
        permissions: permissions.into_iter().collect(),
        expires_at: Some(at(1000)),
        created_at: at(0),
    }
}

/// An audit entry by Ada in that chain.
pub(crate) fn an_entry(chain: Chain) -> Entry {
    Entry {
        id: id(),
        chain,
        actor: "ada".to_owned(),
        actor_id: Some(id()),
        action: Action::Update,
        resource: Resource::User,
        resource_id: "42".to_owned(),
        message: "ada did something".to_owned(),
        metadata: BTreeMap::new(),
        request_id: "request".to_owned(),
        address: Some([192, 0, 2, 7].into()),
        at: at(0),
    }
}

/// Adds an audit entry to the writes. Each has a chain of its own, so that concurrent transactions conflict
/// only where the test wants it.
pub(crate) fn audited(mut writes: Vec<Write>) -> Vec<Write> {
    writes.push(audit::Write::Append(an_entry(Chain::Organization(id()))).into());
    writes
}

pub(crate) fn a_hash(text: &str) -> PasswordHash {
    PasswordHash(format!("$argon2id${text}"))
}

/// A user with an organization of their own.
pub(crate) struct Resident {
    pub(crate) user: User,
    pub(crate) organization: Organization,
    pub(crate) membership: Membership,
}

impl Resident {
    /// A user who is not stored yet.
    pub(crate) fn called(name: &str) -> Self {
        let user = a_user(name);
        let organization = an_organization(&format!("{name}'s Team"));
        let membership = a_membership(&organization, &user, Role::Admin);
        Self { user, organization, membership }
    }

    /// A stored user.
    pub(crate) async fn of(database: &Database, name: &str) -> Self {
        let resident = Self::called(name);
        database.commit(audited(resident.writes())).await.unwrap();
        resident
    }

    /// Returns the scope of their organization.
    pub(crate) fn scope(&self) -> Scope {
        Scope::of_record(self.organization.id)
    }

    pub(crate) fn writes(&self) -> Vec<Write> {
        vec![
            users::Write::Insert(self.user.clone()).into(),
            organizations::Write::Insert(self.organization.clone()).into(),
            organizations::Write::InsertMembership(self.membership.clone()).into(),
        ]
    }

    /// Creates a session whose token is `token`.
    pub(crate) async fn log_in(&self, database: &Database, token: &str) -> Session {
        let session = a_session(self.user.id, token);
        commit(database, auth::Write::OpenSession(session.clone())).await.unwrap();
        session
    }

    /// Issues an API token with the name `name`.
    pub(crate) async fn issue(&self, database: &Database, name: &str) -> ApiToken {
        let token = an_api_token(self.organization.id, self.user.id, name);
        commit(database, auth::Write::IssueApiToken(token.clone())).await.unwrap();
        token
    }
}

/// Commits one write with an audit entry.
pub(crate) async fn commit(database: &Database, write: impl Into<Write>) -> Result<(), StoreError> {
    database.commit(audited(vec![write.into()])).await
}

/// Runs a statement that no write exists for, with SQL that both databases accept.
pub(crate) async fn execute(database: &Database, sql: &'static str) {
    database.write(move |connection| Ok(connection.batch_execute(sql)?)).await.unwrap();
}

/// Returns whether a guard failed.
pub(crate) fn is_stale(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Stale))
}
