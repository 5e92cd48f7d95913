//! Contract of `audit::Write`, and of verifying the chains.

mod pages;

use std::collections::BTreeMap;

use diesel::connection::SimpleConnection as _;
use launchway_database::{AnyConnection, Database};
use launchway_domain::{
    audit::{Action, AuditRepository as _, Chain, ChainHead, Entry, Link, LinkHash, Resource, Write},
    auth,
    store::{StoreError, UnitOfWork as _},
};
use tokio::task::JoinSet;

use crate::{
    builders::{an_entry, at, execute, id, is_stale},
    fresh::Fresh,
};

contract!(
    an_entry_is_read_as_it_was_appended,
    entries_are_chained_without_a_gap,
    appends_at_once_each_get_a_place_of_their_own,
    chains_do_not_know_of_each_other,
    moments_rise_whatever_the_clock_says,
    an_append_that_is_undone_leaves_no_gap,
    the_id_of_an_entry_is_not_used_twice,
    links_come_in_their_order_and_no_more_than_asked_for,
    every_chain_has_a_head,
    entries_can_neither_be_changed_nor_removed,
    an_entry_that_was_tampered_with_does_not_fit_its_hash,
    a_removed_entry_is_missed,
    a_chain_without_its_head_does_not_pass,
    the_audit_log_is_there_for_the_next_process,
);

async fn append(db: &Database, entry: Entry) {
    db.commit(vec![Write::Append(entry).into()]).await.unwrap();
}

fn a_chain() -> Chain {
    Chain::Organization(id())
}

async fn links(db: &Database, chain: Chain) -> Vec<Link> {
    db.links(chain, 0, 10_000).await.unwrap()
}

async fn head(db: &Database, chain: Chain) -> ChainHead {
    let heads = db.heads().await.unwrap();
    heads.into_iter().find(|head| head.chain == chain).unwrap()
}

/// Returns whether the chain is intact, from the first link to the end that its head states.
async fn is_whole(db: &Database, chain: Chain) -> bool {
    let (links, head) = (links(db, chain).await, head(db, chain).await);
    let mut hash = LinkHash::ROOT;
    let fits = (1..).zip(&links).all(|(number, link)| {
        hash = hash.next(number, &link.entry);
        (link.number, link.hash) == (number, hash)
    });
    fits && (links.len() as i64, hash) == (head.number, head.hash)
}

async fn an_entry_is_read_as_it_was_appended(db: Database) {
    let full = Entry {
        actor: "Jürgen \"J\" Müller".to_owned(),
        action: Action::Delete,
        resource: Resource::SmtpConfig,
        resource_id: id::<uuid::Uuid>().to_string(),
        message: "Jürgen deleted %_\\ 🚀".to_owned(),
        metadata: BTreeMap::from(
            [("b", "2 \"two\" \\ \n"), ("a", ""), ("", "ü🚀")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        ),
        address: Some("2001:db8::7".parse().unwrap()),
        at: at(3) + chrono::TimeDelta::microseconds(123_456),
        ..an_entry(a_chain())
    };
    let bare = Entry {
        actor_id: None,
        request_id: String::new(),
        address: None,
        at: at(9),
        ..an_entry(Chain::Installation)
    };
    for entry in [full, bare] {
        append(&db, entry.clone()).await;
        let hash = LinkHash::ROOT.next(1, &entry);
        assert_eq!(links(&db, entry.chain).await, [Link { number: 1, entry, hash }]);
    }
}

async fn entries_are_chained_without_a_gap(db: Database) {
    let chain = a_chain();
    let entries: Vec<_> = (1..=5).map(|n| Entry { at: at(n), ..an_entry(chain) }).collect();
    for entry in &entries {
        append(&db, entry.clone()).await;
    }
    let stored = links(&db, chain).await;
    assert_eq!(stored.iter().map(|link| link.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(stored.into_iter().map(|link| link.entry).collect::<Vec<_>>(), entries);
    assert!(is_whole(&db, chain).await);
}

async fn appends_at_once_each_get_a_place_of_their_own(fresh: &Fresh) {
    let chain = a_chain();
    // Replicas on PostgreSQL; on SQLite the server is alone with its file.
    let (db, replica) = (fresh.database.clone(), fresh.open_again());
    let mut tasks = JoinSet::new();
    for n in 0..64 {
        let db = if n % 2 == 0 || fresh.folder().is_some() { db.clone() } else { replica.clone() };
        tasks.spawn(async move { append(&db, Entry { at: at(n % 7), ..an_entry(chain) }).await });
    }
    tasks.join_all().await;
    let stored = links(&db, chain).await;
    assert_eq!(stored.iter().map(|link| link.number).collect::<Vec<_>>(), (1..=64).collect::<Vec<_>>());
    assert!(stored.is_sorted_by(|one, next| one.entry.at < next.entry.at));
    assert!(is_whole(&db, chain).await);
}

async fn chains_do_not_know_of_each_other(db: Database) {
    let chains = [a_chain(), Chain::Installation, a_chain()];
    let mut tasks = JoinSet::new();
    for n in 0..30 {
        let (db, chain) = (db.clone(), chains[n % 3]);
        tasks.spawn(async move { append(&db, an_entry(chain)).await });
    }
    tasks.join_all().await;
    for chain in chains {
        assert_eq!(head(&db, chain).await.number, 10);
        assert!(is_whole(&db, chain).await);
        assert!(links(&db, chain).await.iter().all(|link| link.entry.chain == chain));
    }
}

async fn moments_rise_whatever_the_clock_says(db: Database) {
    let chain = a_chain();
    for seconds in [10, 10, 3, 20] {
        append(&db, Entry { at: at(seconds), ..an_entry(chain) }).await;
    }
    let moments: Vec<_> = links(&db, chain).await.into_iter().map(|link| link.entry.at).collect();
    let behind = |microseconds| at(10) + chrono::TimeDelta::microseconds(microseconds);
    assert_eq!(moments, [at(10), behind(1), behind(2), at(20)]);
    assert!(is_whole(&db, chain).await);
}

async fn an_append_that_is_undone_leaves_no_gap(db: Database) {
    let chain = a_chain();
    for _ in 0..3 {
        append(&db, an_entry(chain)).await;
        let stale = auth::Write::EndSession { id: id(), at: at(0) };
        let unit = vec![Write::Append(an_entry(chain)).into(), stale.into()];
        assert!(is_stale(&db.commit(unit).await));
    }
    assert_eq!(links(&db, chain).await.len(), 3);
    assert!(is_whole(&db, chain).await);
}

async fn the_id_of_an_entry_is_not_used_twice(db: Database) {
    let entry = an_entry(a_chain());
    append(&db, entry.clone()).await;
    let again = Entry { chain: a_chain(), ..entry };
    let outcome = db.commit(vec![Write::Append(again.clone()).into()]).await;
    assert!(matches!(outcome, Err(StoreError::Internal(_))), "{outcome:?}");
    assert_eq!(links(&db, again.chain).await, []);
}

async fn links_come_in_their_order_and_no_more_than_asked_for(db: Database) {
    let chain = a_chain();
    for _ in 0..7 {
        append(&db, an_entry(chain)).await;
    }
    let numbers = async |after, limit| {
        let links = db.links(chain, after, limit).await.unwrap();
        links.into_iter().map(|link| link.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(0, 3).await, [1, 2, 3]);
    assert_eq!(numbers(3, 3).await, [4, 5, 6]);
    assert_eq!(numbers(6, 3).await, [7]);
    assert_eq!(numbers(7, 3).await, [0; 0]);
    assert_eq!(links(&db, a_chain()).await, []);
}

async fn every_chain_has_a_head(db: Database) {
    assert_eq!(db.heads().await.unwrap(), []);
    let chain = a_chain();
    append(&db, an_entry(chain)).await;
    append(&db, an_entry(Chain::Installation)).await;
    append(&db, an_entry(chain)).await;
    let mut expected = Vec::new();
    for chain in [Chain::Installation, chain] {
        let last = links(&db, chain).await.pop().unwrap();
        expected.push(ChainHead { chain, number: last.number, hash: last.hash });
    }
    assert_eq!(db.heads().await.unwrap(), expected);
}

async fn entries_can_neither_be_changed_nor_removed(fresh: &Fresh) {
    let (db, chain) = (&fresh.database, a_chain());
    append(db, an_entry(chain)).await;
    let before = links(db, chain).await;
    let mut statements = vec![
        "UPDATE audit_entries SET message = 'nothing happened'",
        "UPDATE audit_entries SET number = number + 1",
        "DELETE FROM audit_entries",
        "DELETE FROM audit_entries WHERE number = 1",
    ];
    if fresh.folder().is_none() {
        statements.push("TRUNCATE audit_entries");
    }
    for statement in statements {
        let outcome = db.write(move |connection| Ok(connection.batch_execute(statement)?)).await;
        assert!(matches!(outcome, Err(StoreError::Internal(_))), "{statement}: {outcome:?}");
    }
    assert_eq!(links(db, chain).await, before);
}

/// Changes entries against the rules of the tables, as an attacker with access to the database could.
async fn tamper(db: &Database, statement: &'static str) {
    let unlock = |connection: &mut AnyConnection| {
        let unlock = match connection {
            AnyConnection::Sqlite(_) => {
                "DROP TRIGGER IF EXISTS audit_entries_only_grow_on_update;
                 DROP TRIGGER IF EXISTS audit_entries_only_grow_on_delete"
            }
            AnyConnection::Postgres(_) => "DROP TRIGGER IF EXISTS audit_entries_only_grow ON audit_entries",
        };
        Ok(connection.batch_execute(unlock)?)
    };
    db.write(unlock).await.unwrap();
    execute(db, statement).await;
}

async fn an_entry_that_was_tampered_with_does_not_fit_its_hash(db: Database) {
    for statement in [
        "UPDATE audit_entries SET message = 'nothing happened' WHERE number = 2",
        "UPDATE audit_entries SET actor = 'grace' WHERE number = 2",
        "UPDATE audit_entries SET metadata = '{\"a\":\"b\"}' WHERE number = 2",
        "UPDATE audit_entries SET address = NULL WHERE number = 2",
        "UPDATE audit_entries SET action = 'create', resource = 'token' WHERE number = 2",
    ] {
        let chain = a_chain();
        for _ in 0..3 {
            append(&db, an_entry(chain)).await;
        }
        assert!(is_whole(&db, chain).await);
        let before = links(&db, chain).await;
        tamper(&db, statement).await;
        let after = links(&db, chain).await;
        assert_ne!(after[1].entry, before[1].entry, "{statement}");
        assert_ne!(before[0].hash.next(2, &after[1].entry), after[1].hash, "{statement}");
        assert!(!is_whole(&db, chain).await, "{statement}");
    }
}

async fn a_removed_entry_is_missed(db: Database) {
    for statement in [
        "DELETE FROM audit_entries WHERE number = 1",
        "DELETE FROM audit_entries WHERE number = 3",
        "DELETE FROM audit_entries",
    ] {
        let chain = a_chain();
        for _ in 0..3 {
            append(&db, an_entry(chain)).await;
        }
        assert!(is_whole(&db, chain).await);
        tamper(&db, statement).await;
        assert!(!is_whole(&db, chain).await, "{statement}");
    }
}

async fn a_chain_without_its_head_does_not_pass(db: Database) {
    let (beheaded, whole) = (a_chain(), a_chain());
    for chain in [beheaded, beheaded, whole] {
        append(&db, an_entry(chain)).await;
    }
    execute(&db, "DELETE FROM audit_chains WHERE last_number = 2").await;
    let expected = ChainHead { chain: beheaded, number: 2, hash: LinkHash::ROOT };
    assert_eq!(head(&db, beheaded).await, expected);
    assert!(!is_whole(&db, beheaded).await);
    assert!(is_whole(&db, whole).await);
}

async fn the_audit_log_is_there_for_the_next_process(fresh: &Fresh) {
    let chain = a_chain();
    append(&fresh.database, an_entry(chain)).await;
    fresh.database.close().await;
    let reopened = fresh.open_again();
    append(&reopened, an_entry(chain)).await;
    assert_eq!(links(&reopened, chain).await.len(), 2);
    assert!(is_whole(&reopened, chain).await);
}
