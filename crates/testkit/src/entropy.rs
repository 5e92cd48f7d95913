//! Predictable randomness.

use std::{
    array,
    sync::atomic::{AtomicU64, Ordering},
};

use launchway_domain::secret::Entropy;

/// Returns the bits [`nth(1)`](CountingEntropy::nth), `nth(2)`, `nth(3)` and so on.
#[derive(Debug, Default)]
pub struct CountingEntropy {
    given: AtomicU64,
}

impl CountingEntropy {
    /// Returns the bits of call number `n`, counted from 1: `n` over and over, so that the first eight
    /// bytes distinguish any two.
    #[must_use]
    pub fn nth(n: u64) -> [u8; 32] {
        let bytes = n.to_be_bytes();
        array::from_fn(|index| bytes[index % bytes.len()])
    }
}

impl Entropy for CountingEntropy {
    fn bits_256(&self) -> [u8; 32] {
        Self::nth(self.given.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_and_differ_in_their_first_eight_bytes() {
        let entropy = CountingEntropy::default();
        let given = [entropy.bits_256(), entropy.bits_256()];
        assert_eq!(given, [1, 2].map(CountingEntropy::nth));
        assert_eq!(given[1][..16], [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2]);
    }
}
