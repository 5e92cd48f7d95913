//! A box that seals so that a test can see for which place, and opens nothing elsewhere.

use launchway_domain::secret::{MockSecretBox, Sealed, Secret, SecretBoxError};

/// What is sealed of `plain` for `place`.
pub(crate) fn sealed(place: &str, plain: &str) -> Sealed {
    Sealed(format!("<{place}>{plain}"))
}

/// A box that gives [`sealed`] texts, and takes them back.
pub(crate) fn a_box() -> MockSecretBox {
    let mut secrets = MockSecretBox::new();
    secrets.expect_seal().returning(|place, plain| Ok(sealed(place, &String::from_utf8_lossy(plain))));
    secrets.expect_open().returning(|place, text| {
        let plain = text.0.strip_prefix(&format!("<{place}>")).ok_or(SecretBoxError::CannotOpen)?;
        Ok(Secret::new(plain.as_bytes().to_vec()))
    });
    secrets
}
