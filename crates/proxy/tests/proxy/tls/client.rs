//! An authority, and clients that trust it.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use launchway_proxy::certificates::Certificate;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore, SupportedProtocolVersion,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
        version,
    },
};

use crate::{
    client::{Connection, TIMEOUT},
    process::Proxy,
};

/// A time at which every certificate has expired.
pub(super) const LONG_AGO: u64 = 1_000_000_000;

/// An authority that only its clients trust.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(params, key), der }
    }

    /// Returns a certificate with a new key, which is valid for an hour.
    pub(crate) fn certificate(&self, names: &[&str]) -> Certificate {
        self.certificate_with(names, Vec::new())
    }

    /// Returns the certificate that answers a TLS-ALPN-01 challenge: its extension is critical.
    pub(super) fn challenge(&self, name: &str) -> Certificate {
        self.certificate_with(&[name], vec![CustomExtension::new_acme_identifier(&[7; 32])])
    }

    fn certificate_with(&self, names: &[&str], extensions: Vec<CustomExtension>) -> Certificate {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.clone()).unwrap();
        params.custom_extensions = extensions;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        Certificate {
            names,
            chain: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
            not_after: now + 3_600,
            hsts_seconds: None,
        }
    }
}

/// Returns the certificate itself, without its chain.
pub(super) fn leaf(certificate: &Certificate) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(certificate.chain.as_bytes()).unwrap()
}

/// A client that keeps its tickets.
#[derive(Clone)]
pub(crate) struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    pub(crate) fn trusting(authority: &Authority) -> Self {
        Self::with(authority, &[&version::TLS13, &version::TLS12])
    }

    pub(super) fn of_version(authority: &Authority, version: &'static SupportedProtocolVersion) -> Self {
        Self::with(authority, &[version])
    }

    fn with(authority: &Authority, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self(Arc::new(config))
    }

    pub(crate) fn with_alpn(&self, protocols: &[&str]) -> Self {
        let mut config = (*self.0).clone();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Self(Arc::new(config))
    }

    pub(super) fn without_sni(&self) -> Self {
        let mut config = (*self.0).clone();
        config.enable_sni = false;
        Self(Arc::new(config))
    }

    /// Connects to the proxy with a handshake for this name.
    pub(super) async fn connect(&self, proxy: &Proxy, name: &str) -> std::io::Result<Connected> {
        self.connect_to(proxy.tls_address.unwrap(), name).await
    }

    async fn connect_to(&self, address: std::net::SocketAddr, name: &str) -> std::io::Result<Connected> {
        Ok(Connected(Connection::over(self.stream(address, name).await?)))
    }

    /// Returns the stream behind a handshake for this name.
    pub(crate) async fn stream(
        &self,
        address: std::net::SocketAddr,
        name: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connect = TlsConnector::from(Arc::clone(&self.0)).connect(name, stream);
        tokio::time::timeout(TIMEOUT, connect).await?
    }
}

/// A connection over TLS.
pub(super) struct Connected(Connection<TlsStream<TcpStream>>);

impl Connected {
    pub(super) fn certificate(&self) -> CertificateDer<'static> {
        self.stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    }
}

impl Deref for Connected {
    type Target = Connection<TlsStream<TcpStream>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Connected {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// Clients that send requests over TLS without pause, half of them on one connection each, half on a new one each time.
pub(super) struct Load {
    clients: JoinSet<()>,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Load {
    pub(super) fn begin(proxy: &Proxy, authority: &Authority, clients: usize) -> Self {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            let (client, address) = (TlsClient::trusting(authority), proxy.tls_address.unwrap());
            tasks.spawn(async move {
                let mut connection = client.connect_to(address, "shop.example").await.unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let answer = connection.get("shop.example", "/").await.expect("an answer");
                    assert_eq!((answer.status, answer.text()), (200, "shop"));
                    answered.fetch_add(1, Ordering::Relaxed);
                    if number % 2 == 0 || answer.header("connection") == Some("close") {
                        connection = client.connect_to(address, "shop.example").await.unwrap();
                    }
                }
            });
        }
        Self { clients: tasks, is_over, answered }
    }

    /// Waits until this many more requests were answered.
    pub(super) async fn go_on(&self, requests: usize) {
        let (enough, begun) = (self.answered.load(Ordering::Relaxed) + requests, Instant::now());
        while self.answered.load(Ordering::Relaxed) < enough {
            assert!(begun.elapsed() < TIMEOUT, "nobody is answered any more");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns the number of answered requests. Panics if one was not.
    pub(super) async fn end(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(client) = self.clients.join_next().await {
            client.unwrap();
        }
        self.answered.load(Ordering::Relaxed)
    }
}
