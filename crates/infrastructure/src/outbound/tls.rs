//! TLS for outbound connections. The server's certificate is always verified.

use std::{io, sync::Arc};

use launchway_domain::notifications::SendError;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
    task::spawn_blocking,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        CertificateError, ClientConfig, Error, RootCertStore,
        client::Resumption,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

/// A connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

/// The trusted certificate authorities.
#[derive(Debug, Clone)]
pub struct Trust(Roots);

#[derive(Debug, Clone)]
enum Roots {
    OfThisMachine,
    Only(Arc<RootCertStore>),
}

impl Trust {
    /// The authorities that this machine trusts: its operator adds one as for every other program, or names
    /// a file by `SSL_CERT_FILE`. They are loaded with the first encrypted message, and not again: there
    /// are hundreds of files, and many servers never send one.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self(Roots::OfThisMachine)
    }

    /// Only the authorities in `pem`.
    ///
    /// # Errors
    /// [`io::Error`] when one cannot be read.
    pub fn only(pem: &str) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
        }
        Ok(Self(Roots::Only(Arc::new(roots))))
    }

    fn roots(self) -> Arc<RootCertStore> {
        match self.0 {
            Roots::OfThisMachine => Arc::new(read_roots()),
            Roots::Only(roots) => roots,
        }
    }
}

fn read_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificate store read failed");
    }
    let mut roots = RootCertStore::empty();
    let (added, odd) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!("certificate store is empty, encrypted connections will fail");
    } else if odd > 0 {
        tracing::warn!(skipped = odd, "certificate store has invalid certificates");
    }
    roots
}

/// Encrypts connections.
pub(crate) struct Connector {
    trust: Trust,
    ready: OnceCell<TlsConnector>,
}

impl Connector {
    pub(crate) fn new(trust: Trust) -> Self {
        Self { trust, ready: OnceCell::new() }
    }

    /// Returns the connector, which is created when it is first needed.
    async fn ready(&self) -> Result<&TlsConnector, SendError> {
        let made = self.ready.get_or_try_init(async || {
            let trust = self.trust.clone();
            let config = spawn_blocking(move || configured(trust)).await.map_err(io::Error::other)?;
            config.map(|config| TlsConnector::from(Arc::new(config)))
        });
        made.await.map_err(|error| SendError::Unreachable(format!("TLS cannot be set up: {error}")))
    }

    /// Encrypts the connection, if the server proves that it is `host`, whatever the address that it was
    /// reached at.
    pub(crate) async fn encrypt(&self, host: &str, stream: TcpStream) -> Result<Box<dyn Stream>, SendError> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        // Certificates have names without the dot at the end.
        let name =
            ServerName::try_from(bare.strip_suffix('.').unwrap_or(bare).to_owned()).map_err(|_invalid| {
                SendError::Unreachable(format!("{host} is not a valid name for a certificate"))
            })?;
        match self.ready().await?.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(SendError::Unreachable(error_text(host, &error))),
        }
    }
}

fn configured(trust: Trust) -> io::Result<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(trust.roots())
        .with_no_client_auth();
    // Each message uses a full handshake, in which the server proves its identity again.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn error_text(host: &str, error: &io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    let reason = match cause {
        Some(Error::InvalidCertificate(certificate)) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "is not valid yet",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "is for another name"
            }
            CertificateError::UnknownIssuer => "has an issuer that this machine does not trust",
            CertificateError::Revoked => "was revoked",
            _ => "is not valid",
        },
        _ => return format!("the TLS handshake with {host} failed"),
    };
    format!("{host} failed TLS verification: its certificate {reason}")
}
