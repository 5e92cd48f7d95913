//! A table of records with transactions.

use std::{collections::BTreeMap, ops::RangeBounds};

/// Records by their keys. It keeps the previous values of the rows that the current transaction touched, so
/// that a transaction can be undone, and costs what it touches.
#[derive(Debug, Clone)]
pub(super) struct Table<K, V> {
    rows: BTreeMap<K, V>,
    before: BTreeMap<K, Option<V>>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), before: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> Table<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.rows.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.rows.values()
    }

    pub(super) fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.rows.keys()
    }

    pub(super) fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.range(range)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let row = self.rows.get_mut(key)?;
        self.before.entry(key.clone()).or_insert_with(|| Some(row.clone()));
        Some(row)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        let previous = self.rows.insert(key.clone(), value);
        self.before.entry(key).or_insert(previous);
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let previous = self.rows.remove(key)?;
        self.before.entry(key.clone()).or_insert_with(|| Some(previous.clone()));
        Some(previous)
    }

    /// Returns the rows that the transaction changed, with their new values; `None` for a removed one.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&K, Option<&V>)> {
        let now = self.before.iter().map(|(key, before)| (key, before, self.rows.get(key)));
        now.filter(|(_, before, now)| before.as_ref() != *now).map(|(key, _, now)| (key, now))
    }

    /// Ends the transaction and keeps its changes.
    pub(super) fn keep(&mut self) {
        self.before.clear();
    }

    /// Ends the transaction and takes its changes back.
    pub(super) fn undo(&mut self) {
        for (key, before) in std::mem::take(&mut self.before) {
            match before {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Table<u8, &'static str> {
        let mut table = Table::default();
        table.insert(1, "one");
        table.insert(2, "two");
        table.keep();
        table
    }

    fn changes(table: &Table<u8, &'static str>) -> Vec<(u8, Option<&'static str>)> {
        table.changes().map(|(key, now)| (*key, now.copied())).collect()
    }

    #[test]
    fn a_transaction_lists_what_it_changed() {
        let mut table = kept();
        *table.get_mut(&1).unwrap() = "eins";
        table.remove(&2);
        table.insert(3, "three");
        assert_eq!(changes(&table), [(1, Some("eins")), (2, None), (3, Some("three"))]);
        table.keep();
        assert_eq!(changes(&table), []);
    }

    #[test]
    fn a_change_that_was_taken_back_is_none() {
        let mut table = kept();
        table.insert(3, "three");
        table.remove(&3);
        let old = table.remove(&1).unwrap();
        table.insert(1, old);
        table.get_mut(&2);
        assert_eq!(changes(&table), []);
    }

    #[test]
    fn an_undone_transaction_leaves_the_table_as_it_was() {
        let mut table = kept();
        *table.get_mut(&1).unwrap() = "eins";
        *table.get_mut(&1).unwrap() = "un";
        table.remove(&2);
        table.insert(2, "zwei");
        table.insert(3, "three");
        table.undo();
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&1, &"one"), (&2, &"two")]);
        assert_eq!(changes(&table), []);
    }
}
