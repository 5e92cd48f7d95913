//! Bearer tokens: opaque, shown once, stored only as a hash.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};

/// The kind of a token. Its prefix identifies it for users and secret scanners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A session.
    Session,
    /// Access for a program.
    Api,
    /// The right to create the first administrator.
    Setup,
    /// The right to set one's first password.
    PasswordSetup,
    /// The right to accept an invitation, for the user who is invited.
    Invitation,
}

impl TokenKind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Session => "lws_",
            Self::Api => "lwa_",
            Self::Setup => "lwi_",
            Self::PasswordSetup => "lwp_",
            Self::Invitation => "lwv_",
        }
    }
}

/// A token in plain text. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token of 256 random bits.
    #[must_use]
    pub fn new(kind: TokenKind, random: [u8; 32]) -> Self {
        Self(format!("{}{}", kind.prefix(), BASE64URL_NOPAD.encode(&random)))
    }

    /// Returns the text to give to the holder.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the hash to store.
    #[cfg(feature = "accounts")]
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The SHA-256 of a token: enough to recognise it, useless to anyone who reads the database.
///
/// A slow hash is not needed, because a token has 256 random bits. Comparison takes constant time, wherever the
/// hash of what a caller presented can be computed.
#[derive(Clone, Copy, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "equality differs from the derived one in time only")]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Returns the hash of what a caller presented.
    #[cfg(feature = "accounts")]
    #[must_use]
    pub fn of(presented: &str) -> Self {
        use sha2::{Digest as _, Sha256};
        Self(Sha256::digest(presented.as_bytes()).into())
    }

    /// Returns the bytes to store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for TokenHash {
    fn from(stored: [u8; 32]) -> Self {
        Self(stored)
    }
}

impl PartialEq for TokenHash {
    #[cfg(feature = "accounts")]
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq as _;
        self.0.ct_eq(&other.0).into()
    }

    #[cfg(not(feature = "accounts"))]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0[..4]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_carries_256_bits_behind_a_prefix_of_its_kind() {
        let token = Token::new(TokenKind::Session, [0xff; 32]);
        assert_eq!(token.expose(), format!("lws_{}8", "_".repeat(42)));
        assert!(Token::new(TokenKind::Api, [0; 32]).expose().starts_with("lwa_"));
    }

    #[test]
    fn the_hash_of_a_token_is_recognised_from_the_presented_text() {
        let token = Token::new(TokenKind::Api, [7; 32]);
        assert_eq!(TokenHash::of(token.expose()), token.hash());
        assert_ne!(TokenHash::of("lwa_other"), token.hash());
    }

    #[test]
    fn debug_output_shows_no_token() {
        let token = Token::new(TokenKind::Session, [7; 32]);
        assert!(!format!("{token:?}").contains(&token.expose()[4..]));
    }
}
