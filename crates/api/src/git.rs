//! `/git/…`: repositories for git clients, by the smart HTTP protocol.
//!
//! Errors are plain text, because git prints only that.

mod address;
pub(crate) mod body;
mod output;
mod push;

use std::io::Read as _;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{
            AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, HeaderMap, HeaderValue, RETRY_AFTER,
            WWW_AUTHENTICATE,
        },
    },
    web::{self, Data, Payload, ServiceConfig},
};
use data_encoding::BASE64;
use flate2::read::GzDecoder;
use launchway_application::{Error, sources::SourceTarget};
use launchway_domain::{
    auth::Actor,
    error_chain::ErrorChain,
    sources::{GitService, packet},
};

use self::address::{Address, Place};
use crate::{Api, client::origin, error::Code};

/// The largest request of a client that fetches, decompressed.
const LARGEST_REQUEST: usize = 8 * 1024 * 1024;

/// Mounts the repositories.
pub(crate) fn configure(config: &mut ServiceConfig) {
    let resource =
        web::resource("/git/{path:.*}").route(web::get().to(advertise)).route(web::post().to(serve));
    config.service(resource.default_service(web::to(async || {
        refusal(StatusCode::METHOD_NOT_ALLOWED, "git sends GET and POST here")
    })));
}

/// A request of a git client to a repository.
struct GitRequest {
    actor: Actor,
    target: SourceTarget,
    is_v2: bool,
}

impl GitRequest {
    /// Authenticates the client, and finds the repository.
    async fn open(api: &Api, request: &HttpRequest, place: Place) -> Result<Self, HttpResponse> {
        let actor = authenticate(api, request).await?;
        let sources = &api.services.sources;
        let found = match place {
            Place::Id(id) => sources.by_id(&actor, id).await,
            Place::Named { organization, name } => match sources.in_organization(&actor, &organization) {
                Some(actor) => sources.by_name(&actor, name).await.map(|target| (actor, target)),
                None => Err(Error::NotFound("the repository")),
            },
        };
        let (actor, target) = found.map_err(failure)?;
        let protocol = request.headers().get("git-protocol").and_then(|value| value.to_str().ok());
        let is_v2 = protocol.is_some_and(|text| text.split(':').any(|part| part == "version=2"));
        Ok(Self { actor, target, is_v2 })
    }
}

async fn advertise(api: Data<Api>, request: HttpRequest) -> HttpResponse {
    advertise_or_refuse(&api, &request).await.unwrap_or_else(|refusal| refusal)
}

async fn advertise_or_refuse(api: &Api, request: &HttpRequest) -> Result<HttpResponse, HttpResponse> {
    let address = Address::parse(request.uri().path()).filter(|address| address.action == "info/refs");
    let address = address.ok_or_else(no_repository)?;
    let service = match request.query_string() {
        "service=git-upload-pack" => GitService::UploadPack,
        "service=git-receive-pack" => GitService::ReceivePack,
        _ => {
            return Err(refusal(
                StatusCode::FORBIDDEN,
                "this server needs a git client with the smart protocol",
            ));
        }
    };
    let opened = GitRequest::open(api, request, address.place).await?;
    let is_v2 = opened.is_v2 && service == GitService::UploadPack;
    let refs = api.services.sources.advertise(&opened.actor, &opened.target, service, is_v2).await;
    let refs = refs.map_err(failure)?;
    let mut body = Vec::new();
    if !is_v2 {
        body = packet(format!("# service={}\n", service.as_str()).as_bytes());
        body.extend(b"0000");
    }
    body.extend(refs);
    Ok(answer(service, "advertisement").body(body))
}

async fn serve(api: Data<Api>, request: HttpRequest, payload: Payload) -> HttpResponse {
    serve_or_refuse(api, &request, payload).await.unwrap_or_else(|refusal| refusal)
}

async fn serve_or_refuse(
    api: Data<Api>,
    request: &HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, HttpResponse> {
    let address = Address::parse(request.uri().path()).ok_or_else(no_repository)?;
    let service = match address.action {
        "git-upload-pack" => GitService::UploadPack,
        "git-receive-pack" => GitService::ReceivePack,
        _ => return Err(no_repository()),
    };
    let opened = GitRequest::open(&api, request, address.place).await?;
    let is_compressed = match request.headers().get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => false,
        Some(b"gzip" | b"x-gzip") => true,
        Some(_) => return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "only gzip is supported")),
    };
    match service {
        GitService::UploadPack => fetch(api, opened, payload, is_compressed).await,
        GitService::ReceivePack if is_compressed => {
            Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a push must not be compressed once more"))
        }
        GitService::ReceivePack => push::receive(api, request, opened, payload).await,
    }
}

async fn fetch(
    api: Data<Api>,
    opened: GitRequest,
    payload: Payload,
    is_compressed: bool,
) -> Result<HttpResponse, HttpResponse> {
    let asked = body::small(payload, LARGEST_REQUEST, api.options.body_timeout).await?;
    let asked = if is_compressed { decompressed(&asked) } else { Some(asked) };
    let damaged = || refusal(StatusCode::BAD_REQUEST, "the body is damaged, or too large");
    let asked = asked.ok_or_else(damaged)?;
    let permit = body::permit(&api).await?;
    let (output, stream) = output::channel();
    let GitRequest { actor, target, is_v2 } = opened;
    actix_web::rt::spawn(async move {
        let _permit = permit;
        let gone = output.clone();
        let sources = &api.services.sources;
        let answered = sources.fetch(&actor, &target, asked, is_v2, std::sync::Arc::new(output));
        tokio::select! {
            answered = answered => {
                if let Err(error) = answered {
                    tracing::warn!(error = %ErrorChain(&error), "fetch failed");
                }
            }
            () = gone.closed() => {}
        }
    });
    Ok(answer(GitService::UploadPack, "result").streaming(stream))
}

/// Returns the decompressed bytes; `None` if they are damaged or too many.
fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut reader = GzDecoder::new(bytes).take(LARGEST_REQUEST as u64 + 1);
    reader.read_to_end(&mut all).ok()?;
    (all.len() <= LARGEST_REQUEST).then_some(all)
}

/// Authenticates by the password, which is a token; the user name is ignored.
async fn authenticate(api: &Api, request: &HttpRequest) -> Result<Actor, HttpResponse> {
    let token = token(request.headers()).ok_or_else(unauthenticated)?;
    let authenticated = api.services.authentication.authenticate(&token, None, origin(request)).await;
    authenticated.map_err(failure)
}

fn token(headers: &HeaderMap) -> Option<String> {
    let (scheme, value) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    let pair = String::from_utf8(BASE64.decode(value.trim().as_bytes()).ok()?).ok()?;
    let (user, password) = pair.split_once(':')?;
    let token = if password.is_empty() { user } else { password };
    (scheme.eq_ignore_ascii_case("basic") && !token.is_empty()).then(|| token.to_owned())
}

fn answer(service: GitService, kind: &str) -> actix_web::HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response.content_type(format!("application/x-{}-{kind}", service.as_str()));
    response.insert_header((CACHE_CONTROL, "no-cache"));
    response
}

fn no_repository() -> HttpResponse {
    refusal(
        StatusCode::NOT_FOUND,
        "there is no repository here; use /git/<application id>.git, or /git/<organization>/<environment>/<application>.git",
    )
}

fn unauthenticated() -> HttpResponse {
    failure(Error::Unauthenticated)
}

fn refusal(status: StatusCode, sentence: &str) -> HttpResponse {
    let mut response = HttpResponse::build(status);
    if status == StatusCode::UNAUTHORIZED {
        response.insert_header((WWW_AUTHENTICATE, "Basic realm=\"Launchway\", charset=\"UTF-8\""));
    }
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response.insert_header((RETRY_AFTER, "5"));
    }
    response.content_type("text/plain; charset=utf-8").body(format!("{sentence}\n"))
}

/// Returns the response for an error of a use case.
fn failure(error: Error) -> HttpResponse {
    let status = match &error {
        Error::Unauthenticated => Code::Unauthenticated.status(),
        Error::Forbidden(_) => StatusCode::FORBIDDEN,
        Error::NotFound(_) => StatusCode::NOT_FOUND,
        Error::Invalid(_) => StatusCode::BAD_REQUEST,
        Error::Conflict(_) | Error::QuotaExceeded(_) => StatusCode::CONFLICT,
        Error::RateLimited { .. } | Error::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
        error => {
            tracing::error!(error = %ErrorChain(error), "request of a git client failed");
            return refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "Launchway cannot do this now; try again in a moment",
            );
        }
    };
    let sentence = match &error {
        Error::Unauthenticated => {
            "a valid token is needed as the password: `launchway git-remote` sets it up".to_owned()
        }
        error => error.to_string(),
    };
    refusal(status, &sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_of(value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        token(&headers)
    }

    #[test]
    fn the_password_is_the_token() {
        let basic = |pair: &str| token_of(&format!("Basic {}", BASE64.encode(pair.as_bytes())));
        assert_eq!(basic("ada:lwt_x:y").as_deref(), Some("lwt_x:y"));
        assert_eq!(basic("lwt_x:").as_deref(), Some("lwt_x"));
        assert_eq!(token_of("bearer lwt_x").as_deref(), Some("lwt_x"));
        for none in ["Basic !", "Basic", "Digest a:b", "Basic Og=="] {
            assert_eq!(token_of(none), None, "{none}");
        }
    }

    #[test]
    fn a_compressed_request_is_bounded() {
        let compress = |length: usize| {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut writer, &vec![0; length]).unwrap();
            writer.finish().unwrap()
        };
        assert_eq!(decompressed(&compress(LARGEST_REQUEST)).unwrap().len(), LARGEST_REQUEST);
        assert!(decompressed(&compress(LARGEST_REQUEST + 1)).is_none());
        assert!(decompressed(b"no gzip").is_none());
    }
}
