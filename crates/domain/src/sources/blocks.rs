//! Blocks: the content of uploaded files, by its digest.

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;

use crate::value::InvalidValue;

/// The digest of a block: the SHA-256 of its content, written as 64 hexadecimal digits.
///
/// ```
/// use launchway_domain::sources::BlockId;
///
/// let digits = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
/// let id: BlockId = digits.parse().unwrap();
/// assert_eq!(id.to_string(), digits);
/// assert!("2c26".parse::<BlockId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub [u8; 32]);

#[cfg(feature = "hashes")]
impl BlockId {
    /// Returns the digest of `content`.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        use sha2::{Digest as _, Sha256};
        Self(Sha256::digest(content).into())
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlockId {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        let bytes = HEXLOWER.decode(raw.as_bytes()).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| InvalidValue::text("64 hexadecimal digits", raw))
    }
}

impl TryFrom<String> for BlockId {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        raw.parse()
    }
}

/// The digests that a client asks about in one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockIds(Vec<BlockId>);

impl BlockIds {
    /// The most digests in one request.
    pub const MOST: usize = 4096;

    /// Returns the digests.
    #[must_use]
    pub fn into_vec(self) -> Vec<BlockId> {
        self.0
    }
}

impl TryFrom<Vec<String>> for BlockIds {
    type Error = InvalidValue;

    fn try_from(raw: Vec<String>) -> Result<Self, InvalidValue> {
        if raw.is_empty() || raw.len() > Self::MOST {
            return Err(InvalidValue::number("1 to 4096 digests", raw.len()));
        }
        raw.iter().map(|one| one.parse()).collect::<Result<_, _>>().map(Self)
    }
}

/// The limits of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLimits;

impl BlockLimits {
    /// The most bytes of a block. A larger file has several.
    pub const BLOCK: usize = 1024 * 1024;
    /// The most bytes of the blocks of one part, which a client sends at once.
    pub const PART: u64 = 16 * 1024 * 1024;
    /// The most blocks of a part.
    pub const PART_BLOCKS: usize = 20_000;
}

/// The result of a part that was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPart {
    /// The number of its blocks.
    pub blocks: usize,
    /// The bytes of its blocks.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_in_one_way() {
        let id = BlockId::of(b"foo");
        let text = id.to_string();
        assert_eq!(text, "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae");
        assert_eq!(text.parse(), Ok(id));
        for wrong in ["", "2c26", &text.to_uppercase(), &text[1..], &format!("{text}0"), &"g".repeat(64)] {
            assert!(wrong.parse::<BlockId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_asks_about_1_to_4096_digests() {
        let digests = |count: usize| BlockIds::try_from(vec![BlockId::of(b"x").to_string(); count]);
        assert_eq!(digests(1).unwrap().into_vec().len(), 1);
        assert_eq!(digests(4096).unwrap().into_vec().len(), 4096);
        for count in [0, 4097] {
            assert!(digests(count).unwrap_err().to_string().contains(&format!("got {count}")));
        }
        assert!(BlockIds::try_from(vec!["x".to_owned()]).is_err());
    }
}
