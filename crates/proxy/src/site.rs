//! Static sites: answers from the files of a published folder.
//!
//! - A folder is answered by its `index.html`; without a slash at the end it redirects there.
//! - What is no file is answered by the site's `200.html`, for applications that route in the
//!   browser: if the last name of the path has no extension, or if the client asks for HTML by name.
//!   So a script that is missing is missing, and not a page.
//! - Otherwise it is not found, and `404.html` of the site says so.
//! - Names that begin with a dot are not served, but for `/.well-known/`.
//! - `name.br` and `name.gz` beside `name` are sent in its place to who takes them.
//! - A copy may be kept and has to be compared before each use, which costs no more than an answer
//!   without a body.

mod address;
mod answers;
mod conditions;
mod media_types;
mod ranges;
mod reading;
mod release;
mod representation;
mod tags;

use std::path::Path;

use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, ALLOW, RANGE, VARY},
};
use tokio::task::spawn_blocking;

use self::{
    address::Address,
    answers::{Content, not_found, redirect, representation},
    conditions::Conditions,
    release::{Entry, OpenError, Release},
    representation::{Representation, Takes},
};
use crate::{
    body::{self, Body},
    pages::{Problem, accept, page},
};

/// Answers a request from the files in `folder`. The request's body is not looked at.
pub async fn serve<B>(folder: &Path, request: &Request<B>) -> Response<Body> {
    let answered = match Asked::of(request) {
        Err(problem) => Err(problem),
        Ok(asked) => {
            let folder = folder.to_owned();
            // Files make their reader wait, and threads that serve requests never wait.
            spawn_blocking(move || asked.answer(&folder)).await.unwrap_or_else(|error| {
                tracing::error!(%error, "answering from a site's files failed");
                Err(Problem::TooBusy)
            })
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

/// What a request asks of a site.
struct Asked {
    address: Address,
    query: Option<String>,
    /// Whether the site's `200.html` may answer.
    takes_page: bool,
    takes: Takes,
    conditions: Conditions,
    /// Only for GET: the standard knows no parts of other answers.
    range: Option<HeaderValue>,
    /// Whether the answer is all head.
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

    fn answer(&self, folder: &Path) -> Result<Response<Content>, Problem> {
        self.find(folder).map_err(|error| match error {
            OpenError::Missing => Problem::NotFound,
            OpenError::Gone => Problem::Absent,
            OpenError::Busy(error) => {
                tracing::warn!(%error, "a site's file cannot be opened");
                Problem::TooBusy
            }
            OpenError::Fault(error) => {
                tracing::error!(%error, "a site's file cannot be read");
                Problem::Absent
            }
        })
    }

    fn find(&self, folder: &Path) -> Result<Response<Content>, OpenError> {
        let release = Release::open(folder)?;
        let path = self.address.file();
        match self.entry(&release, &path) {
            Ok(Entry::File(file, metadata)) => {
                let found = Representation::choose(&release, &path, file, metadata, self.takes)?;
                representation(self, folder, found)
            }
            Ok(Entry::Folder) => Ok(redirect(&self.address, self.query.as_deref())),
            Err(OpenError::Missing) => self.instead(&release, folder),
            Err(error) => Err(error),
        }
    }

    /// What is at the address. A folder without a page is nothing that anybody has to know of.
    fn entry(&self, release: &Release, path: &Path) -> Result<Entry, OpenError> {
        let entry = release.entry(path)?;
        if matches!(entry, Entry::Folder) {
            release.file(&self.address.as_folder().file())?;
        }
        Ok(entry)
    }

    /// What the site has for paths that lead to no file.
    fn instead(&self, release: &Release, folder: &Path) -> Result<Response<Content>, OpenError> {
        let own = |name: &str| Representation::open(release, Path::new(name), self.takes);
        let page = if self.takes_page { own("200.html") } else { Err(OpenError::Missing) };
        let mut response = match page {
            Ok(page) => representation(self, folder, page)?,
            Err(OpenError::Missing) => not_found(own("404.html")?, self.is_head)?,
            Err(error) => return Err(error),
        };
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        Ok(response)
    }
}
