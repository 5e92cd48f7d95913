//! Forms that a browser sends.

use std::{future::Future, pin::Pin};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::{
        StatusCode,
        header::{CONTENT_TYPE, HeaderValue},
    },
    web::{Bytes, Data, Query},
};
use subtle::ConstantTimeEq as _;
use tokio::time::timeout;

use crate::{Dashboard, context::PageContext, error::PageError};

/// The name of the field with the token of the session.
pub(crate) const TOKEN: &str = "form_token";

/// The fields of a form from a page of this server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Returns a field as it was sent; empty if it is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns whether a checkbox is checked.
    pub(crate) fn is_checked(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }

    /// Returns every field, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Sets the value of a field.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }
}

/// Reads a form before a login: there is no session whose token it could contain.
impl FromRequest for Form {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let refusal = refusal(request);
        let bytes = Bytes::from_request(request, payload);
        let limit = request.app_data::<Data<Dashboard>>().map(|dashboard| dashboard.options.body_timeout);
        let is_form = request.headers().get(CONTENT_TYPE).is_some_and(|kind| {
            kind.as_bytes().to_ascii_lowercase().starts_with(b"application/x-www-form-urlencoded")
        });
        Box::pin(async move {
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
            if !is_form {
                return Err(PageError::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "this is no form of the dashboard",
                ));
            }
            let late = || PageError::new(StatusCode::REQUEST_TIMEOUT, "the form did not arrive in time");
            let bytes = timeout(limit.unwrap_or_default(), bytes).await.map_err(|_elapsed| late())?;
            let bytes = bytes.map_err(|error| {
                let status = error.as_response_error().status_code();
                PageError::new(status, "the form is too large, or did not arrive completely")
            })?;
            let unreadable = || PageError::new(StatusCode::BAD_REQUEST, "the form cannot be read");
            let text = std::str::from_utf8(&bytes).map_err(|_invalid| unreadable())?;
            let fields = Query::<Vec<(String, String)>>::from_query(text).map_err(|_invalid| unreadable())?;
            Ok(Self(fields.into_inner()))
        })
    }
}

/// A form of a visitor who is logged in, with the token of their session.
pub(crate) struct Submitted {
    pub(crate) context: PageContext,
    pub(crate) form: Form,
}

impl FromRequest for Submitted {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (context, form) =
            (PageContext::from_request(request, payload), Form::from_request(request, payload));
        Box::pin(async move {
            let (context, form) = (context.await?, form.await?);
            let is_own = form.text(TOKEN).as_bytes().ct_eq(context.visitor.form_token.as_bytes());
            if !bool::from(is_own) {
                return Err(foreign());
            }
            Ok(Self { context, form })
        })
    }
}

/// Returns the error for a form that did not come from a page of this server.
fn refusal(request: &HttpRequest) -> Option<PageError> {
    let dashboard = request.app_data::<Data<Dashboard>>()?;
    let is_own = match request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes) {
        Some(site) => site == b"same-origin",
        // Browsers from before 2023 send only `Origin`.
        None => (dashboard.options.is_from_own_page)(request),
    };
    (!is_own).then(foreign)
}

fn foreign() -> PageError {
    let message =
        "this form does not come from a page of this session; go back, reload the page and try again";
    PageError::new(StatusCode::FORBIDDEN, message)
}
