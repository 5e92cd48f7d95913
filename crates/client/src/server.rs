//! The HTTP client: one request, its envelope, and the meaning of an error.

use std::{
    io::Read as _,
    sync::OnceLock,
    time::{Duration, Instant},
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use ureq::{
    Agent, http,
    tls::{Certificate, RootCerts, TlsConfig},
};
use url::Url;

use crate::failure::{Failure, Kind, Outcome};

const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The time for a request that sends or builds much.
const SLOW_LIMIT: Duration = Duration::from_secs(900);
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The largest response. Logs of 1,000 lines of 88 KiB fit; a larger one is not from a Launchway server.
const LARGEST_ANSWER: u64 = 128 << 20;

/// A server and the credentials for it.
#[derive(Clone)]
pub(crate) struct Server {
    agent: Agent,
    url: Url,
    token: Option<String>,
    organization: Option<String>,
}

/// The envelope of every response.
#[derive(Deserialize)]
struct Envelope {
    data: Value,
    message: String,
    status: String,
    error: Option<String>,
}

impl Server {
    /// A client of the server at `url`, without credentials.
    pub(crate) fn at(url: &str) -> Outcome<Self> {
        let wrong = |why: &str| {
            Failure::new(Kind::Usage, format!("`{url}` is not a valid server URL: {why}"))
                .hint("use a URL such as https://deploy.example.com or http://127.0.0.1:8080")
        };
        let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong("it must start with http:// or https://"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong("it must not contain a username or password"));
        }
        let roots = RootCerts::Specific(std::sync::Arc::new(trusted().to_vec()));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A token is for one server, and must not follow a redirect.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(TIME_LIMIT))
            .timeout_connect(Some(CONNECT_LIMIT))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("launchway/", env!("CARGO_PKG_VERSION")));
        Ok(Self { agent: config.build().into(), url: parsed, token: None, organization: None })
    }

    /// Authenticates with `token`.
    pub(crate) fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Acts in this organization, by its id.
    pub(crate) fn in_organization(self, organization: Option<String>) -> Self {
        Self { organization, ..self }
    }

    /// Returns the base URL, without a trailing slash.
    pub(crate) fn url(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// Returns the token.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns whether the connection is neither encrypted nor local.
    pub(crate) fn is_in_the_open(&self) -> bool {
        let is_here = match self.url.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        self.url.scheme() == "http" && !is_here
    }

    pub(crate) fn get(&self, path: &str) -> Request<'_> {
        self.request("GET", path)
    }

    pub(crate) fn post(&self, path: &str) -> Request<'_> {
        self.request("POST", path)
    }

    pub(crate) fn put(&self, path: &str) -> Request<'_> {
        self.request("PUT", path)
    }

    pub(crate) fn patch(&self, path: &str) -> Request<'_> {
        self.request("PATCH", path)
    }

    pub(crate) fn delete(&self, path: &str) -> Request<'_> {
        self.request("DELETE", path)
    }

    /// Creates a request to an endpoint below `/api/v1`.
    fn request(&self, method: &'static str, path: &str) -> Request<'_> {
        let mut url = self.url.clone();
        let base = self.url.path().trim_end_matches('/');
        url.set_path(&format!("{base}/api/v1{path}"));
        Request { server: self, method, url, body: Body::None, headers: Vec::new(), limit: TIME_LIMIT }
    }
}

/// The body of a request.
enum Body {
    None,
    Json(Value),
    Bytes(Vec<u8>),
}

/// A request that was not sent yet.
pub(crate) struct Request<'a> {
    server: &'a Server,
    method: &'static str,
    url: Url,
    body: Body,
    headers: Vec<(&'static str, String)>,
    limit: Duration,
}

impl Request<'_> {
    /// Adds a query parameter.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.url.query_pairs_mut().append_pair(name, &value.to_string());
        self
    }

    /// Adds a query parameter, if there is a value for it.
    pub(crate) fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a JSON body.
    pub(crate) fn body(self, body: Value) -> Self {
        Self { body: Body::Json(body), ..self }
    }

    /// Sets a body that is not text, and may take long to send.
    pub(crate) fn bytes(self, body: Vec<u8>) -> Self {
        Self { body: Body::Bytes(body), ..self }.slow()
    }

    /// Allows the request to take long.
    pub(crate) fn slow(self) -> Self {
        Self { limit: SLOW_LIMIT, ..self }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Makes the request idempotent: the server keeps its response for 24 hours.
    pub(crate) fn once(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// Sends the request and deserializes the data of the response.
    pub(crate) fn receive<T: DeserializeOwned>(self) -> Outcome<T> {
        let url = self.server.url().to_owned();
        let data = self.send()?;
        serde_json::from_value(data).map_err(|error| strange(&url, &error.to_string()))
    }

    /// Sends the request and returns the data of the response.
    pub(crate) fn send(self) -> Outcome<Value> {
        let server = self.server;
        let (status, text) = self.exchange()?;
        let envelope: Result<Envelope, _> = serde_json::from_str(&text);
        match (status, envelope) {
            (200, Ok(envelope)) if envelope.status == "success" => Ok(envelope.data),
            (_, Ok(envelope)) => Err(refusal(status, &envelope, server)),
            (300..400, Err(_)) => {
                Err(strange(server.url(), "it redirects to another URL").hint("log in with that URL instead"))
            }
            (502..=504, Err(_)) => Err(away(server.url(), &format!("status {status}"))),
            (_, Err(_)) => Err(strange(server.url(), &format!("status {status} without an envelope"))),
        }
    }

    fn exchange(self) -> Outcome<(u16, String)> {
        let Self { server, method, url, body, headers, limit } = self;
        let away = |error: &ureq::Error| away(server.url(), &reason(error));
        let mut request = http::Request::builder().method(method).uri(url.as_str());
        if let Some(token) = &server.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(organization) = &server.organization {
            request = request.header("x-organization-id", organization);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let unsent =
            |error: http::Error| Failure::new(Kind::Usage, format!("the request cannot be sent: {error}"));
        let answered = match body {
            Body::Bytes(body) => {
                let request = request.header("content-type", "application/octet-stream").body(body);
                let request = server.agent.configure_request(request.map_err(unsent)?);
                server.agent.run(request.timeout_global(Some(limit)).build())
            }
            Body::Json(body) => {
                let request = request.header("content-type", "application/json").body(body.to_string());
                // A DELETE with a body is fine for the API, and unusual for the library.
                let request = server.agent.configure_request(request.map_err(unsent)?);
                let request = request.allow_non_standard_methods(true).timeout_global(Some(limit));
                server.agent.run(request.build())
            }
            Body::None => server.agent.run(request.body(()).map_err(unsent)?),
        };
        let response = answered.map_err(|error| away(&error))?;
        let status = response.status().as_u16();
        let mut text = String::new();
        let body = response.into_body().into_with_config().limit(LARGEST_ANSWER).reader();
        let read = { body }.read_to_string(&mut text);
        read.map_err(|error| away(&ureq::Error::Io(error)))?;
        Ok((status, text))
    }
}

/// Returns a new idempotency key.
pub(crate) fn fresh_key() -> Outcome<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Kind::Failed, format!("cannot generate random numbers: {error}")))?;
    Ok(u128::from_ne_bytes(bytes).to_string())
}

/// Retries an idempotent request until the server answers, and reports the first failure.
///
/// # Errors
///
/// The error, if it is not that the server is unreachable; or if it was unreachable for `timeout`.
pub(crate) fn retry_for<T>(
    timeout: Duration,
    mut ask: impl FnMut() -> Outcome<T>,
    mut lost: impl FnMut(&Failure),
) -> Outcome<T> {
    const FIRST_PAUSE: Duration = Duration::from_millis(250);
    const LONGEST_PAUSE: Duration = Duration::from_secs(4);
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match ask() {
            Err(failure) if failure.kind == Kind::Unavailable && begun.elapsed() < timeout => {
                if pause == FIRST_PAUSE {
                    lost(&failure);
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// Returns the certificates that this machine trusts, to which its owner can add one.
fn trusted() -> &'static [Certificate<'static>] {
    static TRUSTED: OnceLock<Vec<Certificate<'static>>> = OnceLock::new();
    TRUSTED.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs().certs;
        found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
    })
}

fn refusal(status: u16, envelope: &Envelope, server: &Server) -> Failure {
    let code = envelope.error.as_deref().unwrap_or_default();
    let kind = match status {
        401 | 403 => Kind::Denied,
        404 => Kind::Missing,
        400 | 413 => Kind::Usage,
        409 => Kind::Conflict,
        408 | 429 | 503 => Kind::Unavailable,
        _ => Kind::Failed,
    };
    let failure = Failure::new(kind, envelope.message.clone()).coded(code);
    match code {
        "unauthenticated" if server.token.is_none() => failure.hint("log in with `launchway login`"),
        "unauthenticated" => {
            failure.hint("the session has expired, or the token was revoked: log in with `launchway login`")
        }
        "two_factor_required" => failure.hint("pass a code from your authenticator with --code"),
        "forbidden" => failure.hint("`launchway whoami` shows the current user and organization"),
        "internal" => failure.hint("see the log of the server"),
        "rate_limited" | "unavailable" => failure.hint("try again in a moment"),
        "route_not_found" => {
            failure.hint("the server may be older than this client: compare `launchway --version`")
        }
        _ => failure,
    }
}

fn strange(url: &str, what: &str) -> Failure {
    Failure::new(Kind::Failed, format!("unexpected response from {url}: {what}"))
}

fn away(url: &str, reason: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("the server at {url} does not answer: {reason}"))
        .hint("check that it is running and that the URL is correct; `launchway context list` shows it")
}

fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::HostNotFound => "host not found".to_owned(),
        ureq::Error::Timeout(_) => "timed out".to_owned(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_none_are_refused_with_an_example() {
        for wrong in ["", "deploy.example.com", "ftp://x", "http://ada:secret@x", "https://"] {
            let failure = Server::at(wrong).err().unwrap();
            assert_eq!(failure.kind, Kind::Usage, "{wrong}");
            assert!(failure.advice().is_some_and(|hint| hint.contains("https://")), "{wrong}");
        }
    }

    #[test]
    fn a_path_in_front_of_the_api_stays() {
        let server = Server::at("https://example.com/launchway/").unwrap();
        let request = server.get("/user").with("id", "a b&c");
        assert_eq!(request.url.as_str(), "https://example.com/launchway/api/v1/user?id=a+b%26c");
        assert_eq!(server.url(), "https://example.com/launchway");
    }

    #[test]
    fn only_plain_http_to_elsewhere_is_in_the_open() {
        let is_open = |url| Server::at(url).unwrap().is_in_the_open();
        assert!(is_open("http://deploy.example.com") && is_open("http://10.0.0.1:8080"));
        for fine in
            ["https://deploy.example.com", "http://localhost:8080", "http://127.0.0.2", "http://[::1]:8080"]
        {
            assert!(!is_open(fine), "{fine}");
        }
    }

    #[test]
    fn a_server_that_is_away_is_asked_again_and_reported_once() {
        let (mut asked, mut told) = (0, 0);
        let answer = retry_for(
            Duration::from_secs(60),
            || {
                asked += 1;
                if asked < 3 { Err(away("x", "y")) } else { Ok(asked) }
            },
            |_| told += 1,
        );
        assert_eq!((answer.unwrap(), told), (3, 1));
    }

    #[test]
    fn what_will_not_change_is_not_asked_again() {
        let mut asked = 0;
        let ask = || {
            asked += 1;
            Err::<(), _>(Failure::new(Kind::Denied, "no"))
        };
        assert_eq!(retry_for(Duration::from_secs(60), ask, |_| {}).unwrap_err().kind, Kind::Denied);
        assert_eq!(asked, 1);
    }
}
