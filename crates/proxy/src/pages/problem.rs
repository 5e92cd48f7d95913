//! Errors of the proxy, and their texts.

use std::borrow::Cow;

use http::StatusCode;

/// The reason why there is no application's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// No application has the host.
    UnknownHost,
    /// A user stopped the application.
    Stopped,
    /// No deployment of the application is live.
    Absent,
    /// The application refuses connections, or resets them.
    NotAnswering,
    /// The application took too long.
    TooSlow,
    /// The proxy has not received the application's route yet.
    Starting,
    /// The request is invalid for this reason.
    BadRequest(&'static str),
    /// The request line or the headers are too long.
    HeadTooLarge,
    /// The limit of concurrent requests is reached.
    TooBusy,
    /// The site has no such page.
    NotFound,
    /// The site does not support the method.
    MethodNotAllowed,
}

/// The text of a problem.
pub(super) struct Wording {
    pub(super) status: StatusCode,
    /// A machine-readable code.
    pub(super) code: &'static str,
    /// A title without a full stop.
    pub(super) title: &'static str,
    /// An advice for the visitor.
    pub(super) advice: Cow<'static, str>,
    pub(super) retry_after_seconds: Option<u32>,
}

impl Problem {
    pub(super) fn wording(self) -> Wording {
        let (status, code, title, advice) = match self {
            Self::UnknownHost => (
                StatusCode::NOT_FOUND,
                "unknown_host",
                "No application answers to this name",
                "Check the address. If it is right, the application's owner has to add this name to it.",
            ),
            Self::Stopped => (
                StatusCode::SERVICE_UNAVAILABLE,
                "stopped",
                "This application is stopped",
                "Its owner can start it again.",
            ),
            Self::Absent => (
                StatusCode::SERVICE_UNAVAILABLE,
                "not_deployed",
                "This application has no live version",
                "It will be here once its owner has deployed it.",
            ),
            Self::NotAnswering => (
                StatusCode::BAD_GATEWAY,
                "not_answering",
                "This application is not answering",
                "Try again in a moment. If it stays like this, its owner finds the reason in its logs.",
            ),
            Self::TooSlow => (
                StatusCode::GATEWAY_TIMEOUT,
                "too_slow",
                "This application took too long to answer",
                "Try again in a moment. Your request may have been processed.",
            ),
            Self::Starting => (
                StatusCode::SERVICE_UNAVAILABLE,
                "starting",
                "This application will be back in a moment",
                "The server has just started. Try again in a few seconds.",
            ),
            Self::BadRequest(_) => {
                (StatusCode::BAD_REQUEST, "bad_request", "This request cannot be answered", "")
            }
            Self::HeadTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
                "This request is too long",
                "Shorten the address, or delete this site's cookies, and try again.",
            ),
            Self::TooBusy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too_busy",
                "Too many requests are in progress",
                "Try again in a few seconds.",
            ),
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "not_found",
                "There is no such page",
                "Check the address, or begin at the site's first page.",
            ),
            Self::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "This cannot be done here",
                "The site's pages can only be read.",
            ),
        };
        let advice = match self {
            Self::BadRequest(reason) => Cow::Owned(format!("What is wrong with it: {reason}.")),
            _ => Cow::Borrowed(advice),
        };
        Wording { status, code, title, advice, retry_after_seconds: self.retry_after_seconds() }
    }

    /// The value of `Retry-After`, where a retry makes sense.
    fn retry_after_seconds(self) -> Option<u32> {
        match self {
            Self::Starting => Some(2),
            Self::TooBusy => Some(5),
            Self::Absent => Some(30),
            Self::Stopped => Some(120),
            Self::UnknownHost
            | Self::NotAnswering
            | Self::TooSlow
            | Self::BadRequest(_)
            | Self::HeadTooLarge
            | Self::NotFound
            | Self::MethodNotAllowed => None,
        }
    }
}
