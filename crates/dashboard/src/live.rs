//! Live pages: a page that stays open fetches itself again, and gets an answer without contents while nothing changed.

use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};

use actix_web::{
    HttpResponse,
    http::header::{ETAG, HeaderValue, IF_NONE_MATCH},
};
use launchway_application::snapshots::Freshness;

use crate::{context::PageContext, error::PageError};

/// A number of this run of the server. Versions of snapshots begin anew with each run.
pub(crate) fn run_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the freshness that a request needs: a page that fetches itself again names the version that it has, and may
/// share a reading with others. A visitor who opens a page sees what is stored now.
pub(crate) fn freshness(context: &PageContext) -> Freshness {
    match context.request.headers().contains_key(IF_NONE_MATCH) {
        true => Freshness::Recent,
        false => Freshness::Now,
    }
}

/// Returns the page of `render`, or status 304 if the browser has this version of its live parts.
pub(crate) fn live_page(
    context: &PageContext,
    versions: &[u64],
    render: impl FnOnce() -> Result<HttpResponse, PageError>,
) -> Result<HttpResponse, PageError> {
    let tag = tag(context, versions)?;
    let mut response = match context.request.headers().get(IF_NONE_MATCH) == Some(&tag) {
        true => HttpResponse::NotModified().finish(),
        false => render()?,
    };
    response.headers_mut().insert(ETAG, tag);
    Ok(response)
}

/// Returns the tag of a page. What a visitor may do is part of it, because live parts have buttons. It is a weak one: the
/// parts around them may differ.
fn tag(context: &PageContext, versions: &[u64]) -> Result<HeaderValue, PageError> {
    let mut hasher = DefaultHasher::new();
    let visitor = &context.visitor;
    visitor.form_token.hash(&mut hasher);
    visitor.membership().map(|own| own.organization.id).hash(&mut hasher);
    visitor.permissions().names().hash(&mut hasher);
    versions.hash(&mut hasher);
    let tag = format!("W/\"{:x}-{:x}\"", context.dashboard.run_number, hasher.finish());
    HeaderValue::from_str(&tag).map_err(|_no_header| PageError::internal())
}
