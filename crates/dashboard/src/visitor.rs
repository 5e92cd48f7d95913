//! Authentication of the visitor of a page.

use std::{future::Future, ops::Deref, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Data};
use data_encoding::BASE64URL_NOPAD;
use launchway_application::Error;
use launchway_domain::auth::{Action, Actor, Permission, Resource};
use sha2::{Digest as _, Sha256};

use crate::{Dashboard, cookies::Cookies, error::PageError};

/// A visitor who is logged in. A handler that takes one is reached by authenticated requests only; others are sent to
/// the login.
#[derive(Clone)]
pub(crate) struct Visitor {
    actor: Actor,
    /// The token that every form of this session contains.
    pub(crate) form_token: String,
}

impl Deref for Visitor {
    type Target = Actor;

    fn deref(&self) -> &Actor {
        &self.actor
    }
}

impl Visitor {
    /// Returns whether the visitor has a permission, to decide what a page shows.
    pub(crate) fn may(&self, resource: Resource, action: Action) -> bool {
        self.permissions().contain(Permission::new(resource, action))
    }

    /// Authenticates a request by its cookie.
    pub(crate) async fn authenticate(request: &HttpRequest) -> Result<Self, Error> {
        let Some(dashboard) = request.app_data::<Data<Dashboard>>() else {
            return Err(Error::Internal("the state of the dashboard is not set up".into()));
        };
        let cookies = Cookies::of(request, &dashboard.options);
        let token = cookies.session(request).ok_or(Error::Unauthenticated)?;
        let authentication = &dashboard.services.authentication;
        let origin = (dashboard.options.origin)(request);
        let actor = authentication.authenticate(&token, None, origin).await?;
        // An API token is for programs, which use the API.
        actor.session().map_err(|_api_token| Error::Unauthenticated)?;
        let selected = cookies.organization(request).and_then(|id| id.parse().ok());
        let actor = selected.and_then(|id| actor.acting_in(id)).unwrap_or(actor);
        Ok(Self { actor, form_token: form_token(&token) })
    }
}

impl FromRequest for Visitor {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            match Self::authenticate(&request).await {
                Ok(visitor) => Ok(visitor),
                Err(Error::Unauthenticated) => Err(PageError::login(&request)),
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// Returns the token of the forms of a session. It reveals nothing about the token of the session.
fn form_token(session_token: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"launchway dashboard form\0");
    hash.update(session_token.as_bytes());
    BASE64URL_NOPAD.encode(&hash.finalize())
}
