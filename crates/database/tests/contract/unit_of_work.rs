//! Contract of `UnitOfWork`.

use diesel::{RunQueryDsl as _, connection::SimpleConnection as _};
use launchway_database::{AnyConnection, Database};
use launchway_domain::{
    audit::{self, Chain},
    auth::{self, IdentityRepository as _},
    organizations::{self, Role},
    store::{StoreError, Unique, UnitOfWork as _},
    users::{self, UserRepository as _},
};
use tokio::task::JoinSet;

use crate::{
    builders::{Resident, a_membership, a_user, an_entry, at, audited, commit, execute, id, is_stale},
    fresh::Fresh,
};

contract!(
    writes_take_effect_in_their_order,
    a_failing_last_write_leaves_nothing_of_the_earlier_ones,
    a_failed_guard_rolls_back_the_earlier_writes,
    nothing_to_write_is_no_error,
    rejects_a_change_without_an_audit_entry,
    what_needs_no_audit_takes_effect_without_an_entry,
    what_was_committed_is_there_for_the_next_process,
    each_of_many_commits_at_once_has_its_own_outcome,
    a_commit_whose_caller_has_gone_is_whole_or_absent,
    a_panic_leaves_nothing_and_the_database_usable,
);

async fn writes_take_effect_in_their_order(db: Database) {
    let user = a_user("ada");
    let rename =
        |name: &str| users::Write::Rename { id: user.id, username: name.parse().unwrap(), at: at(1) };
    let writes = vec![users::Write::Insert(user.clone()).into(), rename("b").into(), rename("c").into()];
    db.commit(audited(writes)).await.unwrap();
    assert_eq!(db.profile(user.id).await.unwrap().unwrap().user.username.as_str(), "c");
}

async fn a_failing_last_write_leaves_nothing_of_the_earlier_ones(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let grace = Resident::called("grace");
    let mut writes = grace.writes();
    writes.push(auth::Write::OpenSession(crate::builders::a_session(grace.user.id, "one")).into());
    let again = a_membership(&ada.organization, &ada.user, Role::Viewer);
    writes.push(organizations::Write::InsertMembership(again).into());
    let outcome = db.commit(audited(writes)).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::Membership))), "{outcome:?}");
    assert_eq!(db.profile(grace.user.id).await.unwrap(), None);
    // Nothing of it stands in the way of doing it again.
    db.commit(audited(grace.writes())).await.unwrap();
}

async fn a_failed_guard_rolls_back_the_earlier_writes(db: Database) {
    let grace = Resident::called("grace");
    let mut writes = grace.writes();
    writes.push(auth::Write::EndSession { id: id(), at: at(0) }.into());
    assert!(is_stale(&db.commit(audited(writes)).await));
    assert_eq!(db.profile(grace.user.id).await.unwrap(), None);
}

async fn nothing_to_write_is_no_error(db: Database) {
    db.commit(vec![]).await.unwrap();
}

async fn rejects_a_change_without_an_audit_entry(db: Database) {
    let ada = Resident::called("ada");
    let before = db.statistics();
    let outcome = db.commit(ada.writes()).await;
    assert!(matches!(outcome, Err(StoreError::Unaudited)), "{outcome:?}");
    assert_eq!(db.statistics(), before);
    assert_eq!(db.profile(ada.user.id).await.unwrap(), None);
    db.commit(audited(ada.writes())).await.unwrap();
}

async fn what_needs_no_audit_takes_effect_without_an_entry(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let session = ada.log_in(&db, "one").await;
    let extend = auth::Write::ExtendSession { id: session.id, at: at(1), expires_at: at(9999) };
    let settings =
        users::Write::ChangeSettings { user_id: ada.user.id, new_id: id(), changes: vec![], at: at(1) };
    db.commit(vec![extend.into(), settings.into()]).await.unwrap();
    let identity = db.by_token(&session.token_hash).await.unwrap().unwrap();
    assert!(identity.profile.settings.is_some());
    let extended = auth::Session { extended_at: at(1), expires_at: at(9999), ..session };
    assert_eq!(identity.credential, auth::Credential::Session(extended));
    // An audit entry alone is about a change outside the database.
    db.commit(vec![audit::Write::Append(an_entry(Chain::Installation)).into()]).await.unwrap();
}

async fn what_was_committed_is_there_for_the_next_process(fresh: &Fresh) {
    let ada = Resident::of(&fresh.database, "ada").await;
    fresh.database.close().await;
    let reopened = fresh.open_again();
    assert_eq!(reopened.migrate().await.unwrap(), Vec::<String>::new());
    assert_eq!(reopened.profile(ada.user.id).await.unwrap().unwrap().user, ada.user);
}

async fn each_of_many_commits_at_once_has_its_own_outcome(db: Database) {
    Resident::of(&db, "taken").await;
    let mut tasks = JoinSet::new();
    for n in 0..60 {
        let db = db.clone();
        tasks.spawn(async move {
            let resident = Resident::called(&format!("user{n}"));
            let mut writes = resident.writes();
            let expected = match n % 3 {
                0 => "fine",
                1 => {
                    writes.push(users::Write::Insert(a_user("taken")).into());
                    "taken"
                }
                _ => {
                    writes.push(auth::Write::EndSession { id: id(), at: at(0) }.into());
                    "stale"
                }
            };
            let outcome = match db.commit(audited(writes)).await {
                Ok(()) => "fine",
                Err(StoreError::Taken(Unique::UserEmail)) => "taken",
                Err(StoreError::Stale) => "stale",
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(outcome, expected);
            let stored = db.profile(resident.user.id).await.unwrap();
            assert_eq!(stored.is_some(), expected == "fine");
            assert!(stored.is_none_or(|profile| profile.memberships.len() == 1));
        });
    }
    tasks.join_all().await;
}

async fn a_commit_whose_caller_has_gone_is_whole_or_absent(db: Database) {
    let residents: Vec<_> = (0..20).map(|n| Resident::called(&format!("user{n}"))).collect();
    let mut tasks = JoinSet::new();
    for resident in &residents {
        let (db, writes) = (db.clone(), audited(resident.writes()));
        tasks.spawn(async move { db.commit(writes).await });
    }
    tokio::task::yield_now().await;
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    for resident in &residents {
        let stored = db.profile(resident.user.id).await.unwrap();
        assert!(stored.is_none_or(|profile| profile.memberships.len() == 1));
    }
    Resident::of(&db, "after").await;
}

async fn a_panic_leaves_nothing_and_the_database_usable(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for _ in 0..6 {
        let outcome: Result<(), StoreError> = db
            .write(|connection| {
                connection.batch_execute("UPDATE users SET username = 'half done'")?;
                panic!("as the test wants it")
            })
            .await;
        assert!(matches!(outcome, Err(StoreError::Internal(_))), "{outcome:?}");
    }
    assert_eq!(db.profile(ada.user.id).await.unwrap().unwrap().user, ada.user);
    execute(&db, "UPDATE users SET username = 'done'").await;
    commit(&db, users::Write::Insert(a_user("grace"))).await.unwrap();
    assert_eq!(db.profile(ada.user.id).await.unwrap().unwrap().user.username.as_str(), "done");
}

/// The server resolves a deadlock by failing one of its transactions; a unit of work is retried.
#[tokio::test]
async fn a_unit_that_lost_a_deadlock_is_repeated_on_postgres() {
    let fresh = Fresh::on_postgres().await;
    let db = &fresh.database;
    let (ada, grace) = (Resident::of(db, "ada").await.user, Resident::of(db, "grace").await.user);
    let (entered, mut is_in) = tokio::sync::mpsc::unbounded_channel();
    let (gate, opened) = std::sync::mpsc::channel::<()>();
    let other = db.clone();
    let opponent = tokio::spawn(async move {
        let work = move |connection: &mut AnyConnection| {
            // The opponent never looks for deadlocks, so that it is the unit that loses.
            connection.batch_execute(
                "SET LOCAL deadlock_timeout = '10min';
                 UPDATE users SET avatar = 'x' WHERE username = 'grace'",
            )?;
            entered.send(()).unwrap();
            opened.recv().unwrap_err();
            Ok(connection.batch_execute("UPDATE users SET avatar = 'x' WHERE username = 'ada'")?)
        };
        other.write(work).await
    });
    is_in.recv().await.unwrap();
    let rename = |id, name: &str| users::Write::Rename { id, username: name.parse().unwrap(), at: at(1) };
    let writes = vec![rename(ada.id, "Ada").into(), rename(grace.id, "Grace").into()];
    let unit = db.clone();
    let unit = tokio::spawn(async move { unit.commit(audited(writes)).await });
    while !someone_waits_for_a_lock(db).await {}
    drop(gate);
    opponent.await.unwrap().unwrap();
    unit.await.unwrap().unwrap();
    let stored = db.profile(grace.id).await.unwrap().unwrap().user;
    assert_eq!((stored.username.as_str(), stored.avatar.as_str()), ("Grace", "x"));
}

async fn someone_waits_for_a_lock(db: &Database) -> bool {
    db.read(|connection| {
        let waiting = "SELECT 1 FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        Ok(diesel::sql_query(waiting).execute(connection)? > 0)
    })
    .await
    .unwrap()
}
