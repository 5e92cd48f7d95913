//! Pages of search results.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use launchway_domain::page::PageRequest;

use super::{
    blocks::{ROWS, block_of, numbers_of, part_of},
    counts::{CountCache, CountKey, Counts},
    index::{Owner, rows_with},
    lower_case,
    trigrams::{Trigram, trigrams_of_term},
};
use crate::{connection::AnyConnection, error::QueryError};

/// A block with more candidates than these is scanned, which is cheaper than reading them one by one.
const MOST_CANDIDATES: usize = ROWS as usize / 32;
/// The candidates per statement.
const CANDIDATES_A_STATEMENT: usize = 2048;

/// The rows of a log that pass a filter.
pub(crate) trait Matches {
    /// A row.
    type Row;

    /// Returns the number of matches among the rows with these numbers.
    fn count(&self, connection: &mut AnyConnection, numbers: RangeInclusive<i64>) -> Result<i64, QueryError>;

    /// Returns those of the numbers whose rows match, in any order.
    fn among(&self, connection: &mut AnyConnection, numbers: &[i64]) -> Result<Vec<i64>, QueryError>;

    /// Returns the rows with these numbers, newest first. They are known to match.
    fn rows(&self, connection: &mut AnyConnection, numbers: &[i64]) -> Result<Vec<Self::Row>, QueryError>;

    /// Returns the matches in a range of numbers, newest first, `limit` of them after the first `offset`.
    fn newest(
        &self,
        connection: &mut AnyConnection,
        numbers: RangeInclusive<i64>,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<Self::Row>, QueryError>;
}

/// A search in one log.
pub(crate) struct Search<'a, M> {
    matches: &'a M,
    key: CountKey,
    cache: &'a CountCache,
    trigrams: Vec<Trigram>,
    /// True if all candidates match: the filter is one exact trigram.
    is_exact: bool,
}

impl<'a, M: Matches> Search<'a, M> {
    /// Returns a search for `term`. `filter` stands for everything that decides whether a row matches; if that is the
    /// term alone, `is_term_only` is true.
    pub(crate) fn new(
        matches: &'a M,
        owner: Owner,
        (filter, term, is_term_only): (String, &str, bool),
        cache: &'a CountCache,
    ) -> Self {
        let term = lower_case(term);
        let trigrams = trigrams_of_term(&term);
        let is_exact = is_term_only && term.chars().count() == 3 && trigrams.iter().all(|one| one.is_exact());
        Self { matches, key: (owner, filter), cache, trigrams, is_exact }
    }

    /// Returns a page of the matches in a range of numbers, newest first, and the number of all of them.
    pub(crate) fn page(
        &self,
        connection: &mut AnyConnection,
        range: &RangeInclusive<i64>,
        page: PageRequest,
    ) -> Result<(Vec<M::Row>, i64), QueryError> {
        if range.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let found = self.find(connection, range)?;
        let total = found.counts.values().sum();
        Ok((self.rows_of_page(connection, range, found, page)?, total))
    }

    fn find(&self, connection: &mut AnyConnection, range: &RangeInclusive<i64>) -> Result<Found, QueryError> {
        let is_whole = |block: i64| part_of(block, range) == numbers_of(block);
        let known = self.cache.get(&self.key);
        let mut found = Found::default();
        let mut unknown = Vec::new();
        for block in block_of(*range.start())..=block_of(*range.end()) {
            match known.get(&block).filter(|_| is_whole(block)) {
                Some(count) => drop(found.counts.insert(block, *count)),
                None => unknown.push(block),
            }
        }
        let mut few = self.look_up(connection, range, &unknown)?;
        for block in &unknown {
            if !few.contains_key(block) {
                let count = self.matches.count(connection, part_of(*block, range))?;
                found.counts.insert(*block, count);
            }
        }
        self.check(connection, &mut few)?;
        for (block, numbers) in few {
            found.counts.insert(block, i64::try_from(numbers.len()).unwrap_or(i64::MAX));
            found.numbers.insert(block, numbers);
        }
        let counted = unknown.iter().filter(|block| is_whole(**block));
        let counted: Counts = counted.filter_map(|block| Some((*block, *found.counts.get(block)?))).collect();
        self.cache.add(&self.key, counted);
        Ok(found)
    }

    /// Returns the candidates of the blocks that are indexed and have few of them.
    fn look_up(
        &self,
        connection: &mut AnyConnection,
        range: &RangeInclusive<i64>,
        blocks: &[i64],
    ) -> Result<Candidates, QueryError> {
        let mut few = Candidates::new();
        for (block, rows) in rows_with(connection, self.key.0, blocks, &self.trigrams)? {
            let first = *numbers_of(block).start();
            let numbers: Vec<i64> =
                rows.positions().map(|row| first + row).filter(|number| range.contains(number)).collect();
            if self.is_exact || numbers.len() <= MOST_CANDIDATES {
                few.insert(block, numbers);
            }
        }
        Ok(few)
    }

    /// Removes the candidates that do not match.
    fn check(&self, connection: &mut AnyConnection, few: &mut Candidates) -> Result<(), QueryError> {
        if self.is_exact {
            return Ok(());
        }
        let all: Vec<i64> = few.values().flatten().copied().collect();
        let mut matching = BTreeSet::new();
        for numbers in all.chunks(CANDIDATES_A_STATEMENT) {
            matching.extend(self.matches.among(connection, numbers)?);
        }
        for numbers in few.values_mut() {
            numbers.retain(|number| matching.contains(number));
        }
        Ok(())
    }

    fn rows_of_page(
        &self,
        connection: &mut AnyConnection,
        range: &RangeInclusive<i64>,
        mut found: Found,
        page: PageRequest,
    ) -> Result<Vec<M::Row>, QueryError> {
        let parts = parts(&found.counts, page);
        let mut unread: Vec<i64> = Vec::new();
        for part in &parts {
            let has_few = usize::try_from(part.count).is_ok_and(|count| count <= MOST_CANDIDATES);
            if has_few && !found.numbers.contains_key(&part.block) {
                unread.push(part.block);
            }
        }
        let mut few = self.look_up(connection, range, &unread)?;
        self.check(connection, &mut few)?;
        found.numbers.extend(few);
        let mut rows = Vec::new();
        // Matches of neighbouring blocks are read by one statement.
        let mut numbers = Vec::new();
        for part in parts {
            match found.numbers.get(&part.block) {
                Some(all) => {
                    let newest_first = all.iter().rev().copied();
                    numbers.extend(newest_first.skip(size(part.offset)).take(size(part.limit)));
                }
                None => {
                    rows.extend(self.read(connection, &mut numbers)?);
                    let of_block = part_of(part.block, range);
                    rows.extend(self.matches.newest(connection, of_block, part.limit, part.offset)?);
                }
            }
        }
        rows.extend(self.read(connection, &mut numbers)?);
        Ok(rows)
    }

    fn read(
        &self,
        connection: &mut AnyConnection,
        numbers: &mut Vec<i64>,
    ) -> Result<Vec<M::Row>, QueryError> {
        match std::mem::take(numbers) {
            none if none.is_empty() => Ok(Vec::new()),
            numbers => self.matches.rows(connection, &numbers),
        }
    }
}

/// Numbers by block, in rising order.
type Candidates = BTreeMap<i64, Vec<i64>>;

/// The matches of each block of a range.
#[derive(Default)]
struct Found {
    counts: Counts,
    /// The numbers of the matches, of those blocks that had to be looked up.
    numbers: Candidates,
}

/// The part of a page that is in one block.
struct Part {
    block: i64,
    count: i64,
    offset: i64,
    limit: i64,
}

/// Returns the blocks that a page has rows of, newest first.
fn parts(counts: &Counts, page: PageRequest) -> Vec<Part> {
    let (mut skipped, mut left) = (page.offset(), page.size());
    let mut parts = Vec::new();
    for (&block, &count) in counts.iter().rev() {
        if count <= skipped {
            skipped -= count;
            continue;
        }
        let limit = (count - skipped).min(left);
        parts.push(Part { block, count, offset: skipped, limit });
        (skipped, left) = (0, left - limit);
        if left == 0 {
            break;
        }
    }
    parts
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_blocks_of_its_rows_newest_first() {
        let counts = Counts::from([(0, 5), (1, 0), (2, 3), (3, 4)]);
        for (number, size, expected) in [
            (1, 2, vec![(3, 0, 2)]),
            (2, 3, vec![(3, 3, 1), (2, 0, 2)]),
            (1, 12, vec![(3, 0, 4), (2, 0, 3), (0, 0, 5)]),
            (3, 5, vec![(0, 3, 2)]),
            (4, 4, vec![]),
            (i64::MAX, 100, vec![]),
        ] {
            let parts = parts(&counts, PageRequest::new(number, size, 100).unwrap());
            let parts: Vec<_> = parts.iter().map(|part| (part.block, part.offset, part.limit)).collect();
            assert_eq!(parts, expected, "page {number} of {size}");
        }
    }
}
