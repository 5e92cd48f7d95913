//! What can be wrong, and how a person is told.

use std::borrow::Cow;

use http::StatusCode;

/// Why there is no application's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The name that was asked for leads nowhere.
    UnknownHost,
    /// Somebody stopped the application.
    Stopped,
    /// No version of the application is live.
    Absent,
    /// The application takes no connection, or breaks it.
    NotAnswering,
    /// The application took too long.
    TooSlow,
    /// The proxy does not know yet where the application is.
    Starting,
    /// The request cannot be passed on, because of this.
    BadRequest(&'static str),
    /// The request's first line or its headers are too long.
    HeadTooLarge,
    /// More requests are under way than this machine takes.
    TooBusy,
    /// The site has no such page.
    NotFound,
    /// The site cannot do what the method asks for.
    MethodNotAllowed,
}

/// How a problem is told.
pub(super) struct Wording {
    pub(super) status: StatusCode,
    /// For a program.
    pub(super) code: &'static str,
    /// What is wrong, without a full stop.
    pub(super) title: &'static str,
    /// What to do.
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
                "Try again in a moment. What you asked for may have been done all the same.",
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
                "Too many requests are under way",
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

    /// When it makes sense to come back.
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
