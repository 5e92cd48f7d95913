//! Idempotent requests: processed once, however often they are sent.

use std::{
    future::{Ready, ready},
    marker::PhantomData,
    time::Duration,
};

use actix_web::{
    FromRequest, HttpRequest, HttpResponse, Responder, body::BoxBody, dev::Payload, http::header::HeaderValue,
};
use launchway_application::{Error, idempotency::PriorRequest};
use launchway_domain::{
    auth::{Actor, Permission},
    idempotency::{BodyHash, IdempotencyKey},
    value::InvalidValue,
};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::{Answer, Description, Part},
    envelope::{Done, Envelope, done, json_bytes, success},
    error::{ApiError, Code},
    input::Input,
    schema::text_like,
};

/// The number and the interval of polls for the response of a concurrent duplicate.
const TWIN: (u32, Duration) = (20, Duration::from_millis(50));

/// A body with an optional `Idempotency-Key`.
pub(crate) struct Idempotent<T> {
    body: Body<T>,
    name: Option<HeaderValue>,
    operation: String,
}

impl<T> FromRequest for Idempotent<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = Body::from_request(request, payload).into_inner();
        let name = request.headers().get("idempotency-key").cloned();
        let operation = format!("{} {}", request.method(), request.path());
        ready(body.map(|body| Self { body, name, operation }))
    }
}

impl<T: Input> Part for Idempotent<T> {
    fn describe(description: &mut Description) {
        Body::<T>::describe(description);
        describe_key(description);
    }
}

/// Adds the header to the description of an endpoint.
pub(crate) fn describe_key(description: &mut Description) {
    description.fails(&[Code::Conflict]);
    let about = "A repeated key returns the first response";
    let schema = text_like("^[ -~]{1,255}$", "0b8c7f9a");
    description.parameter("header", "Idempotency-Key", about, false, schema);
}

/// The response of an idempotent request: an envelope, new or stored.
pub(crate) struct Stored<E>(HttpResponse, PhantomData<E>);

impl<E> Responder for Stored<E> {
    type Body = BoxBody;

    fn respond_to(self, _request: &HttpRequest) -> HttpResponse {
        self.0
    }
}

impl<E: Answer> Answer for Stored<E> {
    fn describe(description: &mut Description) {
        E::describe(description);
    }
}

impl<T: Input> Idempotent<T> {
    /// Reads the body and its fields, and returns the guard that processes the request once. A repeated
    /// request needs `permission`, as the first one did.
    pub(crate) async fn read(self, caller: &Caller, permission: Permission) -> Result<(T, Once), ApiError> {
        let (body, header) = self.into_parts();
        let (input, hash) = body.read_with_hash().await?;
        Ok((input, header.once(caller, permission, hash)?))
    }
}

impl<T> Idempotent<T> {
    /// Returns the body unread, for a handler that stores it piece by piece.
    pub(crate) fn into_parts(self) -> (Body<T>, KeyHeader) {
        let Self { body, name, operation } = self;
        (body, KeyHeader { name, operation })
    }
}

/// The header of an idempotent request.
pub(crate) struct KeyHeader {
    name: Option<HeaderValue>,
    operation: String,
}

impl KeyHeader {
    /// Returns the guard that processes a request with this hash of its body once.
    pub(crate) fn once(
        self,
        caller: &Caller,
        permission: Permission,
        hash: BodyHash,
    ) -> Result<Once, ApiError> {
        let Self { name, operation } = self;
        let once = Once { key: None, actor: Actor::clone(caller), permission, shows_current: false };
        let Some(name) = name else { return Ok(once) };
        let name = name.to_str().unwrap_or_default().parse().map_err(|refused: InvalidValue| {
            ApiError::new(Code::ValidationFailed, format!("the header Idempotency-Key {refused}"))
        })?;
        let scope = caller.organization().map_err(Error::from)?;
        let user_id = caller.user_id();
        let key = IdempotencyKey { scope, user_id, operation, name, body: hash };
        Ok(Once { key: Some(key), ..once })
    }
}

/// The guard that processes a request once.
pub(crate) struct Once {
    key: Option<IdempotencyKey>,
    actor: Actor,
    permission: Permission,
    shows_current: bool,
}

impl Once {
    /// Makes a repeated request return the current state instead of the first response, for a resource to
    /// which permissions in this organization do not apply.
    pub(crate) fn showing_current(self) -> Self {
        Self { shows_current: true, ..self }
    }

    /// Responds with the result of `make`, or with the stored response of the first request. `again` reads
    /// the created resource if the stored response is missing, or not visible to this caller.
    pub(crate) async fn answer<T, V: Serialize>(
        self,
        api: &Api,
        message: &'static str,
        make: impl AsyncFnOnce(Option<IdempotencyKey>) -> Result<T, Error>,
        again: impl AsyncFn(Uuid) -> Result<T, Error>,
        view: impl Fn(T) -> V,
    ) -> Result<Stored<Envelope<V>>, ApiError> {
        self.answer_in(api, make, again, |made| success(message, view(made))).await
    }

    /// Does the same for a response without data.
    pub(crate) async fn answer_done(
        self,
        api: &Api,
        message: &'static str,
        make: impl AsyncFnOnce(Option<IdempotencyKey>) -> Result<(), Error>,
    ) -> Result<Stored<Done>, ApiError> {
        self.answer_in(api, make, async |_| Ok(()), |()| done(message)).await
    }

    async fn answer_in<T, E: Serialize>(
        self,
        api: &Api,
        make: impl AsyncFnOnce(Option<IdempotencyKey>) -> Result<T, Error>,
        again: impl AsyncFn(Uuid) -> Result<T, Error>,
        envelope: impl Fn(T) -> E,
    ) -> Result<Stored<E>, ApiError> {
        let respond = |body| Stored(json_bytes(HttpResponse::Ok(), body), PhantomData);
        let shown = |made: T| {
            let body = serde_json::to_vec(&envelope(made));
            body.map_err(|error| ApiError::internal(error.to_string()))
        };
        let Self { key, actor, permission, shows_current } = self;
        let Some(key) = key else { return Ok(respond(shown(make(None).await?)?)) };
        let idempotency = &api.services.idempotency;
        let mut earlier = idempotency.earlier(&actor, permission, &key).await?;
        if earlier.is_none() {
            match make(Some(key.clone())).await {
                Err(Error::Repeated) => {
                    // A concurrent duplicate was faster; its response is stored soon.
                    for _ in 0..TWIN.0 {
                        earlier = idempotency.earlier(&actor, permission, &key).await?;
                        if shows_current || matches!(earlier, Some(PriorRequest::Answered(_))) {
                            break;
                        }
                        tokio::time::sleep(TWIN.1).await;
                    }
                }
                made => {
                    let body = shown(made?)?;
                    if !shows_current {
                        idempotency.keep(&actor, &key, &body).await?;
                    }
                    return Ok(respond(body));
                }
            }
        }
        let body = match earlier {
            Some(PriorRequest::Answered(body)) => body,
            // It was processed, but its response is lost, or shows more than this caller may see.
            Some(PriorRequest::CarriedOut(resource)) => shown(again(resource).await?)?,
            None => return Err(Error::Repeated.into()),
        };
        Ok(respond(body))
    }
}
