//! The HTTP client of ACME servers. The operator names the server, so its address is not restricted.

use std::{io, pin::Pin, sync::Arc, time::Duration};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Request, Response, Uri,
    body::Bytes,
    client::conn::http1,
    header::{self, HeaderValue},
};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use crate::outbound::{Trust, tls::Connector};

/// The timeout of a request, from the lookup of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of a response.
const MOST: usize = 1024 * 1024;
const HTTPS: u16 = 443;
const USER_AGENT: &str = concat!("Launchway/", env!("CARGO_PKG_VERSION"));

/// Sends requests over TLS only, each on a connection of its own. Follows no redirect.
#[derive(Clone)]
pub(super) struct Http(Arc<Connector>);

impl Http {
    pub(super) fn new(trust: Trust) -> Self {
        Self(Arc::new(Connector::new(trust)))
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> io::Result<Response<Full<Bytes>>> {
        let (mut head, body) = request.into_parts();
        let url = std::mem::take(&mut head.uri);
        if url.scheme_str() != Some("https") {
            return Err(io::Error::other(format!("`{url}` is no address of HTTPS")));
        }
        let (Some(host), Some(authority)) = (url.host(), url.authority()) else {
            return Err(io::Error::other(format!("`{url}` names no host")));
        };
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((name, url.port_u16().unwrap_or(HTTPS))).await?;
        let stream = self.0.encrypt(host, stream).await.map_err(io::Error::other)?;
        let (mut sender, driven) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let mut connection = JoinSet::new();
        connection.spawn(async move {
            // Errors are returned by the request that waits for the response.
            let _ended = driven.await;
        });
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        head.uri = Uri::try_from(target).map_err(io::Error::other)?;
        let authority = HeaderValue::from_str(authority.as_str()).map_err(io::Error::other)?;
        head.headers.insert(header::HOST, authority);
        head.headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        let response =
            sender.send_request(Request::from_parts(head, body)).await.map_err(io::Error::other)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST).collect().await.map_err(io::Error::other)?;
        Ok(Response::from_parts(head, Full::new(body.to_bytes())))
    }

    /// Returns the body at an address, if the response is a success.
    pub(super) async fn get(&self, url: &str) -> io::Result<Bytes> {
        let request = Request::get(url).body(BodyWrapper::default()).map_err(io::Error::other)?;
        let response = timeout(TIMEOUT, self.send(request)).await??;
        if !response.status().is_success() {
            return Err(io::Error::other(format!("`{url}` answers with {}", response.status())));
        }
        Ok(response.into_body().collect().await.map_err(io::Error::other)?.to_bytes())
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let this = self.clone();
        Box::pin(async move {
            let sent = timeout(TIMEOUT, this.send(request)).await.map_err(io::Error::from).flatten();
            sent.map(BytesResponse::from).map_err(|error| Error::Other(Box::new(error)))
        })
    }
}
