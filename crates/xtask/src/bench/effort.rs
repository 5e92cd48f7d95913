//! The length of measurements: as long as needed for stable figures, or only a smoke test.

/// The length of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Whole,
    /// Short rounds, whose figures are meaningless.
    Quick,
}

impl Effort {
    /// Returns the number of rounds.
    pub(crate) fn rounds(self, whole: u32) -> u32 {
        self.amount(whole, whole.min(2))
    }

    /// Returns the number of seconds, requests or rows of one round.
    pub(crate) fn amount(self, whole: u32, quick: u32) -> u32 {
        match self {
            Self::Whole => whole,
            Self::Quick => quick,
        }
    }
}
