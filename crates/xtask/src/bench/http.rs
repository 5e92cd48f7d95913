//! A minimal HTTP client for servers on this machine.

use std::{
    io::{BufRead, BufReader, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a GET request; returns the body of a successful response.
pub(crate) fn get(port: u16, path: &str, token: Option<&str>) -> Result<String> {
    Connection::open(port, token)?.get(path)
}

/// Posts a JSON document; returns the body of a successful response.
pub(crate) fn post(port: u16, path: &str, token: Option<&str>, json: &str) -> Result<String> {
    Connection::open(port, token)?.post(path, json)
}

/// A connection that is kept alive, so that only the response is measured.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    headers: String,
}

impl Connection {
    /// Connects to a server, for requests with this bearer token.
    pub(crate) fn open(port: u16, token: Option<&str>) -> Result<Self> {
        let authorization =
            token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        Self::open_with(port, format!("Host: localhost\r\n{authorization}"))
    }

    /// Connects to a server, for requests with these lines of a head, the host among them.
    pub(crate) fn open_with(port: u16, headers: String) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, TIMEOUT).context("cannot connect to the server")?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), headers })
    }

    /// Sends a GET request; returns the body of a successful response.
    pub(crate) fn get(&mut self, path: &str) -> Result<String> {
        self.exchange(&format!("GET {path}"), "\r\n")
    }

    /// Posts a JSON document; returns the body of a successful response.
    pub(crate) fn post(&mut self, path: &str, json: &str) -> Result<String> {
        let length = json.len();
        let rest = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}");
        self.exchange(&format!("POST {path}"), &rest)
    }

    fn exchange(&mut self, request: &str, rest: &str) -> Result<String> {
        let text = format!("{request} HTTP/1.1\r\n{}{rest}", self.headers);
        let written = self.stream.get_mut().write_all(text.as_bytes());
        let read = written.map_err(Into::into).and_then(|()| read_response(&mut self.stream));
        let (status, body) = read.with_context(|| format!("{request} did not answer"))?;
        ensure!((200..300).contains(&status), "{request} answered {status}: {body}");
        Ok(body)
    }
}

/// Reads the status and the body of a response; a chunked one is rejected, because none of ours is.
fn read_response(stream: &mut impl BufRead) -> Result<(u16, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(stream.read_line(&mut head)? > 0, "the connection ended");
    }
    let head = head.to_ascii_lowercase();
    let status = head.strip_prefix("http/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let (status, length) = status.zip(length).context("this is no plain HTTP/1.1 answer")?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((status, String::from_utf8(body)?))
}

/// Returns the text of the first string field with this name, at any depth.
pub(crate) fn text_field(json: &str, name: &str) -> Result<String> {
    let found = json.split_once(&format!("\"{name}\"")).and_then(|(_, rest)| {
        let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        rest.split_once('"').map(|(text, _)| text.to_owned())
    });
    found.with_context(|| format!("the answer has no field `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let mut answers = &b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n"[..];
        assert_eq!(read_response(&mut answers).unwrap(), (404, "{}".to_owned()));
        assert!(read_response(&mut answers).is_err());
    }

    #[test]
    fn an_answer_in_chunks_is_refused() {
        let mut answer = &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"[..];
        assert!(read_response(&mut answer).is_err());
    }

    #[test]
    fn a_text_field_is_found_below_others() {
        let json = r#"{"data": {"user": null, "access_token" : "abc.def"}}"#;
        assert_eq!(text_field(json, "access_token").unwrap(), "abc.def");
        assert!(text_field(json, "refresh_token").is_err() && text_field(json, "user").is_err());
    }

    #[test]
    fn anything_but_success_becomes_a_sentence() {
        let (listener, port) = crate::network::listen(Ipv4Addr::LOCALHOST).unwrap();
        std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(b"HTTP/1.1 409 Conflict\r\nContent-Length: 5\r\n\r\ntaken").unwrap();
        });
        let error = post(port, "/register", None, "{}").unwrap_err();
        assert_eq!(error.to_string(), "POST /register answered 409: taken");
    }
}
