//! STUB: replaced by the engineer who owns it; a merge takes the other side.

use std::path::Path;

use http::{Request, Response};

use crate::body::{self, Body};

/// Serves a file.
pub async fn serve<B>(folder: &Path, request: &Request<B>) -> Response<Body> {
    let path = folder.join(request.uri().path().trim_start_matches('/'));
    Response::new(body::full(tokio::fs::read(path).await.unwrap_or_default()))
}
