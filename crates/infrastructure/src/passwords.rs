//! Passwords, hashed with Argon2id.

use std::{sync::Arc, time::Duration};

use argon2::{
    Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version,
    password_hash::{self, SaltString},
};
use async_trait::async_trait;
use launchway_domain::{
    auth::{HasherError, Password, PasswordHash, PasswordHasher},
    secret::{Entropy, Secret},
};
use tokio::sync::Semaphore;

/// Hashes passwords on as many threads as the machine has cores, so that a flood of logins cannot
/// take its memory, and refuses who would have to wait too long.
pub struct Argon2Hasher {
    permits: Arc<Semaphore>,
    entropy: Arc<dyn Entropy>,
    patience: Duration,
}

impl Argon2Hasher {
    /// Hashes with salts from `entropy`.
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self { permits: Arc::new(Semaphore::new(cores)), entropy, patience: Duration::from_secs(10) }
    }

    async fn with_a_core<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HasherError> + Send + 'static,
    ) -> Result<T, HasherError> {
        let waiting = Arc::clone(&self.permits).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(self.patience, waiting).await else {
            return Err(HasherError::Busy);
        };
        tokio::task::spawn_blocking(move || {
            // Held by the work and not by its caller, who may go away before it is done.
            let _permit = permit;
            work()
        })
        .await
        .map_err(|error| HasherError::Broken(error.into()))?
    }
}

/// 19 MiB, two passes, one lane: what OWASP recommends for Argon2id.
fn argon2() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

fn broken(error: password_hash::Error) -> HasherError {
    // The error of the crate is no `std` error without its `std` feature.
    HasherError::Broken(error.to_string().into())
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    async fn hash(&self, password: &Password) -> Result<PasswordHash, HasherError> {
        let password = password.clone();
        let random = self.entropy.bits_256();
        self.with_a_core(move || {
            let salt = SaltString::encode_b64(&random[..16]).map_err(broken)?;
            let hash = argon2().hash_password(password.expose().as_bytes(), &salt).map_err(broken)?;
            Ok(PasswordHash(hash.to_string()))
        })
        .await
    }

    async fn verify(
        &self,
        candidate: &Secret<String>,
        hash: Option<PasswordHash>,
    ) -> Result<bool, HasherError> {
        let candidate = candidate.clone();
        self.with_a_core(move || match hash {
            Some(PasswordHash(hash)) => {
                let hash = password_hash::PasswordHash::new(&hash).map_err(broken)?;
                if hash.hash.is_none() {
                    // The form allows it, and it would look like a wrong password.
                    return Err(HasherError::Broken("a stored password has no hash".into()));
                }
                match argon2().verify_password(candidate.expose().as_bytes(), &hash) {
                    Ok(()) => Ok(true),
                    Err(password_hash::Error::Password) => Ok(false),
                    Err(error) => Err(broken(error)),
                }
            }
            None => {
                // The same work for nothing, so that time does not tell who has an account.
                let mut discarded = [0; 32];
                argon2()
                    .hash_password_into(candidate.expose().as_bytes(), b"nobody's salt...", &mut discarded)
                    .map_err(|error| HasherError::Broken(error.to_string().into()))?;
                std::hint::black_box(discarded);
                Ok(false)
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;

    fn hasher() -> Argon2Hasher {
        Argon2Hasher::new(Arc::new(SystemEntropy))
    }

    fn password(text: &str) -> Password {
        Password::try_from(text.to_owned()).unwrap()
    }

    #[tokio::test]
    async fn a_password_is_verified_and_another_is_not() {
        let hash = hasher().hash(&password("correct horse")).await.unwrap();
        let verify = async |candidate: &str| {
            hasher().verify(&Secret::new(candidate.to_owned()), Some(hash.clone())).await.unwrap()
        };
        assert!(verify("correct horse").await);
        assert!(!verify("Correct horse").await);
        assert!(!verify("").await);
    }

    #[tokio::test]
    async fn the_same_password_gives_two_hashes_in_the_phc_format_of_argon2id() {
        let [one, other] = [
            hasher().hash(&password("correct horse")).await,
            hasher().hash(&password("correct horse")).await,
        ];
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_ne!(one, other);
        assert!(one.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", one.0);
    }

    #[tokio::test]
    async fn without_a_hash_nothing_is_verified() {
        assert!(!hasher().verify(&Secret::new("anything".to_owned()), None).await.unwrap());
    }

    #[tokio::test]
    async fn a_damaged_hash_is_a_fault_and_no_wrong_password() {
        for damaged in
            ["", "nonsense", "$argon2id$v=19$nonsense", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ"]
        {
            let damaged = Some(PasswordHash(damaged.to_owned()));
            let outcome = hasher().verify(&Secret::new("anything".to_owned()), damaged).await;
            assert!(matches!(outcome, Err(HasherError::Broken(_))), "{outcome:?}");
        }
    }

    #[tokio::test]
    async fn who_would_wait_too_long_is_refused() {
        let full = Argon2Hasher {
            permits: Arc::new(Semaphore::new(0)),
            patience: Duration::from_millis(1),
            ..hasher()
        };
        assert!(matches!(full.hash(&password("correct horse")).await, Err(HasherError::Busy)));
    }
}
