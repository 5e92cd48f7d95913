//! Searches with an index give the answers of a scan.

mod audit;
mod index;
mod logs;

use std::fmt::Debug;

use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::BigInt};
use launchway_database::{AnyConnection, Database};
use launchway_domain::{
    logs::{LogFilter, LogReader, NewLine},
    page::{Page, PageRequest},
};
use launchway_testkit::builders::a_log_line;
use proptest::{
    collection::vec,
    prelude::{Strategy, any},
    sample::{Index, select},
    strategy::ValueTree as _,
    test_runner::TestRunner,
};

/// The rows of a block.
pub(crate) const BLOCK: usize = 4096;

/// Words that other searches give a meaning, and characters whose cases differ in length.
const WORDS: [&str; 16] = [
    "theme-9",
    "AND",
    "OR",
    "NEAR(",
    "\"",
    "*",
    "^",
    "%",
    "_",
    "\\",
    "'; --",
    "Straße",
    "İstanbul",
    "ΟΔΟΣ",
    "🚀",
    "K",
];

/// Returns texts with many parts in common.
fn texts(runner: &mut TestRunner, count: usize) -> Vec<String> {
    let word = proptest::prop_oneof![
        2 => select(WORDS.as_slice()).prop_map(str::to_owned),
        5 => "[abAB%_ä\"-]{0,6}",
        1 => "[a-zA-ZÄÖÜß0-9]{1,10}",
    ];
    vec(vec(word, 0..5).prop_map(|words| words.concat()), count).new_tree(runner).unwrap().current()
}

/// Returns terms of all lengths: parts of texts, also in the other case, and some that occur nowhere.
fn terms(runner: &mut TestRunner, texts: &[String], count: usize) -> Vec<String> {
    let part = (any::<Index>(), any::<Index>(), 1..8_usize, 0..3).prop_map(|(text, start, length, case)| {
        let characters: Vec<char> = text.get(texts).chars().collect();
        if characters.is_empty() {
            return "nowhere".to_owned();
        }
        let part: String = characters.iter().skip(start.index(characters.len())).take(length).collect();
        match case {
            0 => part,
            1 => part.to_uppercase(),
            _ => part.to_lowercase(),
        }
    });
    let mut terms = vec(part, count).new_tree(runner).unwrap().current();
    terms.extend(WORDS.map(str::to_owned));
    terms.extend(["", "a", "ab", "aba", "abab", "zzz", "a%b", "a_b"].map(str::to_owned));
    terms
}

fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Checks the first pages, one in the middle, the last one and the one behind it.
async fn assert_pages<T: PartialEq + Debug>(
    expected: &[T],
    about: &str,
    read: impl AsyncFn(PageRequest) -> Page<T>,
) {
    let (size, length) = (10, i64::try_from(expected.len()).unwrap());
    let last = length.div_euclid(size) + 1;
    for number in [1, 2, last / 2 + 1, last, last + 1] {
        let page = read(PageRequest::new(number, size, 100).unwrap()).await;
        assert_eq!(page.total, length, "the total of {about}");
        let rows = expected.chunks(10).nth(usize::try_from(number).unwrap() - 1).unwrap_or_default();
        assert_eq!(page.items, rows, "page {number} of {about}");
    }
}

/// Indexes everything that can be indexed.
pub(crate) async fn index_all(db: &Database) {
    while db.extend_search_index().await.unwrap() {}
}

#[derive(QueryableByName)]
struct Block {
    #[diesel(sql_type = BigInt)]
    block: i64,
}

/// Returns the indexed blocks of all logs, in order.
pub(crate) async fn indexed_blocks(db: &Database) -> Vec<i64> {
    blocks(db, "SELECT block FROM search_postings WHERE bucket = -1 ORDER BY block").await
}

/// Returns the blocks that anything is stored about, in order.
async fn stored_blocks(db: &Database) -> Vec<i64> {
    blocks(db, "SELECT DISTINCT block FROM search_postings ORDER BY block").await
}

async fn blocks(db: &Database, query: &'static str) -> Vec<i64> {
    let read = move |connection: &mut AnyConnection| {
        let rows: Vec<Block> = match connection {
            AnyConnection::Sqlite(sqlite) => sql_query(query).load(sqlite)?,
            AnyConnection::Postgres(postgres) => sql_query(query).load(postgres)?,
        };
        Ok(rows.into_iter().map(|row| row.block).collect())
    };
    db.read(read).await.unwrap()
}

/// Lines of a deployment with these texts.
pub(crate) fn saying(
    deployment: &launchway_domain::deployments::Deployment,
    texts: impl IntoIterator<Item = String>,
) -> Vec<NewLine> {
    texts.into_iter().map(|text| a_log_line().of(deployment).saying(&text).new_line()).collect()
}

/// Returns how many lines of an application contain a term.
pub(crate) async fn count_lines(
    db: &Database,
    application: &launchway_domain::applications::Application,
    term: &str,
) -> i64 {
    let scope = launchway_domain::organizations::Scope::of_record(application.organization_id);
    let filter = LogFilter { search: Some(term.to_owned()), ..LogFilter::default() };
    let page = PageRequest::new(1, 10, 10).unwrap();
    LogReader::page(db, scope, application.id, &filter, page).await.unwrap().unwrap().total
}
