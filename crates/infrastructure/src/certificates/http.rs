//! The HTTP client of ACME servers.

use std::{io, pin::Pin};

use http_body_util::Full;
use hyper::{Request, Response, body::Bytes};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

use crate::{http, outbound::Trust};

/// Sends requests over TLS only.
#[derive(Clone)]
pub(super) struct Http(http::HttpClient);

impl Http {
    pub(super) fn new(trust: Trust) -> Self {
        Self(http::HttpClient::new(trust))
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> io::Result<Response<Bytes>> {
        let url = request.uri();
        if url.scheme_str() != Some("https") {
            return Err(io::Error::other(format!("`{url}` is no address of HTTPS")));
        }
        self.0.send(request).await
    }

    /// Returns the body at an address, if the response is a success.
    pub(super) async fn get(&self, url: &str) -> io::Result<Bytes> {
        let request = Request::get(url).body(BodyWrapper::default()).map_err(io::Error::other)?;
        let response = self.send(request).await?;
        if !response.status().is_success() {
            return Err(io::Error::other(format!("`{url}` answers with {}", response.status())));
        }
        Ok(response.into_body())
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let this = self.clone();
        Box::pin(async move {
            let sent = this.send(request).await.map(|response| response.map(Full::new));
            sent.map(BytesResponse::from).map_err(|error| Error::Other(Box::new(error)))
        })
    }
}
