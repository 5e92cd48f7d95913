//! Password hashing with Argon2id.

mod memory;

use std::{sync::Arc, time::Duration};

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{self, Output, ParamsString, SaltString},
};
use async_trait::async_trait;
use launchway_domain::{
    auth::{HasherError, Password, PasswordHash, PasswordHasher},
    secret::{Entropy, Secret},
};
use tokio::sync::Semaphore;

use self::memory::Memory;

/// Hashes passwords on as many threads as the machine has cores, so that a flood of logins cannot exhaust
/// its memory, and rejects callers that would have to wait too long.
pub struct Argon2Hasher {
    permits: Arc<Semaphore>,
    memory: Arc<Memory>,
    entropy: Arc<dyn Entropy>,
    max_wait: Duration,
}

impl Argon2Hasher {
    /// Returns a hasher with salts from `entropy`.
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            permits: Arc::new(Semaphore::new(cores)),
            memory: Arc::new(Memory::of_runs_with(&PARAMS)),
            entropy,
            max_wait: Duration::from_secs(10),
        }
    }

    async fn with_a_core<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Memory) -> Result<T, password_hash::Error> + Send + 'static,
    ) -> Result<T, HasherError> {
        let waiting = Arc::clone(&self.permits).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(self.max_wait, waiting).await else {
            return Err(HasherError::Busy);
        };
        let memory = Arc::clone(&self.memory);
        tokio::task::spawn_blocking(move || {
            // Held by the work and not by its caller, which may be dropped before it is done.
            let _permit = permit;
            work(&memory)
        })
        .await
        .map_err(|error| HasherError::Broken(error.into()))?
        // The error of the crate is no `std` error without its `std` feature.
        .map_err(|error| HasherError::Broken(error.to_string().into()))
    }
}

/// 19 MiB, two passes, one lane: what OWASP recommends for Argon2id.
const PARAMS: Params = Params::DEFAULT;
const VERSION: Version = Version::V0x13;

fn argon2() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, VERSION, PARAMS)
}

/// Returns the hash in the PHC format, which includes its parameters.
fn hash(memory: &Memory, password: &str, salt: &[u8]) -> Result<PasswordHash, password_hash::Error> {
    let encoded = SaltString::encode_b64(salt)?;
    let output = Output::init_with(Params::DEFAULT_OUTPUT_LEN, |output| {
        memory.run(&argon2(), password, salt, output)
    })?;
    let hash = password_hash::PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(VERSION.into()),
        params: ParamsString::try_from(&PARAMS)?,
        salt: Some(encoded.as_salt()),
        hash: Some(output),
    };
    Ok(PasswordHash(hash.to_string()))
}

/// Returns whether the candidate is the password, hashed with the parameters of the stored hash.
fn verify(memory: &Memory, candidate: &str, stored: &str) -> Result<bool, password_hash::Error> {
    let stored = password_hash::PasswordHash::new(stored)?;
    let (Some(salt), Some(expected)) = (stored.salt, stored.hash) else {
        // The format allows a missing salt or hash, which would look like a wrong password.
        return Err(password_hash::Error::PhcStringField);
    };
    let algorithm = Algorithm::try_from(stored.algorithm)?;
    let version = stored.version.map_or(Ok(VERSION), Version::try_from)?;
    let argon2 = Argon2::new(algorithm, version, Params::try_from(&stored)?);
    let mut salt_bytes = [0; password_hash::Salt::MAX_LENGTH];
    let salt = salt.decode_b64(&mut salt_bytes)?;
    let output = Output::init_with(expected.len(), |output| memory.run(&argon2, candidate, salt, output))?;
    // Outputs are compared in constant time.
    Ok(output == expected)
}

/// Does the work of [`verify`] without a hash, so that timing does not reveal which accounts exist.
fn verify_nothing(memory: &Memory, candidate: &str) -> Result<bool, password_hash::Error> {
    let mut discarded = [0; Params::DEFAULT_OUTPUT_LEN];
    memory.run(&argon2(), candidate, b"nobody's salt...", &mut discarded)?;
    std::hint::black_box(discarded);
    Ok(false)
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    async fn hash(&self, password: &Password) -> Result<PasswordHash, HasherError> {
        let password = password.clone();
        let random = self.entropy.bits_256();
        self.with_a_core(move |memory| hash(memory, password.expose(), &random[..16])).await
    }

    async fn verify(
        &self,
        candidate: &Secret<String>,
        hash: Option<PasswordHash>,
    ) -> Result<bool, HasherError> {
        let candidate = candidate.clone();
        self.with_a_core(move |memory| match hash {
            Some(PasswordHash(stored)) => verify(memory, candidate.expose(), &stored),
            None => verify_nothing(memory, candidate.expose()),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use argon2::{PasswordHasher as _, PasswordVerifier as _};
    use launchway_system::clock::SystemEntropy;

    use super::*;

    fn hasher() -> Argon2Hasher {
        Argon2Hasher::new(Arc::new(SystemEntropy))
    }

    fn password(text: &str) -> Password {
        Password::try_from(text.to_owned()).unwrap()
    }

    fn with_cores(cores: usize) -> Argon2Hasher {
        Argon2Hasher { permits: Arc::new(Semaphore::new(cores)), ..hasher() }
    }

    async fn verifies(hasher: &Argon2Hasher, candidate: &str, hash: &str) -> bool {
        let hash = Some(PasswordHash(hash.to_owned()));
        hasher.verify(&Secret::new(candidate.to_owned()), hash).await.unwrap()
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
    async fn hashes_are_salted_and_in_the_phc_format() {
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
        let full = Argon2Hasher { max_wait: Duration::from_millis(1), ..with_cores(0) };
        assert!(matches!(full.hash(&password("correct horse")).await, Err(HasherError::Busy)));
    }

    #[tokio::test]
    async fn hashes_of_the_plain_crate_are_verified_and_it_verifies_ours() {
        let salt = SaltString::encode_b64(b"sixteen bytes...").unwrap();
        let theirs = argon2().hash_password(b"correct horse", &salt).unwrap().to_string();
        assert!(verifies(&hasher(), "correct horse", &theirs).await);
        assert!(!verifies(&hasher(), "another horse", &theirs).await);

        let ours = hasher().hash(&password("correct horse")).await.unwrap().0;
        let ours = password_hash::PasswordHash::new(&ours).unwrap();
        argon2().verify_password(b"correct horse", &ours).unwrap();
        assert!(argon2().verify_password(b"another horse", &ours).is_err());
        assert_eq!(ours.to_string().len(), theirs.len());
    }

    #[tokio::test]
    async fn a_hash_is_verified_the_way_it_was_made() {
        let larger = Params::new(PARAMS.m_cost() + 1000, 1, 2, Some(48)).unwrap();
        let smaller = Params::new(64, 3, 1, Some(16)).unwrap();
        let salt = SaltString::encode_b64(b"eight by").unwrap();
        let hasher = hasher();
        for (algorithm, version, params) in [
            (Algorithm::Argon2id, Version::V0x13, larger),
            (Algorithm::Argon2i, Version::V0x10, smaller.clone()),
            (Algorithm::Argon2d, Version::V0x13, smaller),
        ] {
            let made = Argon2::new(algorithm, version, params).hash_password(b"correct horse", &salt);
            let made = made.unwrap().to_string();
            assert!(verifies(&hasher, "correct horse", &made).await, "{made}");
            assert!(!verifies(&hasher, "another horse", &made).await, "{made}");
        }
    }

    #[tokio::test]
    async fn what_a_run_leaves_in_memory_does_not_change_the_next_one() {
        let hasher = with_cores(1);
        let one = hasher.hash(&password("correct horse")).await.unwrap().0;
        let other = hasher.hash(&password("another horse")).await.unwrap().0;
        for _ in 0..3 {
            assert!(verifies(&hasher, "correct horse", &one).await);
            assert!(!verifies(&hasher, "correct horse", &other).await);
            assert!(!hasher.verify(&Secret::new("correct horse".to_owned()), None).await.unwrap());
            assert!(verifies(&hasher, "another horse", &other).await);
        }
    }

    #[tokio::test]
    async fn there_is_never_more_memory_than_cores_that_use_it() {
        let hasher = Arc::new(with_cores(2));
        let hash = hasher.hash(&password("correct horse")).await.unwrap().0;
        for _ in 0..10 {
            assert!(verifies(&hasher, "correct horse", &hash).await);
        }
        assert_eq!(hasher.memory.idle(), 1);

        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let (hasher, hash) = (Arc::clone(&hasher), hash.clone());
            tasks.spawn(async move { verifies(&hasher, "another horse", &hash).await });
        }
        assert_eq!(tasks.join_all().await, [false; 10]);
        assert!((1..=2).contains(&hasher.memory.idle()), "{}", hasher.memory.idle());
    }
}
