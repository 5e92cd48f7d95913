//! An HTTP client for servers that the operator names, so that their addresses are not restricted.

use std::{error::Error, io, sync::Arc, time::Duration};

use http_body_util::{BodyExt as _, Limited};
use hyper::{
    Request, Response, Uri,
    body::{Body, Bytes},
    client::conn::http1,
    header::{self, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use crate::outbound::{
    Trust,
    tls::{Connector, Stream},
};

/// The timeout of a request, from the lookup of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of a response.
const MOST: usize = 4 * 1024 * 1024;
const HTTPS: u16 = 443;
const HTTP: u16 = 80;
const USER_AGENT: &str = concat!("Launchway/", env!("CARGO_PKG_VERSION"));

/// Sends each request on a connection of its own. Follows no redirect.
#[derive(Clone)]
pub(crate) struct HttpClient(Arc<Connector>);

impl HttpClient {
    pub(crate) fn new(trust: Trust) -> Self {
        Self(Arc::new(Connector::new(trust)))
    }

    /// Sends a request to the absolute URL that it has, encrypted if that begins with `https`.
    pub(crate) async fn send<B>(&self, request: Request<B>) -> io::Result<Response<Bytes>>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        timeout(TIMEOUT, self.exchange(request)).await?
    }

    async fn exchange<B>(&self, request: Request<B>) -> io::Result<Response<Bytes>>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (mut head, body) = request.into_parts();
        let url = std::mem::take(&mut head.uri);
        let (Some(host), Some(authority)) = (url.host(), url.authority()) else {
            return Err(io::Error::other(format!("`{url}` names no host")));
        };
        let is_encrypted = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(io::Error::other(format!("`{url}` is no address of HTTP"))),
        };
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_u16().unwrap_or(if is_encrypted { HTTPS } else { HTTP });
        let stream = TcpStream::connect((name, port)).await?;
        let stream: Box<dyn Stream> = match is_encrypted {
            true => self.0.encrypt(host, stream).await.map_err(io::Error::other)?,
            false => Box::new(stream),
        };
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
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}
