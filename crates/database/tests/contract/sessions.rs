//! Contract of the writes of sessions.

use chrono::TimeDelta;
use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::BigInt};
use launchway_database::Database;
use launchway_domain::{
    auth::{Credential, CredentialRepository as _, IdentityRepository as _, Session, Write},
    ids::SessionId,
    store::UnitOfWork as _,
};

use crate::builders::{Resident, a_hash, a_session, at, audited, commit, id, is_stale};

contract!(
    a_session_is_read_as_it_was_opened,
    an_extended_session_is_seen_with_its_new_end,
    a_session_that_ended_cannot_be_extended,
    a_session_ends_once,
    all_sessions_of_a_user_end_together,
    one_session_may_be_kept_when_the_others_end,
    the_open_sessions_of_a_user_are_listed_newest_first,
    a_login_during_a_password_change_does_not_outlive_it,
    sessions_ended_ninety_days_ago_are_deleted_with_a_login,
);

async fn session_of(db: &Database, session: &Session) -> Option<Session> {
    let identity = db.by_token(&session.token_hash).await.unwrap()?;
    match &identity.credential {
        Credential::Session(session) => Some(session.clone()),
        other => panic!("{other:?} is no session"),
    }
}

fn extend(id: SessionId) -> Write {
    Write::ExtendSession { id, at: at(3600), expires_at: at(9999) }
}

async fn a_session_is_read_as_it_was_opened(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    assert_eq!(session_of(&db, &session).await, Some(session));
}

async fn an_extended_session_is_seen_with_its_new_end(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    assert_eq!(session_of(&db, &session).await.as_ref(), Some(&session));
    commit(&db, extend(session.id)).await.unwrap();
    let extended = Session { extended_at: at(3600), expires_at: at(9999), ..session.clone() };
    assert_eq!(session_of(&db, &session).await, Some(extended));
}

async fn a_session_that_ended_cannot_be_extended(db: Database) {
    assert!(is_stale(&commit(&db, extend(id())).await));
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    commit(&db, Write::EndSession { id: session.id, at: at(1) }).await.unwrap();
    assert!(is_stale(&commit(&db, extend(session.id)).await));
    assert_eq!(session_of(&db, &session).await, None);
}

async fn a_session_ends_once(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    commit(&db, Write::EndSession { id: session.id, at: at(1) }).await.unwrap();
    assert!(is_stale(&commit(&db, Write::EndSession { id: session.id, at: at(2) }).await));
    assert!(is_stale(&commit(&db, Write::EndSession { id: id(), at: at(2) }).await));
}

async fn all_sessions_of_a_user_end_together(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let [one, two] = [ada.log_in(&db, "one").await, ada.log_in(&db, "two").await];
    let other = grace.log_in(&db, "three").await;
    let end = Write::EndSessions { user_id: ada.user.id, keep: None, at: at(1) };
    commit(&db, end.clone()).await.unwrap();
    assert_eq!(session_of(&db, &one).await, None);
    assert_eq!(session_of(&db, &two).await, None);
    assert!(session_of(&db, &other).await.is_some());
    // That there is none left is no reason to refuse.
    commit(&db, end).await.unwrap();
}

async fn one_session_may_be_kept_when_the_others_end(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let [one, two] = [ada.log_in(&db, "one").await, ada.log_in(&db, "two").await];
    let end = Write::EndSessions { user_id: ada.user.id, keep: Some(two.id), at: at(1) };
    commit(&db, end).await.unwrap();
    assert_eq!(session_of(&db, &one).await, None);
    assert_eq!(session_of(&db, &two).await, Some(two));
}

async fn the_open_sessions_of_a_user_are_listed_newest_first(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let [one, two] = [ada.log_in(&db, "one").await, ada.log_in(&db, "two").await];
    let ended = ada.log_in(&db, "three").await;
    grace.log_in(&db, "four").await;
    commit(&db, Write::EndSession { id: ended.id, at: at(1) }).await.unwrap();
    let mut open = db.sessions(ada.user.id, one.created_at).await.unwrap();
    assert!(open.is_sorted_by(|a, b| (a.created_at, a.id) > (b.created_at, b.id)), "{open:?}");
    open.sort_by_key(|session| session.id);
    let mut expected = vec![one.clone(), two];
    expected.sort_by_key(|session| session.id);
    assert_eq!(open, expected);
    assert_eq!(db.sessions(ada.user.id, one.expires_at).await.unwrap(), []);
}

async fn a_login_during_a_password_change_does_not_outlive_it(db: Database) {
    let user_id = Resident::of(&db, "ada").await.user.id;
    for round in 0..20 {
        let [old, new] = [round, round + 1].map(|n| a_hash(&n.to_string()));
        commit(&db, Write::SetPassword { user_id, hash: old.clone(), at: at(round) }).await.unwrap();
        let session = a_session(user_id, &round.to_string());
        let log_in = db.commit(audited(vec![
            Write::ConfirmPassword { user_id, hash: old }.into(),
            Write::OpenSession(session.clone()).into(),
        ]));
        let change = db.commit(audited(vec![
            Write::SetPassword { user_id, hash: new, at: at(round) }.into(),
            Write::EndSessions { user_id, keep: None, at: at(round) }.into(),
        ]));
        let (logged_in, changed) = tokio::join!(log_in, change);
        changed.unwrap();
        assert!(logged_in.is_ok() || is_stale(&logged_in), "{logged_in:?}");
        assert_eq!(session_of(&db, &session).await, None);
    }
}

async fn sessions_ended_ninety_days_ago_are_deleted_with_a_login(db: Database) {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let count = || async {
        let count = db.read(|db| Ok(sql_query("SELECT COUNT(*) AS count FROM sessions").get_result(db)?));
        let Count { count } = count.await.unwrap();
        count
    };
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let [expired, ended, lately_ended, alive] =
        ["expired", "ended", "lately ended", "alive"].map(|token| a_session(ada.user.id, token));
    let far = at(0) + TimeDelta::days(1000);
    for mut session in [ended.clone(), lately_ended.clone(), alive.clone()] {
        session.expires_at = far;
        commit(&db, Write::OpenSession(session)).await.unwrap();
    }
    commit(&db, Write::OpenSession(expired.clone())).await.unwrap();
    grace.log_in(&db, "grace's").await;
    let moment = expired.expires_at + TimeDelta::days(90);
    commit(&db, Write::EndSession { id: ended.id, at: expired.expires_at }).await.unwrap();
    let lately = expired.expires_at + TimeDelta::seconds(1);
    commit(&db, Write::EndSession { id: lately_ended.id, at: lately }).await.unwrap();

    let next = |token: &str, now| {
        let opened = a_session(ada.user.id, token);
        Write::OpenSession(Session { created_at: now, expires_at: far, ..opened })
    };
    commit(&db, next("next", moment)).await.unwrap();
    assert_eq!(count().await, 6);
    commit(&db, next("the one after", moment + TimeDelta::seconds(1))).await.unwrap();
    assert_eq!(count().await, 5);
    assert_eq!(session_of(&db, &alive).await.map(|session| session.id), Some(alive.id));
}
