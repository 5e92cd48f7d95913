//! How long is measured: as long as figures need to be stable, or just to see that it works.

/// How much time measurements may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Whole,
    /// Short rounds, whose figures prove nothing.
    Quick,
}

impl Effort {
    /// How many rounds are measured.
    pub(crate) fn rounds(self, whole: u32) -> u32 {
        match self {
            Self::Whole => whole,
            Self::Quick => whole.min(2),
        }
    }

    /// How many seconds, requests or rows belong to one round.
    pub(crate) fn amount(self, whole: u32, quick: u32) -> u32 {
        match self {
            Self::Whole => whole,
            Self::Quick => quick,
        }
    }
}
