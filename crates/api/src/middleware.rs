//! Middleware of every request.

use std::{panic::AssertUnwindSafe, time::Instant};

use actix_web::{
    Error, HttpMessage as _, HttpRequest, ResponseError,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN},
    },
    middleware::Next,
    web::Data,
};
use futures_util::FutureExt;
use launchway_domain::error_chain::ErrorChain;
use tracing::Instrument;

use crate::{
    Api,
    error::{ApiError, Code},
    request_ids::{REQUEST_ID, RequestId},
    routes::Mounted,
};

/// Assigns the request id, rejects foreign origins, catches panics, counts requests, and logs failures.
///
/// It is one layer, because each layer costs every request.
///
/// # Errors
/// After a panic of a handler; it becomes a response in the envelope like any other.
pub async fn middleware<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let began = Instant::now();
    let Some(api) = request.app_data::<Data<Api>>().cloned() else {
        return Err(ApiError::internal("the API's state is not set up").into());
    };
    let id = RequestId::given(request.headers()).unwrap_or_else(|| api.request_ids.next());
    request.extensions_mut().insert(id.clone());
    let method = method_name(request.method());
    let span = tracing::info_span!("request", id = id.as_str(), method, path = request.path());

    let mut response = if comes_from_elsewhere(&request, &api) {
        let refusal = ApiError::new(
            Code::Forbidden,
            "a page of another origin may not change anything here; LAUNCHWAY_PUBLIC_URL names the one that may",
        );
        request.into_response(refusal.error_response()).map_into_right_body()
    } else {
        match AssertUnwindSafe(next.call(request)).catch_unwind().instrument(span.clone()).await {
            Ok(answer) => answer?.map_into_left_body(),
            Err(_panic) => {
                api.metrics.count(method, None, 500, began.elapsed());
                return Err(ApiError::internal("a handler panicked").with_header(REQUEST_ID, id).into());
            }
        }
    };

    response.headers_mut().insert(REQUEST_ID, id.into());
    if let Some(unknown) = unknown_parameters(&response) {
        response.headers_mut().insert(UNKNOWN_PARAMETERS, unknown);
    }
    let status = response.status().as_u16();
    let mounted = response.request().app_data::<Mounted>();
    api.metrics.count(method, mounted.map(|mounted| mounted.path), status, began.elapsed());
    if cfg!(debug_assertions)
        && let Some(undeclared) = undeclared_error(&response)
    {
        span.in_scope(|| tracing::error!("{undeclared}"));
        let failure = ApiError::internal(undeclared).error_response();
        return Ok(response.into_response(failure).map_into_right_body());
    }
    if let Some(cause) = cause_of(&response) {
        span.in_scope(|| {
            if status == 503 {
                tracing::warn!(status, cause = %ErrorChain(cause), "request failed temporarily");
            } else {
                tracing::error!(status, cause = %ErrorChain(cause), "request failed");
            }
        });
    }
    Ok(response)
}

/// Returns a sentence about an error code that the endpoint does not declare.
fn undeclared_error<B>(response: &ServiceResponse<B>) -> Option<String> {
    let code = response.response().error()?.as_error::<ApiError>()?.code();
    let (request, mounted) = (response.request(), response.request().app_data::<Mounted>()?);
    let is_declared = code == Code::MethodNotAllowed || mounted.declares(request.method(), code);
    (!is_declared)
        .then(|| format!("{} {} does not declare `{}`", request.method(), mounted.path, code.name()))
}

/// The header with the names of the query parameters that the endpoint does not read.
const UNKNOWN_PARAMETERS: HeaderName = HeaderName::from_static("x-unknown-parameters");

/// The number of parameters that it names, and the length of each name.
const MOST_NAMED: (usize, usize) = (20, 64);

/// Returns the names of the query parameters that the endpoint does not read, if there are any.
fn unknown_parameters<B>(response: &ServiceResponse<B>) -> Option<HeaderValue> {
    let request = response.request();
    if request.query_string().is_empty() {
        return None;
    }
    let names = request.app_data::<Mounted>()?.unknown_parameters(request.method(), request.query_string());
    let shown = |name: &String| name.escape_default().take(MOST_NAMED.1).collect::<String>();
    let names: Vec<_> = names.iter().take(MOST_NAMED.0).map(shown).collect();
    if names.is_empty() { None } else { names.join(", ").try_into().ok() }
}

/// Returns the name of a method. Unknown ones share a name, so that clients cannot create any number of
/// metrics.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Returns whether a browser reports a state-changing request of a page of another origin.
fn comes_from_elsewhere(request: &ServiceRequest, api: &Api) -> bool {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    changes
        && request.headers().get(ORIGIN).is_some_and(|origin| {
            !is_own_origin(origin, request.headers(), api.options.public_origin.as_deref())
        })
}

/// Returns whether the browser reports that the request comes from a page of this server's own origin. False without an
/// `Origin` header.
#[must_use]
pub fn is_from_own_page(request: &HttpRequest) -> bool {
    let public = request.app_data::<Data<Api>>().and_then(|api| api.options.public_origin.as_deref());
    let origin = request.headers().get(ORIGIN);
    origin.is_some_and(|origin| is_own_origin(origin, request.headers(), public))
}

fn is_own_origin(origin: &HeaderValue, headers: &HeaderMap, public: Option<&str>) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let of_host = match (origin.split_once("://"), host) {
        (Some(("http" | "https", authority)), Some(host)) => authority.eq_ignore_ascii_case(host),
        _ => false,
    };
    of_host || public.is_some_and(|public| origin.eq_ignore_ascii_case(public))
}

fn cause_of<B>(response: &ServiceResponse<B>) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
    response.response().error()?.as_error::<ApiError>()?.cause()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(origin: &str, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        is_own_origin(&HeaderValue::from_str(origin).unwrap(), &headers, Some("https://deploy.example.com"))
    }

    #[test]
    fn the_own_host_and_the_public_url_are_own_origins() {
        assert!(is_own("http://127.0.0.1:8080", "127.0.0.1:8080"));
        assert!(is_own("https://Launch.Example.com", "launch.example.com"));
        assert!(is_own("https://deploy.example.com", "10.0.0.1:8080"));
    }

    #[test]
    fn every_other_origin_is_foreign() {
        for origin in [
            "null",
            "",
            "http://127.0.0.1:8081",
            "http://127.0.0.1",
            "http://127.0.0.1:8080.evil.example",
            "http://evil.example/127.0.0.1:8080",
            "https://deploy.example.com.evil.example",
            "http://deploy.example.com",
            "ftp://127.0.0.1:8080",
            "127.0.0.1:8080",
        ] {
            assert!(!is_own(origin, "127.0.0.1:8080"), "{origin}");
        }
    }
}
