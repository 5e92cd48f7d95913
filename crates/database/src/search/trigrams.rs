//! Trigrams: three characters in a row.

/// The most trigrams of a term that are looked up. Further ones of a long term would exclude few further rows.
const MOST: usize = 8;
const NOT_ASCII: u32 = 1 << 31;

/// A trigram in 32 bits: the characters themselves if they are ASCII, otherwise a hash of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Trigram(pub(super) u32);

impl Trigram {
    fn new(characters: [char; 3]) -> Self {
        let [first, second, third] = characters.map(u32::from);
        if characters.iter().all(char::is_ascii) {
            return Self(first << 14 | second << 7 | third);
        }
        let packed = u64::from(first) << 42 | u64::from(second) << 21 | u64::from(third);
        Self(NOT_ASCII | (mix(packed) >> 33) as u32)
    }

    /// Returns whether no other trigram has the same value.
    pub(super) fn is_exact(self) -> bool {
        self.0 & NOT_ASCII == 0
    }

    /// Returns the bucket that has the rows of this trigram.
    pub(super) fn bucket(self) -> u16 {
        (mix(u64::from(self.0)) >> (64 - BUCKETS.ilog2())) as u16
    }
}

/// The buckets of a block.
pub(super) const BUCKETS: u16 = 512;

/// Fibonacci hashing: the upper bits depend on all bits of the value.
fn mix(value: u64) -> u64 {
    value.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the trigrams of a text, some of them perhaps several times.
pub(super) fn trigrams(text: &str) -> impl Iterator<Item = Trigram> {
    let mut last = ['\0'; 3];
    let shifted = text.chars().map(move |character| {
        last = [last[1], last[2], character];
        last
    });
    shifted.skip(2).map(Trigram::new)
}

/// Returns the trigrams by which a term is looked up; none if it is shorter than three characters.
pub(super) fn trigrams_of_term(term: &str) -> Vec<Trigram> {
    let all: Vec<Trigram> = trigrams(term).collect();
    let count = all.len();
    let mut chosen = match count {
        0..=MOST => all,
        _ => (0..MOST).map(|index| all[index * (count - 1) / (MOST - 1)]).collect(),
    };
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<u32> {
        trigrams(text).map(|trigram| trigram.0).collect()
    }

    #[test]
    fn a_text_has_a_trigram_from_each_of_its_characters_but_two() {
        for (text, count) in [("", 0), ("ab", 0), ("abc", 1), ("abcd", 2), ("äöüß", 2), ("aaaa", 2)] {
            assert_eq!(values(text).len(), count, "{text}");
        }
        assert_eq!(values("xabcx")[1], values("abc")[0]);
        assert_ne!(values("abc"), values("acb"));
        assert_ne!(values("äbc"), values("abc"));
    }

    #[test]
    fn only_ascii_trigrams_are_exact() {
        assert!(trigrams("a%\n").all(Trigram::is_exact));
        assert!(!trigrams("aäb").any(Trigram::is_exact));
    }

    #[test]
    fn a_term_has_few_trigrams_from_both_its_ends() {
        assert_eq!(trigrams_of_term("ab"), []);
        assert_eq!(trigrams_of_term("aaaaaa").len(), 1);
        assert_eq!(trigrams_of_term("0123456789").len(), MOST);
        let long: String = ('a'..='z').collect();
        let chosen = trigrams_of_term(&long);
        assert_eq!(chosen.len(), MOST);
        for end in ["abc", "xyz"] {
            assert!(chosen.contains(&trigrams(end).next().unwrap()), "{end}");
        }
    }

    #[test]
    fn buckets_are_used_evenly() {
        let mut used = vec![0; usize::from(BUCKETS)];
        for first in 'a'..='z' {
            for second in 'a'..='z' {
                for third in 'a'..='z' {
                    used[usize::from(Trigram::new([first, second, third]).bucket())] += 1;
                }
            }
        }
        let mean = 26 * 26 * 26 / used.len();
        assert!(used.iter().all(|count| *count < 3 * mean), "{:?}", used.iter().max());
    }
}
