//! The registry that the images of an installation are pushed to, by its HTTP API (the distribution specification of the
//! Open Container Initiative). The command line of docker lists and deletes nothing in a registry.
//!
//! **Invariant:** a password is sent without encryption only if the registry is one that the operator declared as insecure.

mod challenge;
mod credentials;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use http_body_util::Empty;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderValue},
};
use launchway_domain::{
    deployments::{ImageDeletion, ImageDigest, ImageName, ImageRegistry, StepError},
    ids::ApplicationId,
    secret::Secret,
};
use serde::Deserialize;
use url::Url;

use self::challenge::{Challenge, next_page};
use crate::{
    docker::swarm::{PushRegistry, SwarmEngine},
    http::HttpClient,
    outbound::Trust,
};

/// The number of tags that are asked for at once. Registries may return fewer, or all of them.
const PAGE: usize = 1000;
/// The most pages of a list that are read.
const MOST_PAGES: usize = 100;
/// A digest that no image has.
const NO_DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
/// The kinds of manifests whose digests are asked for.
const MANIFESTS: &str = "application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";

/// Knows which registries are used without TLS.
#[async_trait]
pub trait InsecureRegistries: Send + Sync {
    /// Returns whether a registry, a host with or without a port, is used without TLS; `None` if that is not known now.
    async fn is_insecure(&self, host: &str) -> Option<bool>;
}

#[async_trait]
impl InsecureRegistries for SwarmEngine {
    async fn is_insecure(&self, host: &str) -> Option<bool> {
        self.is_insecure_registry(host).await
    }
}

/// The registry of an installation on a Docker Swarm.
pub struct HttpRegistry {
    registry: PushRegistry,
    insecure: Arc<dyn InsecureRegistries>,
    /// The configuration folder of docker's command line.
    docker_config: Option<PathBuf>,
    http: HttpClient,
    /// The `Authorization` header that the registry accepted last.
    authorization: Mutex<Option<Secret<String>>>,
}

#[derive(Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

/// The answer of a server of tokens. Some use the name of OAuth 2.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl HttpRegistry {
    /// Returns the registry. `docker_config` is the folder with docker's `config.json`. Does not connect yet.
    #[must_use]
    pub fn new(
        registry: PushRegistry,
        insecure: Arc<dyn InsecureRegistries>,
        docker_config: Option<PathBuf>,
        trust: Trust,
    ) -> Self {
        let (http, authorization) = (HttpClient::new(trust), Mutex::default());
        Self { registry, insecure, docker_config, http, authorization }
    }

    /// Returns the host and the port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.registry.host()
    }

    /// Asks for the deletion of an image that does not exist.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if the registry deletes no images; [`StepError::Retryable`] if it is unreachable.
    pub async fn require_deletion(&self) -> Result<(), StepError> {
        self.delete_digest(&self.repository("launchway/none"), NO_DIGEST).await
    }

    /// Returns the name of a repository in the registry, which may have a path of its own.
    fn repository(&self, name: &str) -> String {
        let registry = self.registry.to_string();
        registry.split_once('/').map_or_else(|| name.to_owned(), |(_, path)| format!("{path}/{name}"))
    }

    fn unreachable(&self, error: &dyn std::fmt::Display) -> StepError {
        StepError::Retryable(format!("the registry `{}` cannot be reached: {error}", self.host()))
    }

    fn rejected(&self, reason: &str) -> StepError {
        StepError::Rejected(format!("the registry `{}` {reason}", self.host()))
    }

    /// Sends a request, and again with a login if the registry requires one.
    async fn send(&self, method: Method, target: &str) -> Result<Response<Bytes>, StepError> {
        let is_insecure = self.insecure.is_insecure(self.host()).await.ok_or_else(|| {
            StepError::Retryable("the Docker engine does not report which registries are insecure".to_owned())
        })?;
        let url = format!("{}://{}{target}", if is_insecure { "http" } else { "https" }, self.host());
        let known = self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut response = self.exchange(&method, &url, known.as_ref()).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let authorization = self.authorize(&response, is_insecure).await?;
            response = self.exchange(&method, &url, Some(&authorization)).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                let mut known = self.authorization.lock().unwrap_or_else(PoisonError::into_inner);
                *known = Some(authorization);
            }
        }
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.rejected(&format!(
                "does not let this installation list and delete images: log in with `docker login {}` as a user who may",
                self.host()
            ))),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(StepError::Retryable(format!("the registry `{}` answered {status}", self.host())))
            }
            _ => Ok(response),
        }
    }

    async fn exchange(
        &self,
        method: &Method,
        url: &str,
        authorization: Option<&Secret<String>>,
    ) -> Result<Response<Bytes>, StepError> {
        let request = Request::builder().method(method).uri(url).header(header::ACCEPT, MANIFESTS);
        let mut request = request.body(Empty::<Bytes>::new()).map_err(|error| self.unreachable(&error))?;
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::from_str(authorization.expose())
                .map_err(|_invalid| self.rejected("has a login that cannot be sent by HTTP"))?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        self.http.send(request).await.map_err(|error| self.unreachable(&error))
    }

    /// Returns the `Authorization` header that a refused request needs.
    async fn authorize(
        &self,
        refused: &Response<Bytes>,
        is_insecure: bool,
    ) -> Result<Secret<String>, StepError> {
        let login = credentials::of(self.docker_config.as_deref(), self.host()).await;
        let login = login.map_err(|reason| self.rejected(&format!("requires a login: {reason}")))?;
        let challenges = refused.headers().get_all(header::WWW_AUTHENTICATE);
        match challenges.iter().find_map(Challenge::parse) {
            Some(Challenge::Basic) => login.ok_or_else(|| {
                self.rejected(&format!("requires a login: run `docker login {}`", self.host()))
            }),
            Some(Challenge::Bearer(url)) => self.token(&url, login.as_ref(), is_insecure).await,
            None => Err(self.rejected("requires a login of an unknown kind")),
        }
    }

    /// Asks a server of tokens for one. Without a login, it may give one for what everybody may do.
    async fn token(
        &self,
        url: &Url,
        login: Option<&Secret<String>>,
        is_insecure: bool,
    ) -> Result<Secret<String>, StepError> {
        if url.scheme() != "https" && !is_insecure {
            return Err(self.rejected("names a server of tokens without TLS"));
        }
        let response = self.exchange(&Method::GET, url.as_str(), login).await?;
        let host = url.host_str().unwrap_or_default();
        match response.status() {
            status if status.is_success() => {}
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(StepError::Retryable(format!("`{host}` answered {status} instead of a token")));
            }
            status => {
                let reason = format!("requires a token, and `{host}` answered {status}: run `docker login`");
                return Err(self.rejected(&reason));
            }
        }
        let token: Option<Token> = serde_json::from_slice(response.body()).ok();
        let token = token.and_then(|answer| answer.token.or(answer.access_token));
        let token =
            token.ok_or_else(|| self.rejected(&format!("requires a token, and `{host}` gave none")))?;
        Ok(Secret::new(format!("Bearer {token}")))
    }

    /// Returns the digest of a tag; `None` if there is no such tag.
    async fn digest(&self, repository: &str, image: &ImageName) -> Result<Option<ImageDigest>, StepError> {
        let tag = image.as_str().rsplit_once(':').map_or("", |(_, tag)| tag);
        let response = self.send(Method::HEAD, &format!("/v2/{repository}/manifests/{tag}")).await?;
        match response.status() {
            StatusCode::NOT_FOUND => return Ok(None),
            status if !status.is_success() => {
                return Err(self.rejected(&format!("answered {status} instead of a manifest")));
            }
            _ => {}
        }
        let digest = response.headers().get("docker-content-digest");
        let digest = digest.and_then(|digest| digest.to_str().ok()?.parse().ok());
        digest.map(Some).ok_or_else(|| self.rejected("reports no digests of images"))
    }

    async fn delete_digest(&self, repository: &str, digest: &str) -> Result<(), StepError> {
        let response = self.send(Method::DELETE, &format!("/v2/{repository}/manifests/{digest}")).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(self.rejected(
                "does not delete images: start it with REGISTRY_STORAGE_DELETE_ENABLED=true, if it is `docker-registry`",
            )),
            StatusCode::NOT_FOUND => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(self.rejected(&format!("answered {status} to the deletion of an image"))),
        }
    }
}

#[async_trait]
impl ImageRegistry for HttpRegistry {
    async fn images(&self, application: ApplicationId) -> Result<Vec<ImageName>, StepError> {
        let name = format!("launchway/{application}");
        let first = format!("/v2/{}/tags/list?n={PAGE}", self.repository(&name));
        let base: Url =
            format!("http://{}{first}", self.host()).parse().map_err(|error| self.unreachable(&error))?;
        let (mut images, mut next) = (Vec::new(), Some(first));
        for _ in 0..MOST_PAGES {
            let Some(target) = next else { return Ok(images) };
            let response = self.send(Method::GET, &target).await?;
            match response.status() {
                // No image of the application was pushed.
                StatusCode::NOT_FOUND => return Ok(images),
                status if !status.is_success() => {
                    return Err(self.rejected(&format!("answered {status} instead of a list of tags")));
                }
                _ => {}
            }
            let listed: Tags = serde_json::from_slice(response.body())
                .map_err(|_invalid| self.rejected("gave no list of tags"))?;
            let names = listed.tags.unwrap_or_default();
            let names = names.iter().filter_map(|tag| format!("{name}:{tag}").parse::<ImageName>().ok());
            images.extend(names.filter(|image| image.whose().is_some_and(|(owner, _)| owner == application)));
            next = response.headers().get(header::LINK).and_then(|link| next_page(link, &base));
        }
        // Without the rest of them, it is unknown which digests are still needed.
        Err(self.rejected("lists more tags of an application than can be read"))
    }

    async fn delete(&self, image: &ImageName, kept: &[ImageName]) -> Result<ImageDeletion, StepError> {
        let repository = self.repository(image.repository());
        let Some(digest) = self.digest(&repository, image).await? else { return Ok(ImageDeletion::Deleted) };
        for other in kept {
            if self.digest(&repository, other).await?.as_ref() == Some(&digest) {
                return Ok(ImageDeletion::Shared);
            }
        }
        self.delete_digest(&repository, digest.as_str()).await?;
        Ok(ImageDeletion::Deleted)
    }
}
