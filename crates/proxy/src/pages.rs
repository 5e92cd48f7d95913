//! Responses of the proxy itself, when it has no application's response to return.
//!
//! **Invariant:** a page contains nothing that the visitor sent, and no address, path, id or version.

pub(crate) mod accept;
mod problem;

use std::sync::LazyLock;

use data_encoding::BASE64;
use http::{
    HeaderMap, HeaderValue, Response,
    header::{
        CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

pub use self::problem::Problem;
use self::{accept::Format, problem::Wording};
use crate::body::{self, Body};

const PAGE: &str = include_str!("pages/page.html");
const STYLE: &str = include_str!("pages/page.css");

/// The content security policy: no scripts, no external resources, only the page's own style.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = BASE64.encode(&Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// Returns the response for `problem`, in the format that the request's `headers` ask for.
///
/// It has a body. The caller removes it for HEAD, as hyper does.
pub fn page(problem: Problem, headers: &HeaderMap) -> Response<Body> {
    let wording = problem.wording();
    let format = Format::wanted_by(headers);
    let text = match format {
        Format::Html => html(&wording),
        Format::Json => json(&wording),
        Format::Plain => format!("{}\n{}\n", wording.title, wording.advice),
    };
    let mut response = Response::new(body::empty());
    *response.status_mut() = wording.status;
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    head.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    head.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    // The problem may be solved soon.
    head.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    head.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    head.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(seconds) = wording.retry_after_seconds {
        head.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    *response.body_mut() = body::full(text);
    response
}

fn html(wording: &Wording) -> String {
    PAGE.replace("{style}", STYLE)
        .replace("{status}", wording.status.as_str())
        .replace("{title}", &escaped(wording.title))
        .replace("{advice}", &escaped(&wording.advice))
}

fn json(wording: &Wording) -> String {
    let message = format!("{}. {}", wording.title, wording.advice);
    json!({ "data": null, "message": message, "status": "error", "error": wording.code }).to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
