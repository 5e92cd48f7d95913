//! Static sites: responses from the files of a published folder.
//!
//! - A folder is answered with its `index.html`; without a trailing slash it redirects there.
//! - A path without a file is answered with the site's `200.html`, for applications that route in the
//!   browser: if the last segment of the path has no extension, or if the client asks for HTML by name.
//!   So a missing script is not found, and not answered with a page.
//! - Otherwise the response is 404, with the site's `404.html`.
//! - Names that begin with a dot are not served, except `/.well-known/`.
//! - `name.br` and `name.gz` beside `name` are sent in its place to clients that accept them.
//! - A copy may be cached and has to be revalidated before each use, which costs no more than a response
//!   without a body.

mod address;
mod answers;
mod conditions;
mod media_types;
mod ranges;
mod reader;
mod release;
mod representation;
mod tags;

use std::path::Path;

use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, ALLOW, RANGE, VARY},
};
use tokio::task::spawn_blocking;

pub(crate) use self::reader::FileBody;
use self::{
    address::Address,
    answers::{Content, not_found, redirect, representation},
    conditions::Conditions,
    release::{Access, Entry, OpenError, Release},
    representation::{Representation, Takes},
};
use crate::{
    body::{self, Body},
    pages::{Problem, accept, page},
};

/// Answers a request from the files in `folder`. The request's body is ignored.
pub async fn serve<B>(folder: &Path, request: &Request<B>) -> Response<Body> {
    let answered = match Asked::of(request) {
        Err(problem) => Err(problem),
        Ok(asked) => {
            let found = match asked.find(folder, Access::Cached) {
                Err(OpenError::Uncached) => {
                    let folder = folder.to_owned();
                    // Reading files blocks, which threads that serve requests must not.
                    let finding = spawn_blocking(move || asked.find(&folder, Access::Disk));
                    finding.await.unwrap_or_else(|error| Err(OpenError::Busy(error.into())))
                }
                found => found,
            };
            found.map_err(problem)
        }
    };
    let mut response = match answered {
        Ok(response) => response.map(Content::into_body),
        Err(problem) => page(problem, request.headers()),
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    if request.method() == Method::HEAD {
        *response.body_mut() = body::empty();
    }
    response
}

fn problem(error: OpenError) -> Problem {
    match error {
        OpenError::Missing => Problem::NotFound,
        OpenError::Gone => Problem::Absent,
        OpenError::Uncached => Problem::TooBusy,
        OpenError::Busy(error) => {
            tracing::warn!(%error, "site file open failed");
            Problem::TooBusy
        }
        OpenError::Fault(error) => {
            tracing::error!(%error, "site file read failed");
            Problem::Absent
        }
    }
}

/// The parts of a request that a site uses.
struct Asked {
    address: Address,
    query: Option<String>,
    /// The site's `200.html` may be the response.
    takes_page: bool,
    takes: Takes,
    conditions: Conditions,
    /// Only for GET: the standard defines no ranges of other responses.
    range: Option<HeaderValue>,
    /// The response has no body.
    is_head: bool,
}

impl Asked {
    fn of<B>(request: &Request<B>) -> Result<Self, Problem> {
        let headers = request.headers();
        let is_head = match *request.method() {
            Method::GET => false,
            Method::HEAD => true,
            _ => return Err(Problem::MethodNotAllowed),
        };
        let address = Address::parse(request.uri().path()).ok_or(Problem::NotFound)?;
        Ok(Self {
            query: request.uri().query().map(str::to_owned),
            takes_page: !address.has_extension() || accept::asks_for_html(headers),
            takes: Takes::by_weight(|coding| accept::weight(headers, ACCEPT_ENCODING, coding)),
            conditions: Conditions::of(headers),
            range: headers.get(RANGE).filter(|_| !is_head).cloned(),
            is_head,
            address,
        })
    }

    fn find(&self, folder: &Path, access: Access) -> Result<Response<Content>, OpenError> {
        let release = Release::open(folder, access)?;
        let path = self.address.file();
        match self.entry(&release, &path) {
            Ok(Entry::File(file, metadata)) => {
                let found = Representation::choose(&release, &path, file, metadata, self.takes)?;
                representation(self, folder, found, access)
            }
            Ok(Entry::Folder) => Ok(redirect(&self.address, self.query.as_deref())),
            Err(OpenError::Missing) => self.instead(&release, folder, access),
            Err(error) => Err(error),
        }
    }

    /// Returns the entry at a path. A folder without a page counts as missing.
    fn entry(&self, release: &Release, path: &Path) -> Result<Entry, OpenError> {
        let entry = release.entry(path)?;
        if matches!(entry, Entry::Folder) {
            release.file(&self.address.as_folder().file())?;
        }
        Ok(entry)
    }

    /// Returns the site's fallback for paths without a file.
    fn instead(
        &self,
        release: &Release,
        folder: &Path,
        access: Access,
    ) -> Result<Response<Content>, OpenError> {
        let own = |name: &str| Representation::open(release, Path::new(name), self.takes);
        let page = if self.takes_page { own("200.html") } else { Err(OpenError::Missing) };
        let mut response = match page {
            Ok(page) => representation(self, folder, page, access)?,
            Err(OpenError::Missing) => not_found(own("404.html")?, self.is_head, access)?,
            Err(error) => return Err(error),
        };
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        Ok(response)
    }
}
