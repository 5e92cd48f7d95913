//! Certificates and ACME challenges, as the control plane sends them and as they are stored.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A certificate with its private key, for its host names.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The host names: lower case, ASCII. The first label may be `*`, for every name with another first label.
    pub names: Vec<String>,
    /// The chain as PEM, the certificate itself first.
    pub chain: String,
    /// The private key as PEM.
    pub key: String,
    /// The time at which it expires, in seconds since 1970. It is not served from then on.
    pub not_after: u64,
    /// The `max-age` of `Strict-Transport-Security`, in seconds; `None` for no such header.
    #[serde(default)]
    pub hsts_seconds: Option<u32>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, not_after, hsts_seconds, chain: _, key: _ } = self;
        f.debug_struct("Certificate")
            .field("names", names)
            .field("not_after", not_after)
            .field("hsts_seconds", hsts_seconds)
            .finish_non_exhaustive()
    }
}

/// The answer to an HTTP-01 challenge of an ACME server (RFC 8555, 8.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// The token, which is the last segment of the path.
    pub token: String,
    /// The body of the answer.
    pub key_authorization: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_the_private_key() {
        let certificate = Certificate {
            names: vec!["shop.example".to_owned()],
            chain: "chain".to_owned(),
            key: "hunter2".to_owned(),
            not_after: 1,
            hsts_seconds: None,
        };
        let shown = format!("{certificate:?}");
        assert!(shown.contains("shop.example") && !shown.contains("hunter2"), "{shown}");
    }
}
