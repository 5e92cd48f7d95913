//! The responses of a site.

use std::{fs::File, ops::Range, path::Path};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{
        ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
        LAST_MODIFIED, LOCATION, VARY, X_CONTENT_TYPE_OPTIONS,
    },
};

use super::{
    Asked,
    address::Address,
    conditions::Verdict,
    ranges::Part,
    reader::{FileBody, read, read_cached},
    release::{Access, OpenError},
    representation::Representation,
    tags::Tag,
};
use crate::body::{self, Body};

/// The largest part of a file that is read into memory. The kernel sends larger ones.
const MOST_IN_MEMORY: u64 = 16 * 1024;

/// The body of a response.
#[derive(Debug)]
pub(super) enum Content {
    Nothing,
    InMemory(Bytes),
    InFile(File, Range<u64>),
}

impl Content {
    /// Reads a range of a file: into memory if it is small, to save a second access to the disk.
    fn of(file: File, part: Range<u64>, access: Access) -> Result<Self, OpenError> {
        if part.end - part.start > MOST_IN_MEMORY {
            return Ok(Self::InFile(file, part));
        }
        let bytes = match access {
            Access::Disk => read(&file, part).map_err(OpenError::Fault)?,
            Access::Cached => read_cached(&file, part).ok_or(OpenError::Uncached)?,
        };
        Ok(Self::InMemory(bytes))
    }

    pub(super) fn into_body(self) -> Body {
        match self {
            Self::Nothing => body::empty(),
            Self::InMemory(bytes) => body::full(bytes),
            Self::InFile(file, part) => Body::from_file(FileBody::new(file, part)),
        }
    }
}

/// Returns the file, or the part of it that the client needs.
pub(super) fn representation(
    asked: &Asked,
    folder: &Path,
    found: Representation,
    access: Access,
) -> Result<Response<Content>, OpenError> {
    let tag = match access {
        Access::Disk => Tag::of(folder, &found.file, &found.metadata).map_err(OpenError::Fault)?,
        Access::Cached => Tag::cached(folder, &found.metadata).ok_or(OpenError::Uncached)?,
    };
    let modified = found.modified();
    let mut response = blank(StatusCode::OK);
    let head = response.headers_mut();
    head.insert(ETAG, tag.header());
    head.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Some(date) = modified.and_then(|time| HeaderValue::try_from(httpdate::fmt_http_date(time)).ok()) {
        head.insert(LAST_MODIFIED, date);
    }
    match asked.conditions.verdict(&tag, modified) {
        Verdict::Failed => Ok(without_content(response, StatusCode::PRECONDITION_FAILED)),
        Verdict::NotModified => Ok(without_content(response, StatusCode::NOT_MODIFIED)),
        Verdict::Send => {
            let size = found.metadata.len();
            let range = asked.range.as_ref().filter(|_| asked.conditions.allow_part(&tag));
            response.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            match Part::of(range, size) {
                Part::Unsatisfiable => Ok(unsatisfiable(response, size)),
                Part::Whole => with_content(response, found, 0..size, asked.is_head, access),
                Part::Bytes(part) => {
                    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                    let told = format!("bytes {}-{}/{size}", part.start, part.end - 1);
                    insert_text(&mut response, CONTENT_RANGE, told);
                    with_content(response, found, part, asked.is_head, access)
                }
            }
        }
    }
}

/// Returns the site's own 404 page. It ignores ranges and conditions, because it is about another address
/// each time.
pub(super) fn not_found(
    page: Representation,
    is_head: bool,
    access: Access,
) -> Result<Response<Content>, OpenError> {
    let response = blank(StatusCode::NOT_FOUND);
    let size = page.metadata.len();
    with_content(response, page, 0..size, is_head, access)
}

/// Redirects to the same address with a trailing slash, where the page's relative links are right.
pub(super) fn redirect(address: &Address, query: Option<&str>) -> Response<Content> {
    let mut response = blank(StatusCode::PERMANENT_REDIRECT);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    insert_text(&mut response, LOCATION, address.redirect() + &query);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    response
}

/// Returns an empty response with the headers that all responses have.
fn blank(status: StatusCode) -> Response<Content> {
    let mut response = Response::new(Content::Nothing);
    *response.status_mut() = status;
    let head = response.headers_mut();
    head.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    head.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn with_content(
    mut response: Response<Content>,
    found: Representation,
    part: Range<u64>,
    is_head: bool,
    access: Access,
) -> Result<Response<Content>, OpenError> {
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, found.content_type);
    head.insert(CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
    if let Some(coding) = found.content_encoding {
        head.insert(CONTENT_ENCODING, coding);
    }
    if !is_head {
        *response.body_mut() = Content::of(found.file, part, access)?;
    }
    Ok(response)
}

fn without_content(mut response: Response<Content>, status: StatusCode) -> Response<Content> {
    *response.status_mut() = status;
    response
}

fn unsatisfiable(mut response: Response<Content>, size: u64) -> Response<Content> {
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    insert_text(&mut response, CONTENT_RANGE, format!("bytes */{size}"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    response
}

fn insert_text(response: &mut Response<Content>, name: HeaderName, text: String) {
    // Numbers and encoded names are valid in a header; were one not, it would be left out.
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(name, value);
    }
}
