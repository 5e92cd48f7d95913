//! Signatures of outbound messages, by the Standard Webhooks specification.

use data_encoding::BASE64;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::{
    clock::Timestamp,
    ids::SigningSecretId,
    secret::{Sealed, Secret},
    value::InvalidValue,
};

/// The secret that an organization's own receiver shares with Launchway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningSecret(Secret<Vec<u8>>);

impl SigningSecret {
    const PREFIX: &'static str = "whsec_";
    /// The allowed lengths of a key in bytes, by the specification.
    const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

    /// Creates a secret of 256 random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(Secret::new(random.to_vec()))
    }

    /// Returns the text to give to the receiver.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{}{}", Self::PREFIX, BASE64.encode(self.0.expose()))
    }

    /// Returns the signature of a message, with the name of its algorithm.
    #[must_use]
    pub fn sign(&self, message_id: &str, at: Timestamp, body: &str) -> String {
        let signed = format!("{message_id}.{}.{body}", at.timestamp());
        // HMAC accepts keys of any length, so this cannot fail.
        let mac = Hmac::<Sha256>::new_from_slice(self.0.expose()).map(|mac| mac.chain_update(signed));
        let signature = mac.map(|mac| BASE64.encode(&mac.finalize().into_bytes())).unwrap_or_default();
        format!("v1,{signature}")
    }
}

impl TryFrom<String> for SigningSecret {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let encoded = raw.strip_prefix(Self::PREFIX);
        let key = encoded.and_then(|encoded| BASE64.decode(encoded.as_bytes()).ok());
        let key = key.filter(|key| Self::LENGTHS.contains(&key.len()));
        key.map(|key| Self(Secret::new(key))).ok_or_else(|| InvalidValue::secret("a signing secret"))
    }
}

/// A signing secret as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSigningSecret {
    /// The id of the signing secret.
    pub id: SigningSecretId,
    /// The [`SigningSecret`]; see [`KeptSigningSecret::associated_data`].
    pub secret: Sealed,
}

impl KeptSigningSecret {
    /// The time for which a replaced secret still signs.
    pub const GRACE: chrono::TimeDelta = chrono::TimeDelta::hours(24);
    /// The maximum number of secrets that sign beside the newest.
    pub const MOST_REPLACED: i64 = 5;

    /// Returns the associated data (AEAD) of a secret: with any other, it cannot be decrypted.
    #[must_use]
    pub fn associated_data(id: SigningSecretId) -> String {
        format!("signing_secrets.secret:{id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_signed_as_there() {
        let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned().try_into().unwrap();
        let at = Timestamp::from_timestamp(1_614_265_330, 0).unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_is_read_as_it_is_shown_and_is_not_shown_by_accident() {
        let secret = SigningSecret::new([0xab; 32]);
        assert!(secret.expose().starts_with("whsec_q6ur"));
        assert_eq!(SigningSecret::try_from(secret.expose()), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), "SigningSecret(***)");
    }

    #[test]
    fn what_has_another_form_or_length_is_no_secret() {
        let of = |bytes: usize| format!("whsec_{}", BASE64.encode(&vec![1; bytes]));
        for (raw, is_one) in [
            (String::new(), false),
            ("whsec_".to_owned(), false),
            (BASE64.encode(&[1; 32]), false),
            ("whsec_not base64".to_owned(), false),
            (of(23), false),
            (of(24), true),
            (of(64), true),
            (of(65), false),
        ] {
            assert_eq!(SigningSecret::try_from(raw.clone()).is_ok(), is_one, "{raw}");
        }
    }
}
