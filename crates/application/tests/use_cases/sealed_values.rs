//! A secret box whose sealed texts show their associated data, and which opens them only with the same.

use launchway_domain::secret::{MockSecretBox, Sealed, Secret, SecretBoxError};

/// Returns the sealed form of `plain` for `place`.
pub(crate) fn sealed(place: &str, plain: &str) -> Sealed {
    Sealed(format!("<{place}>{plain}"))
}

/// Returns a box that creates and opens [`sealed`] texts.
pub(crate) fn a_box() -> MockSecretBox {
    let mut secrets = MockSecretBox::new();
    secrets.expect_seal().returning(|place, plain| Ok(sealed(place, &String::from_utf8_lossy(plain))));
    secrets.expect_open().returning(|place, text| {
        let plain = text.0.strip_prefix(&format!("<{place}>")).ok_or(SecretBoxError::CannotOpen)?;
        Ok(Secret::new(plain.as_bytes().to_vec()))
    });
    secrets
}
