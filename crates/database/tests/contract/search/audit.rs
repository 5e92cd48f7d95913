//! Searches in audit logs.

use launchway_database::Database;
use launchway_domain::{
    audit::{Action, AuditRepository as _, Chain, Filter, Write},
    ids::OrganizationId,
    organizations::Scope,
    page::Page,
    store::UnitOfWork as _,
};
use proptest::test_runner::TestRunner;

use super::{BLOCK, assert_pages, index_all, indexed_blocks, lower_case, terms, texts};
use crate::{
    builders::{an_entry, at, id},
    fresh::Fresh,
};

contract!(audit_searches_equal_scans_however_far_the_index_is, entries_behind_the_index_are_found_at_once,);

struct AuditLog {
    chain: OrganizationId,
    texts: Vec<String>,
    /// All that a search looks at, in lower case.
    searched: Vec<String>,
}

impl AuditLog {
    fn new(texts: Vec<String>) -> Self {
        let numbered = (1..).zip(texts).map(|(number, text): (usize, String)| format!("{text} #{number}"));
        let mut log = Self { chain: id(), texts: Vec::new(), searched: Vec::new() };
        numbered.for_each(|text| log.push(text));
        log
    }

    fn push(&mut self, text: String) {
        self.searched.push(lower_case(&format!("{text}\nada\nuser\n42\nrequest\n192.0.2.7")));
        self.texts.push(text);
    }

    async fn append(&self, db: &Database, skipped: usize) {
        let texts: Vec<(usize, &String)> = (1..).zip(&self.texts).skip(skipped).collect();
        for batch in texts.chunks(512) {
            let write = |(number, text): &(usize, &String)| {
                let mut entry = an_entry(Chain::Organization(self.chain));
                (*text).clone_into(&mut entry.message);
                entry.action = action(*number);
                entry.at = at(i64::try_from(*number).unwrap());
                Write::Append(entry).into()
            };
            db.commit(batch.iter().map(write).collect()).await.unwrap();
        }
    }

    /// Compares a search with a scan of the texts.
    async fn check(&self, db: &Database, filter: &Filter) {
        let term = lower_case(filter.search.as_deref().unwrap());
        let is_in_time = |number: usize| {
            let time = at(i64::try_from(number).unwrap());
            filter.from.is_none_or(|from| time >= from) && filter.to.is_none_or(|to| time <= to)
        };
        let passes = |number: usize| {
            self.searched[number - 1].contains(&term)
                && filter.action.is_none_or(|wanted| action(number) == wanted)
                && is_in_time(number)
        };
        let found = (1..).zip(&self.texts).filter(|(number, _)| passes(*number));
        let mut expected: Vec<String> = found.map(|(_, text)| text.clone()).collect();
        expected.reverse();
        assert_pages(&expected, &format!("{filter:?}"), async |request| {
            let page = db.page(Scope::of_record(self.chain), filter, request).await.unwrap();
            let items = page.items.into_iter().map(|entry| entry.message).collect();
            Page { items, request, total: page.total }
        })
        .await;
    }
}

fn action(number: usize) -> Action {
    if number.is_multiple_of(3) { Action::Delete } else { Action::Create }
}

fn searching(term: &str) -> Filter {
    Filter { search: Some(term.to_owned()), ..Filter::default() }
}

async fn audit_searches_equal_scans_however_far_the_index_is(fresh: &Fresh) {
    let mut runner = TestRunner::deterministic();
    let one = AuditLog::new(texts(&mut runner, 2 * BLOCK + 300));
    // Of another organization, with other texts at the same numbers.
    let other = AuditLog::new(texts(&mut runner, BLOCK + 1));
    one.append(&fresh.database, 0).await;
    other.append(&fresh.database, 0).await;
    for blocks in [vec![], vec![0], vec![0, 0, 1]] {
        while indexed_blocks(&fresh.database).await.len() < blocks.len() {
            assert!(fresh.database.extend_search_index().await.unwrap());
        }
        assert_eq!(indexed_blocks(&fresh.database).await, blocks);
        // Without the counts of the round before.
        let db = fresh.open_again();
        for (number, term) in terms(&mut runner, &one.texts, 25).iter().enumerate() {
            let filter = searching(term);
            one.check(&db, &filter).await;
            let narrow = Filter { from: Some(at(3000)), to: Some(at(5000)), ..filter.clone() };
            one.check(&db, &narrow).await;
            if number.is_multiple_of(4) {
                one.check(&db, &filter).await;
                other.check(&db, &filter).await;
                one.check(&db, &Filter { action: Some(Action::Delete), ..filter }).await;
            }
        }
    }
    assert!(!fresh.database.extend_search_index().await.unwrap());
}

async fn entries_behind_the_index_are_found_at_once(db: Database) {
    let mut log = AuditLog::new(vec!["needle one".to_owned(); BLOCK]);
    log.append(&db, 0).await;
    index_all(&db).await;
    log.check(&db, &searching("needle")).await;
    for text in ["needle two", "hay", "NEEDLE three"] {
        let stored = log.texts.len();
        log.push(format!("{text} #{}", stored + 1));
        log.append(&db, stored).await;
        for term in ["needle", "eed", "needle t", "hay", "ne"] {
            log.check(&db, &searching(term)).await;
        }
    }
}
