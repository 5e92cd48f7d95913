//! A client of the API that asserts the envelope of every response.

mod connection;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    time::Duration,
};

use serde_json::Value;
use ureq::{Agent, http};

pub use self::connection::Connection;

/// A client of the API.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    url: String,
    headers: Vec<(String, String)>,
}

impl Client {
    /// Creates a client of the server at `url`, without a token.
    pub fn new(url: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(Duration::from_secs(60)));
        Self { agent: config.build().into(), url: url.to_owned(), headers: Vec::new() }
    }

    /// Returns the same client with this bearer token instead of any other.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        const HEADER: &str = "authorization";
        let mut client = self.clone();
        client.headers.retain(|(name, _)| name != HEADER);
        client.with_header(HEADER, &format!("Bearer {token}"))
    }

    /// Returns the same client with an additional header.
    #[must_use]
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Returns the same client for another server, or for the same one after a restart.
    #[must_use]
    pub fn at(&self, url: &str) -> Self {
        Self { url: url.to_owned(), ..self.clone() }
    }

    /// Sends a GET request without a body.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None)
    }

    /// Sends a POST request with a JSON body.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, Some(&body.to_string()))
    }

    /// Sends a PUT request with a JSON body.
    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, Some(&body.to_string()))
    }

    /// Sends a PATCH request with a JSON body.
    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, Some(&body.to_string()))
    }

    /// Sends a DELETE request without a body.
    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None)
    }

    /// Returns the lines of a streaming response as they arrive. The connection is closed with the
    /// iterator.
    pub fn lines(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let mut request = http::Request::builder().uri(format!("{}{path}", self.url));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = self.agent.run(request.body(()).unwrap()).unwrap();
        assert_eq!(response.status(), 200, "GET {path}");
        BufReader::new(response.into_body().into_reader()).lines().map_while(Result::ok)
    }

    /// Sends a request with any method and a JSON body.
    pub fn send_json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, Some(&body.to_string()))
    }

    /// Sends a request with any method and a raw body without a content type.
    pub fn send(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        self.try_send(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a request to a server that may be down.
    ///
    /// # Errors
    ///
    /// Returns why there was no response.
    pub fn try_send(&self, method: &str, path: &str, body: Option<&str>) -> Result<Answer, ureq::Error> {
        self.try_send_bytes(method, path, body.map(str::as_bytes))
    }

    /// Sends a POST request with a body that is not text.
    pub fn post_bytes(&self, path: &str, body: &[u8]) -> Answer {
        let sent = self.try_send_bytes("POST", path, Some(body));
        sent.unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    fn try_send_bytes(&self, method: &str, path: &str, body: Option<&[u8]>) -> Result<Answer, ureq::Error> {
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = match body {
            Some(body) => {
                let request = request.body(body.to_vec()).unwrap();
                let request = self.agent.configure_request(request).allow_non_standard_methods(true).build();
                self.agent.run(request)
            }
            None => {
                let request = request.body(()).unwrap();
                let request = self.agent.configure_request(request).allow_non_standard_methods(true).build();
                self.agent.run(request)
            }
        };
        let mut response = response?;
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
            .collect();
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string()?;
        Ok(Answer { what: format!("{method} {path}"), status, headers, text })
    }
}

/// A response of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    what: String,
    /// The HTTP status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The raw body.
    pub text: String,
}

impl Answer {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{self:?} is no JSON: {error}"))
    }

    /// Asserts the envelope of a success, and returns its data.
    #[track_caller]
    pub fn success(&self) -> Value {
        let body = self.json();
        assert_eq!((self.status, &body["status"]), (200, &Value::from("success")), "{self:?}");
        assert!(body["message"].is_string() && body.get("data").is_some(), "{self:?}");
        // Some endpoints return an empty `error`, too.
        let fields = if body.get("error") == Some(&Value::from("")) { 4 } else { 3 };
        assert_eq!(body.as_object().unwrap().len(), fields, "{self:?}");
        self.is_marked();
        body["data"].clone()
    }

    /// Asserts the envelope of an error with that status and code, and returns its message.
    #[track_caller]
    pub fn failure(&self, status: u16, code: &str) -> String {
        let body = self.json();
        let expected = (status, &Value::Null, &Value::from("error"), &Value::from(code));
        assert_eq!((self.status, &body["data"], &body["status"], &body["error"]), expected, "{self:?}");
        // The problems of single fields are part of the message, too.
        let message = body["message"].as_str().unwrap();
        let problems = body.get("errors").map(|problems| problems.as_array().unwrap());
        for problem in problems.into_iter().flatten() {
            assert!(problem["field"].is_string() && problem["code"].is_string(), "{self:?}");
            assert!(message.contains(problem["message"].as_str().unwrap()), "{self:?}");
        }
        let fields = 4 + usize::from(problems.is_some());
        assert_eq!(body.as_object().unwrap().len(), fields, "{self:?}");
        self.is_marked();
        message.to_owned()
    }

    /// Asserts the headers of every response with an envelope.
    #[track_caller]
    fn is_marked(&self) {
        assert_eq!(self.headers["content-type"], "application/json", "{self:?}");
        assert!(self.headers.contains_key("x-request-id"), "{self:?}");
    }

    /// Returns the message.
    pub fn message(&self) -> String {
        self.json()["message"].as_str().unwrap().to_owned()
    }
}
