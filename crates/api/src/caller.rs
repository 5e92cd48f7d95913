//! Authentication of the caller.

use std::{future::Future, ops::Deref, pin::Pin};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::header::{AUTHORIZATION, HeaderMap},
    web::Data,
};
use launchway_application::Error;
use launchway_domain::{auth::Actor, ids::OrganizationId};

use crate::{
    Api,
    client::origin,
    endpoint::{Access, Description, Part},
    error::{ApiError, Code},
    schema::uuid_text,
};

/// The authenticated caller. A handler that takes one is reached by authenticated requests only.
pub(crate) struct Caller(Actor);

impl Deref for Caller {
    type Target = Actor;

    fn deref(&self) -> &Actor {
        &self.0
    }
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let Some(api) = request.app_data::<Data<Api>>() else {
                return Err(ApiError::internal("the API's state is not set up"));
            };
            let token = bearer(request.headers()).ok_or(Error::Unauthenticated)?;
            let organization = organization(request.headers());
            let wanted = organization.as_ref().ok().copied().flatten();
            let actor = api.services.authentication.authenticate(token, wanted, origin(&request)).await?;
            // Only authenticated callers get the other errors of the request.
            organization?;
            Ok(Self(actor))
        })
    }
}

impl Part for Caller {
    fn describe(description: &mut Description) {
        description.access(Access::Token);
        description.fails(&[Code::Unauthenticated, Code::Forbidden, Code::InvalidId]);
        description.parameter(
            "header",
            "X-Organization-Id",
            "The organization to act in; without it that of the oldest membership. An API token acts in its own",
            false,
            uuid_text(),
        );
    }
}

/// Takes a caller if there is one: the handler decides who needs to be authenticated.
impl Part for Result<Caller, ApiError> {
    fn describe(description: &mut Description) {
        description.fails(&[Code::Unauthenticated, Code::Forbidden, Code::InvalidId]);
    }
}

/// The caller of an operation that needs a session: API tokens may not manage tokens, passwords and second
/// factors.
pub(crate) struct SessionCaller(Caller);

impl Deref for SessionCaller {
    type Target = Actor;

    fn deref(&self) -> &Actor {
        &self.0
    }
}

impl FromRequest for SessionCaller {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = Caller::from_request(request, payload);
        Box::pin(async move {
            let caller = caller.await?;
            caller.session().map_err(Error::from)?;
            Ok(Self(caller))
        })
    }
}

impl Part for SessionCaller {
    fn describe(description: &mut Description) {
        Caller::describe(description);
        description.access(Access::Session);
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn organization(headers: &HeaderMap) -> Result<Option<OrganizationId>, ApiError> {
    headers
        .get("x-organization-id")
        .map(|value| {
            value
                .to_str()
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| ApiError::new(Code::InvalidId, "the header X-Organization-Id must be a UUID"))
        })
        .transpose()
}
