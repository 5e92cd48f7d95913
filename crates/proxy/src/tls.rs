//! TLS to clients: the certificate of each host name, redirects from HTTP, and answers to ACME challenges.
//!
//! **Invariant:** a certificate that has expired is never served, not even in a resumed session: the resolver is asked
//! at every handshake.

mod early;
mod live;
mod store;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::SystemTime,
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};

pub(crate) use self::{
    early::{add_hsts, early_answer, hsts},
    live::LiveCertificates,
    store::CertificateStore,
};

/// The protocols of HTTP/2 and HTTP/1.1 (RFC 7301).
pub(crate) const HTTP_2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";
/// The protocol of TLS-ALPN-01 challenges (RFC 8737). Such a connection ends with its handshake.
pub(crate) const ACME_TLS: &[u8] = b"acme-tls/1";

/// The state of TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) certificates: Arc<LiveCertificates>,
    acceptor: Acceptor,
    /// The port of redirects; 0 until the proxy listens.
    port: AtomicU16,
}

impl Tls {
    /// Loads the stored certificates.
    pub(crate) fn load(folder: &Path) -> io::Result<Self> {
        let certificates = Arc::new(LiveCertificates::load(CertificateStore::in_folder(folder)));
        let acceptor = Acceptor(TlsAcceptor::from(Arc::new(config(&certificates)?)));
        Ok(Self { certificates, acceptor, port: AtomicU16::new(0) })
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor.0
    }

    pub(crate) fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }
}

/// The acceptor, which has no `Debug` of its own.
struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acceptor")
    }
}

fn config(certificates: &Arc<LiveCertificates>) -> io::Result<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let resolver = Resolver(Arc::clone(certificates));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1_1.to_vec(), ACME_TLS.to_vec()];
    // Clients resume their sessions by tickets, so that the proxy keeps no state for them.
    config.ticketer = ring::Ticketer::new().map_err(io::Error::other)?;
    Ok(config)
}

/// Finds the certificate of the name that a client asks for (SNI). Without one the handshake fails.
#[derive(Debug)]
struct Resolver(Arc<LiveCertificates>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        // Whoever checks a challenge offers its protocol alone.
        match hello.alpn().is_some_and(|offered| offered.eq([ACME_TLS])) {
            true => self.0.challenge_key_of(&name),
            false => self.0.key_of(&name, SystemTime::now()),
        }
    }
}
