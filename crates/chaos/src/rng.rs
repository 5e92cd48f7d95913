//! Reproducible randomness: the same seed yields the same numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A pseudo-random number generator (xorshift64*).
#[derive(Debug, Clone)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    pub(crate) fn seeded(seed: u64) -> Self {
        // Small seeds differ in few bits; the first numbers should differ in many.
        let mut rng = Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 };
        for _ in 0..8 {
            rng.next();
        }
        rng
    }

    /// A generator with a new seed each time.
    pub(crate) fn fresh() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::seeded(now.subsec_nanos().into())
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or_default() % end
    }

    /// Returns true in `percent` of all cases.
    pub(crate) fn is_hit(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a duration of `from` to `to` milliseconds.
    pub(crate) fn millis(&mut self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut rng = Rng::seeded(seed);
            [(); 20].map(|()| rng.below(1000))
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn numbers_stay_below_their_end_and_reach_everything() {
        let mut rng = Rng::seeded(7);
        let mut hits = [0; 10];
        for _ in 0..10_000 {
            hits[rng.below(10)] += 1;
        }
        assert!(hits.iter().all(|hits| (800..1200).contains(hits)), "{hits:?}");
    }
}
