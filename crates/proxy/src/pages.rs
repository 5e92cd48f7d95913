//! STUB: replaced by the engineer who owns it; a merge takes the other side.

use http::{HeaderMap, Response, StatusCode};

use crate::body::{self, Body};

/// Why there is no answer of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// 404
    UnknownHost,
    /// 503
    Stopped,
    /// 503
    Absent,
    /// 502
    NotAnswering,
    /// 504
    TooSlow,
    /// 503
    Starting,
    /// 400
    BadRequest(&'static str),
    /// 431
    HeadTooLarge,
    /// 503
    TooBusy,
}

/// The page about it.
pub fn page(problem: Problem, _headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(body::full(format!("{problem:?}\n")));
    *response.status_mut() = match problem {
        Problem::UnknownHost => StatusCode::NOT_FOUND,
        Problem::NotAnswering => StatusCode::BAD_GATEWAY,
        Problem::TooSlow => StatusCode::GATEWAY_TIMEOUT,
        Problem::BadRequest(_) => StatusCode::BAD_REQUEST,
        Problem::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    response
}
