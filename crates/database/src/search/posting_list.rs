//! The rows of a block that contain a trigram, as bytes.
//!
//! A bucket is a sequence of entries: the trigram (4 bytes), the length of the rest (2 bytes), the encoding (1 byte),
//! and the rows in that encoding, whichever is the shortest.

use crate::error::QueryError;

use super::{
    blocks::ROWS,
    trigrams::{BUCKETS, Trigram, trigrams},
};

const WORDS: usize = ROWS as usize / 64;
const HEAD: usize = 6;

/// The gaps before each row of the set, as numbers of variable length.
const GAPS: u8 = 0;
/// The same of the rows that are not in the set.
const GAPS_OF_OTHERS: u8 = 1;
/// One bit for each row.
const BITS: u8 = 2;

/// A set of rows of a block, by their positions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rows([u64; WORDS]);

impl Rows {
    pub(super) const NONE: Self = Self([0; WORDS]);

    fn insert(&mut self, position: usize) -> Result<(), QueryError> {
        let word = self.0.get_mut(position / 64).ok_or_else(|| malformed("a row is not of the block"))?;
        *word |= 1 << (position % 64);
        Ok(())
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= other;
        }
    }

    fn complement(&self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// Returns the positions of the rows, in rising order.
    pub(super) fn positions(&self) -> impl Iterator<Item = i64> {
        (0_i64..).zip(self.0).flat_map(|(index, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| i64::from(word.trailing_zeros()))?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
        })
    }

    fn encode(&self) -> Vec<u8> {
        let bits = || self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let encodings = [(GAPS, gaps(self)), (GAPS_OF_OTHERS, gaps(&self.complement())), (BITS, bits())];
        let (encoding, bytes) =
            encodings.into_iter().min_by_key(|(_, bytes)| bytes.len()).unwrap_or_default();
        [vec![encoding], bytes].concat()
    }

    fn decode(bytes: &[u8]) -> Result<Self, QueryError> {
        match bytes.split_first() {
            Some((&GAPS, gaps)) => from_gaps(gaps),
            Some((&GAPS_OF_OTHERS, gaps)) => Ok(from_gaps(gaps)?.complement()),
            Some((&BITS, bits)) if bits.len() == WORDS * 8 => {
                let mut words = [0; WORDS];
                for (word, bytes) in words.iter_mut().zip(bits.as_chunks::<8>().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
                Ok(Self(words))
            }
            _ => Err(malformed("its rows have no known encoding")),
        }
    }
}

fn malformed(reason: &'static str) -> QueryError {
    QueryError::unreadable(format!("the search index is malformed: {reason}"))
}

fn gaps(rows: &Rows) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut next = 0;
    for position in rows.positions() {
        let gap = position - next;
        // A gap is shorter than a block, so that two bytes are enough.
        if gap >= 128 {
            bytes.push((gap % 128) as u8 | 128);
            bytes.push((gap / 128) as u8);
        } else {
            bytes.push(gap as u8);
        }
        next = position + 1;
    }
    bytes
}

fn from_gaps(bytes: &[u8]) -> Result<Rows, QueryError> {
    let (mut rows, mut next, mut bytes) = (Rows::NONE, 0, bytes.iter().copied().map(usize::from));
    while let Some(low) = bytes.next() {
        let gap = match low {
            128.. => low - 128 + 128 * bytes.next().ok_or_else(|| malformed("a number is cut off"))?,
            _ => low,
        };
        rows.insert(next + gap)?;
        next += gap + 1;
    }
    Ok(rows)
}

/// Collects the trigrams of the texts of a block.
#[derive(Default)]
pub(super) struct Builder {
    /// A trigram and a position each, in one number, which takes less memory than a map.
    found: Vec<u64>,
}

impl Builder {
    /// Adds the text of the row at `position`.
    pub(super) fn add(&mut self, position: i64, text: &str) {
        let position = position.cast_unsigned();
        self.found.extend(trigrams(text).map(|trigram| u64::from(trigram.0) << 32 | position));
    }

    /// Returns the buckets that are not empty.
    pub(super) fn finish(mut self) -> Result<Vec<(u16, Vec<u8>)>, QueryError> {
        self.found.sort_unstable();
        let mut buckets = vec![Vec::new(); usize::from(BUCKETS)];
        for group in self.found.chunk_by(|one, next| one >> 32 == next >> 32) {
            let Some(trigram) = group.first().map(|found| Trigram((found >> 32) as u32)) else { continue };
            let mut rows = Rows::NONE;
            for found in group {
                rows.insert((found & u64::from(u32::MAX)) as usize)?;
            }
            let bytes = rows.encode();
            let bucket: &mut Vec<u8> = &mut buckets[usize::from(trigram.bucket())];
            bucket.extend(trigram.0.to_le_bytes());
            bucket.extend((bytes.len() as u16).to_le_bytes());
            bucket.extend(bytes);
        }
        let buckets = (0..).zip(buckets).filter(|(_, bytes)| !bytes.is_empty());
        Ok(buckets.collect())
    }
}

/// Returns the rows of a trigram in a bucket.
pub(super) fn rows_of(trigram: Trigram, mut bucket: &[u8]) -> Result<Rows, QueryError> {
    while let Some((head, rest)) = bucket.split_at_checked(HEAD) {
        let (key, length) = match *head {
            [a, b, c, d, e, f] => (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f])),
            _ => break,
        };
        let (bytes, others) =
            rest.split_at_checked(usize::from(length)).ok_or_else(|| malformed("an entry is cut off"))?;
        if key == trigram.0 {
            return Rows::decode(bytes);
        }
        bucket = others;
    }
    if bucket.is_empty() { Ok(Rows::NONE) } else { Err(malformed("a head is cut off")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::trigrams::trigrams_of_term;

    fn rows(positions: impl IntoIterator<Item = usize>) -> Rows {
        let mut rows = Rows::NONE;
        for position in positions {
            rows.insert(position).unwrap();
        }
        rows
    }

    #[test]
    fn the_shortest_encoding_is_chosen() {
        let block = ROWS as usize;
        for (rows, encoding, length) in [
            (rows([]), GAPS, 1),
            (rows([0, 127, 255, 4095]), GAPS, 6),
            (rows(0..block), GAPS_OF_OTHERS, 1),
            (rows((0..block).filter(|position| position % 1000 != 0)), GAPS_OF_OTHERS, 10),
            (rows((0..block).step_by(2)), BITS, 513),
        ] {
            let bytes = rows.encode();
            assert_eq!((bytes[0], bytes.len()), (encoding, length));
            assert_eq!(Rows::decode(&bytes).unwrap(), rows);
        }
    }

    #[test]
    fn malformed_bytes_are_an_error() {
        for bytes in [[].as_slice(), &[3], &[BITS, 1], &[GAPS, 200], &[GAPS, 255, 255]] {
            assert!(Rows::decode(bytes).is_err(), "{bytes:?}");
        }
        let abc = trigrams_of_term("abc")[0];
        for bucket in [&[1, 2, 3][..], &[1, 0, 0, 0, 2, 0, 0]] {
            assert!(rows_of(abc, bucket).is_err(), "{bucket:?}");
        }
    }

    proptest! {
        #[test]
        fn every_set_survives_its_encoding(positions in prop::collection::vec(0..ROWS as usize, 0..600)) {
            let rows = rows(positions);
            prop_assert_eq!(Rows::decode(&rows.encode()).unwrap(), rows.clone());
            prop_assert_eq!(Rows::decode(&rows.complement().encode()).unwrap(), rows.complement());
        }

        #[test]
        fn each_trigram_has_the_rows_that_contain_it(texts in prop::collection::vec("[abä%]{0,12}", 1..40)) {
            let mut builder = Builder::default();
            for (position, text) in (0..).zip(&texts) {
                builder.add(position, text);
            }
            let buckets = builder.finish().unwrap();
            for term in ["aaa", "aba", "b%ä", "äää", "xyz"] {
                let trigram = trigrams_of_term(term)[0];
                let bucket = buckets.iter().find(|(bucket, _)| *bucket == trigram.bucket());
                let found = rows_of(trigram, bucket.map_or(&[], |(_, bytes)| bytes)).unwrap();
                let expected = texts.iter().enumerate().filter(|(_, text)| text.contains(term));
                prop_assert_eq!(found, rows(expected.map(|(position, _)| position)), "{}", term);
            }
        }
    }
}
