//! Searches in logs of applications.

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    deployments::Deployment,
    logs::{Level, LogFilter, LogLine, LogReader, LogSink as _},
    organizations::Scope,
    page::Page,
};
use launchway_testkit::builders::{LogLineBuilder, a_log_line};
use proptest::test_runner::TestRunner;

use super::{BLOCK, assert_pages, count_lines, index_all, indexed_blocks, lower_case, saying, stored_blocks};
use crate::{
    applications::stored,
    builders::{Resident, at},
    deployments::deploy,
    fresh::Fresh,
    logs::append,
};

contract!(
    log_searches_equal_scans_however_far_the_index_is,
    a_search_never_finds_lines_of_another_application,
    the_index_is_trimmed_with_the_log,
    trimming_while_a_block_is_indexed_is_safe,
);

/// The lines of an application, as they were appended and not deleted yet.
struct Log {
    application: Application,
    lines: Vec<LogLine>,
    /// Their texts in lower case.
    searched: Vec<String>,
}

impl Log {
    /// Two deployments take turns of different lengths.
    async fn of(db: &Database, texts: &[String]) -> Self {
        let application = stored(db, &Resident::of(db, "ada").await, "web").await;
        let deployments = [deploy(db, &application, 1).await, deploy(db, &application, 2).await];
        let mut log = Self { application, lines: Vec::new(), searched: Vec::new() };
        log.append(db, &deployments, texts).await;
        log
    }

    async fn append(&mut self, db: &Database, deployments: &[Deployment; 2], texts: &[String]) {
        let first = self.lines.last().map_or(1, |line| line.number + 1);
        let line = |(number, text): (i64, &String)| {
            let level = if number % 3 == 0 { Level::Error } else { Level::Info };
            let deployment = &deployments[usize::from(number % 700 < 200)];
            a_log_line().of(deployment).numbered(number).at_level(level).saying(text).at(at(number))
        };
        let lines: Vec<_> = (first..).zip(texts).map(line).collect();
        for batch in lines.chunks(1000) {
            append(db, batch.iter().map(|line| line.clone().new_line()).collect()).await;
        }
        self.searched.extend(texts.iter().map(|text| lower_case(text)));
        self.lines.extend(lines.into_iter().map(LogLineBuilder::build));
    }

    fn trim(&mut self, keep: usize) {
        self.searched.drain(..self.lines.len() - keep);
        self.lines.drain(..self.lines.len() - keep);
    }

    /// Compares a search with a scan of the texts.
    async fn check(&self, db: &Database, filter: &LogFilter) {
        let term = lower_case(filter.search.as_deref().unwrap());
        let passes = |(line, searched): &(&LogLine, &String)| {
            searched.contains(&term)
                && filter.level.is_none_or(|level| line.level == level)
                && filter.deployment.is_none_or(|deployment| line.deployment_id == deployment)
                && filter.from.is_none_or(|from| line.at >= from)
                && filter.to.is_none_or(|to| line.at <= to)
        };
        let expected: Vec<LogLine> = self
            .lines
            .iter()
            .zip(&self.searched)
            .rev()
            .filter(passes)
            .map(|(line, _)| line.clone())
            .collect();
        let scope = Scope::of_record(self.application.organization_id);
        assert_pages(&expected, &format!("{filter:?}"), async |request| -> Page<LogLine> {
            LogReader::page(db, scope, self.application.id, filter, request).await.unwrap().unwrap()
        })
        .await;
    }

    async fn check_all(&self, db: &Database, terms: &[String]) {
        for (number, term) in terms.iter().enumerate() {
            let filter = searching(term);
            self.check(db, &filter).await;
            let deployment = self.lines.get(1000).map(|line| line.deployment_id);
            let narrow = match number % 4 {
                0 => LogFilter { level: Some(Level::Error), ..filter },
                1 => LogFilter { deployment, ..filter },
                2 => LogFilter { from: Some(at(4000)), to: Some(at(4200)), ..filter },
                _ => filter,
            };
            self.check(db, &narrow).await;
        }
    }
}

fn searching(term: &str) -> LogFilter {
    LogFilter { search: Some(term.to_owned()), ..LogFilter::default() }
}

async fn log_searches_equal_scans_however_far_the_index_is(fresh: &Fresh) {
    let mut runner = TestRunner::deterministic();
    let texts = super::texts(&mut runner, 2 * BLOCK + 300);
    let mut log = Log::of(&fresh.database, &texts).await;
    for blocks in [vec![], vec![0], vec![0, 1]] {
        while indexed_blocks(&fresh.database).await.len() < blocks.len() {
            assert!(fresh.database.extend_search_index().await.unwrap());
        }
        assert_eq!(indexed_blocks(&fresh.database).await, blocks);
        log.check_all(&fresh.open_again(), &super::terms(&mut runner, &texts, 25)).await;
    }
    // The counts that are cached before lines are deleted do not outlive them.
    let terms = super::terms(&mut runner, &texts, 25);
    log.check_all(&fresh.database, &terms).await;
    for keep in [2 * BLOCK - 1, BLOCK + 300, BLOCK + 299, 100] {
        fresh.database.trim(i64::try_from(keep).unwrap()).await.unwrap();
        log.trim(keep);
        log.check_all(&fresh.database, &terms).await;
    }
}

async fn a_search_never_finds_lines_of_another_application(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (web, other) = (stored(&db, &ada, "web").await, stored(&db, &ada, "other").await);
    let deployments = [deploy(&db, &web, 1).await, deploy(&db, &other, 2).await];
    for (deployment, word) in deployments.iter().zip(["apple", "orange"]) {
        append(&db, saying(deployment, (0..BLOCK).map(|number| format!("{word} {number}")))).await;
    }
    index_all(&db).await;
    assert_eq!(indexed_blocks(&db).await, [0, 0]);
    for _ in 0..2 {
        assert_eq!(count_lines(&db, &web, "apple").await, 4096);
        assert_eq!(count_lines(&db, &web, "orange").await, 0);
        assert_eq!(count_lines(&db, &other, "orange 4095").await, 1);
        assert_eq!(count_lines(&db, &other, "apple 4095").await, 0);
    }
}

async fn the_index_is_trimmed_with_the_log(db: Database) {
    let texts: Vec<String> = (1..=3 * BLOCK).map(|number| format!("line {number}")).collect();
    let mut log = Log::of(&db, &texts).await;
    index_all(&db).await;
    assert_eq!(stored_blocks(&db).await, [0, 1, 2]);
    // One line of a block is enough: nothing about it may stay.
    for (keep, blocks) in [
        (3 * BLOCK, vec![0, 1, 2]),
        (3 * BLOCK - 1, vec![1, 2]),
        (2 * BLOCK, vec![1, 2]),
        (2 * BLOCK - 1, vec![2]),
        (BLOCK, vec![2]),
        (1, vec![]),
    ] {
        db.trim(i64::try_from(keep).unwrap()).await.unwrap();
        log.trim(keep);
        assert_eq!(stored_blocks(&db).await, blocks, "{keep}");
        log.check(&db, &searching("line 1")).await;
        log.check(&db, &searching("8191")).await;
    }
    // It goes on behind what was deleted.
    assert!(!db.extend_search_index().await.unwrap());
    let again: Vec<String> = texts.iter().take(BLOCK).map(|text| format!("{text} again")).collect();
    let deployments = [deploy(&db, &log.application, 3).await, deploy(&db, &log.application, 4).await];
    log.append(&db, &deployments, &again).await;
    index_all(&db).await;
    assert_eq!(stored_blocks(&db).await, [3]);
    log.check(&db, &searching("line 77 again")).await;
    log.check(&db, &searching("line")).await;
}

async fn trimming_while_a_block_is_indexed_is_safe(fresh: &Fresh) {
    let texts: Vec<String> = (1..=4 * BLOCK).map(|number| format!("line {number}")).collect();
    let mut log = Log::of(&fresh.database, &texts).await;
    let (indexer, trimmer) = (fresh.database.clone(), fresh.database.clone());
    let index = async { index_all(&indexer).await };
    let trim = async {
        for step in 1..=12 {
            trimmer.trim(i64::try_from(4 * BLOCK - step * 1000).unwrap()).await.unwrap();
        }
    };
    tokio::join!(index, trim);
    index_all(&fresh.database).await;
    log.trim(4 * BLOCK - 12_000);
    // 12,000 lines are the first two blocks and a part of the third.
    assert_eq!(stored_blocks(&fresh.database).await, [3]);
    for term in ["line 16", "line 13", "nowhere", "line"] {
        log.check(&fresh.open_again(), &searching(term)).await;
    }
}
