//! Requests to applications by their host names, as the front proxy gets them.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// The text before the name of an application on its page.
const APPLICATION: &str = "application=";
/// The text before the number of its version.
const VERSION: &str = "version=";

/// The last word of every page.
const COMPLETE: &str = "complete";

/// The response to one request.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// The page of one version of an application.
pub(crate) fn page(application: &str, version: usize) -> String {
    format!("{APPLICATION}{application} {VERSION}{version} {COMPLETE}\n")
}

/// Sends one request on a connection of its own. A read that takes longer than `timeout` is an error.
pub(crate) fn get(front: SocketAddr, host: &str, path: &str, timeout: Duration) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&front, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&String::from_utf8_lossy(&bytes))
        .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the response has no head"))
}

impl Response {
    /// The application that answered, if one did.
    pub(crate) fn application(&self) -> Option<&str> {
        self.word(APPLICATION)
    }

    /// The version of the application that answered.
    pub(crate) fn version(&self) -> Option<usize> {
        self.word(VERSION)?.parse().ok()
    }

    /// Returns false if the connection was closed in the middle of a page.
    pub(crate) fn is_complete(&self) -> bool {
        self.body.trim_end().ends_with(COMPLETE)
    }

    fn word(&self, name: &str) -> Option<&str> {
        word(&self.body, name)
    }
}

/// Returns the application whose page is in a text.
pub(crate) fn application_in(text: &str) -> Option<&str> {
    word(text, APPLICATION)
}

fn word<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    rest.split_whitespace().next()
}

fn parse(text: &str) -> Option<Response> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let is_chunked = head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked");
    let body = if is_chunked { join_chunks(body) } else { body.to_owned() };
    Some(Response { status, body })
}

/// The text of a chunked body, as far as it arrived.
fn join_chunks(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, next)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        body.push_str(next.get(..size).unwrap_or(next));
        let Some(after) = next.get(size + 2..) else { break };
        rest = after;
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_application_and_version() {
        let text = format!("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}", page("north-1", 12));
        let response = parse(&text).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!((response.application(), response.version()), (Some("north-1"), Some(12)));
        assert!(response.is_complete());
    }

    #[test]
    fn a_chunked_body_is_joined_as_far_as_it_arrived() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let whole = parse(&format!("{head}4\r\nline\r\n9\r\n complete\r\n0\r\n\r\n")).unwrap();
        assert_eq!((whole.body.as_str(), whole.is_complete()), ("line complete", true));
        let broken = parse(&format!("{head}4\r\nline\r\n9\r\n comp")).unwrap();
        assert_eq!((broken.body.as_str(), broken.is_complete()), ("line comp", false));
    }

    #[test]
    fn a_page_of_the_proxy_names_no_application() {
        let response = parse("HTTP/1.1 503 Service Unavailable\r\n\r\n<p>stopped</p>").unwrap();
        assert_eq!((response.status, response.application()), (503, None));
        assert!(parse("HTTP/1.1 200").is_none());
    }
}
