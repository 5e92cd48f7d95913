//! The certificates in memory: read by every handshake, replaced by the control plane.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    task::spawn_blocking,
};
use tokio_rustls::rustls::{
    self,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::{CertifiedKey, SigningKey},
};

use super::store::{CertificateStore, KeptCertificates};
use crate::{
    certificates::{Certificate, Challenge},
    routes::ChangeError,
};

/// The current certificates and challenges.
#[derive(Debug)]
pub(crate) struct LiveCertificates {
    table: ArcSwap<CertificateTable>,
    challenges: ArcSwap<Challenges>,
    // Held by each change, and for ever once another process owns the certificates.
    changes: Arc<Mutex<CertificateStore>>,
}

/// The answers to ACME challenges.
#[derive(Debug, Default)]
struct Challenges {
    /// Key authorizations by their tokens (HTTP-01).
    over_http: HashMap<String, String>,
    /// Keys of certificates by their names (TLS-ALPN-01).
    over_tls: HashMap<String, Arc<CertifiedKey>>,
}

/// An immutable snapshot of all certificates.
#[derive(Debug, Default)]
struct CertificateTable {
    revision: String,
    /// A wildcard is without its `*`.
    by_name: HashMap<Box<str>, Arc<Entry>>,
}

#[derive(Debug)]
struct Entry {
    key: Arc<CertifiedKey>,
    not_after: SystemTime,
    hsts: Option<HeaderValue>,
    /// Its expiry is in the log.
    is_reported: AtomicBool,
}

impl LiveCertificates {
    /// Loads the stored certificates.
    pub(super) fn load(store: CertificateStore) -> Self {
        let table = CertificateTable::new(store.load());
        let changes = Arc::new(Mutex::new(store));
        Self { table: ArcSwap::from_pointee(table), challenges: ArcSwap::default(), changes }
    }

    /// Prevents changes while the result is held.
    pub(crate) async fn freeze(&self) -> OwnedMutexGuard<CertificateStore> {
        Arc::clone(&self.changes).lock_owned().await
    }

    /// Replaces all certificates. Connections that are open stay so.
    pub(crate) async fn replace_all(
        &self,
        revision: String,
        certificates: Vec<Certificate>,
    ) -> Result<(), ChangeError> {
        let store = self.freeze().await;
        let kept = KeptCertificates { revision, certificates };
        let disk = store.clone();
        let saved = spawn_blocking(move || {
            // On disk first: what was acknowledged survives a restart.
            disk.save(&kept)?;
            Ok(CertificateTable::new(kept))
        });
        let table = saved.await.map_err(io::Error::other).flatten();
        let table = table.map_err(|error| ChangeError::Unkept(error.to_string()))?;
        self.table.store(Arc::new(table));
        drop(store);
        Ok(())
    }

    /// Replaces all challenges. They are not stored: the control plane sends them again after a restart.
    pub(crate) fn set_challenges(&self, challenges: Vec<Challenge>, certificates: Vec<Certificate>) {
        let over_http = challenges.into_iter().map(|one| (one.token, one.key_authorization)).collect();
        let mut over_tls = HashMap::new();
        for certificate in certificates {
            match chain_and_key(&certificate) {
                // Not compared with each other: the extension of a challenge is critical, and unknown to the comparison.
                Ok((chain, key)) => {
                    let key = Arc::new(CertifiedKey::new(chain, key));
                    over_tls.extend(certificate.names.into_iter().map(|name| (name, Arc::clone(&key))));
                }
                Err(error) => {
                    tracing::warn!(names = ?certificate.names, %error, "answer to a challenge cannot be used");
                }
            }
        }
        self.challenges.store(Arc::new(Challenges { over_http, over_tls }));
    }

    pub(crate) fn revision(&self) -> String {
        self.table.load().revision.clone()
    }

    pub(super) fn key_authorization(&self, token: &str) -> Option<String> {
        self.challenges.load().over_http.get(token).cloned()
    }

    /// Returns the key of the certificate that answers a challenge for a name.
    pub(super) fn challenge_key_of(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.challenges.load().over_tls.get(name).cloned()
    }

    /// Returns the key of a name whose certificate is valid at `now`.
    pub(super) fn key_of(&self, name: &str, now: SystemTime) -> Option<Arc<CertifiedKey>> {
        let table = self.table.load();
        let entry = table.find(name)?;
        if entry.is_expired(now) {
            if !entry.is_reported.swap(true, Ordering::Relaxed) {
                tracing::warn!(name, "certificate has expired and is not served");
            }
            return None;
        }
        Some(Arc::clone(&entry.key))
    }

    /// Returns whether a name has a certificate that is valid at `now`.
    pub(super) fn has_valid(&self, name: &str, now: SystemTime) -> bool {
        self.table.load().find(name).is_some_and(|entry| !entry.is_expired(now))
    }

    /// Returns the value of `Strict-Transport-Security` of a name, while its certificate is valid: a connection may be
    /// older than the expiry, and browsers must not remember a name that they cannot open any more.
    pub(super) fn hsts_of(&self, name: &str) -> Option<HeaderValue> {
        let table = self.table.load();
        let entry = table.find(name)?;
        entry.hsts.clone().filter(|_| !entry.is_expired(SystemTime::now()))
    }
}

impl CertificateTable {
    /// Creates the table of these certificates. One that cannot be used is left out, so that the others can.
    fn new(kept: KeptCertificates) -> Self {
        let mut by_name = HashMap::new();
        for certificate in kept.certificates {
            match Entry::new(&certificate) {
                Ok(entry) => {
                    let entry = Arc::new(entry);
                    let names = certificate.names.iter();
                    let names = names.map(|name| name.strip_prefix('*').unwrap_or(name));
                    by_name.extend(names.map(|name| (name.into(), Arc::clone(&entry))));
                }
                Err(error) => {
                    tracing::warn!(names = ?certificate.names, %error, "certificate cannot be used");
                }
            }
        }
        Self { revision: kept.revision, by_name }
    }

    /// Returns the certificate of exactly this name, or else that of its wildcard.
    fn find(&self, name: &str) -> Option<&Arc<Entry>> {
        self.by_name.get(name).or_else(|| {
            let dot = name.find('.')?;
            self.by_name.get(&name[dot..])
        })
    }
}

impl Entry {
    fn new(certificate: &Certificate) -> Result<Self, rustls::Error> {
        let (chain, key) = chain_and_key(certificate)?;
        let key = CertifiedKey::new(chain, key);
        match key.keys_match() {
            // As `CertifiedKey::from_der` does.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(error) => return Err(error),
        }
        let hsts = certificate.hsts_seconds.map(|seconds| format!("max-age={seconds}"));
        Ok(Self {
            key: Arc::new(key),
            not_after: SystemTime::UNIX_EPOCH
                .checked_add(Duration::from_secs(certificate.not_after))
                .ok_or_else(|| rustls::Error::General("the expiry is out of range".to_owned()))?,
            hsts: hsts.and_then(|value| HeaderValue::try_from(value).ok()),
            is_reported: AtomicBool::new(false),
        })
    }

    fn is_expired(&self, now: SystemTime) -> bool {
        now >= self.not_after
    }
}

type ChainAndKey = (Vec<CertificateDer<'static>>, Arc<dyn SigningKey>);

fn chain_and_key(certificate: &Certificate) -> Result<ChainAndKey, rustls::Error> {
    let unreadable = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
    let chain = CertificateDer::pem_slice_iter(certificate.chain.as_bytes());
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(unreadable)?;
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).map_err(unreadable)?;
    Ok((chain, ring::default_provider().key_provider.load_private_key(key)?))
}
