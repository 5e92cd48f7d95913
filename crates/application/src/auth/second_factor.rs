//! Checks a second factor: a TOTP code or a recovery code.

use launchway_domain::{
    auth::{RecoveryCode, TotpSecret, TwoFactor, Write},
    clock::Timestamp,
    ids::UserId,
    secret::SecretBox,
};

use crate::Error;

/// Decrypts the TOTP secret of the user.
pub(super) fn open_secret(
    secrets: &dyn SecretBox,
    user_id: UserId,
    factor: &TwoFactor,
) -> Result<TotpSecret, Error> {
    let bytes = secrets.open(&TotpSecret::associated_data(user_id), &factor.secret)?;
    TotpSecret::from_bytes(bytes.expose())
        .ok_or_else(|| Error::Internal("a stored two-factor secret has a wrong length".into()))
}

/// Returns a code without the spaces that authenticators show in it.
pub(super) fn typed(code: &str) -> String {
    code.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the write that consumes `code`; `None` if it is wrong.
///
/// A recovery code is looked up only when the write is committed: it fails with `Stale` if there is no such
/// code.
pub(super) fn use_code(
    secrets: &dyn SecretBox,
    user_id: UserId,
    factor: &TwoFactor,
    code: &str,
    now: Timestamp,
) -> Result<Option<Write>, Error> {
    let typed = typed(code);
    if typed.len() == 6 && typed.bytes().all(|b| b.is_ascii_digit()) {
        let secret = open_secret(secrets, user_id, factor)?;
        Ok(secret.matching_step(&typed, now).map(|step| Write::UseTotpStep { user_id, step }))
    } else {
        Ok(Some(Write::UseRecoveryCode { user_id, code: RecoveryCode::hash_of(&typed), at: now }))
    }
}
