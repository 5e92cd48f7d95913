//! A minimal HTTP client for servers on this machine.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use crate::failure::{Failure, Outcome};

const TIMEOUT: Duration = Duration::from_secs(10);

/// A response of a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends a GET request, with a bearer token if there is one.
pub(crate) fn get(port: u16, path: &str, token: Option<&str>) -> io::Result<Answer> {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    exchange(port, &format!("GET {path} HTTP/1.1\r\n{authorization}"), "")
}

/// Posts a JSON document.
pub(crate) fn post(port: u16, path: &str, json: &str) -> io::Result<Answer> {
    exchange(port, &post_head(path, json), json)
}

/// Posts a JSON document with a bearer token.
pub(crate) fn post_as(port: u16, path: &str, token: &str, json: &str) -> io::Result<Answer> {
    exchange(port, &format!("{}Authorization: Bearer {token}\r\n", post_head(path, json)), json)
}

fn post_head(path: &str, json: &str) -> String {
    let length = json.len();
    format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n")
}

/// A connection that is kept alive, so that only the response is measured.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Connection {
    pub(crate) fn open(port: u16, token: &str) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), token: token.to_owned() })
    }

    /// Sends a GET request and reads the whole response.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.exchange(&format!("GET {path} HTTP/1.1\r\n"), "")
    }

    /// Posts a JSON document and reads the whole response.
    pub(crate) fn post(&mut self, path: &str, json: &str) -> io::Result<Answer> {
        self.exchange(&post_head(path, json), json)
    }

    fn exchange(&mut self, head: &str, body: &str) -> io::Result<Answer> {
        let token = &self.token;
        let request = format!("{head}Host: localhost\r\nAuthorization: Bearer {token}\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let mut body =
            vec![0; content_length(&head).ok_or_else(|| io::Error::other("an answer of no length"))?];
        self.stream.read_exact(&mut body)?;
        let body = String::from_utf8(body).map_err(io::Error::other)?;
        parse(&format!("{head}{body}")).ok_or_else(|| io::Error::other("this is no plain HTTP/1.1 answer"))
    }
}

fn content_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())
}

/// Turns anything but a 2xx response into a failure.
pub(crate) fn expect_success(what: &str, answer: io::Result<Answer>) -> Outcome<Answer> {
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(answer),
        Ok(Answer { status, body }) => Err(Failure::because(format_args!("{what} answered {status}"), body)),
        Err(error) => Err(Failure::because(format_args!("{what} did not answer"), error)),
    }
}

/// Returns the text of the first string field with this name, at any depth.
pub(crate) fn text_field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    rest.split_once('"').map(|(text, _)| text)
}

fn exchange(port: u16, head: &str, body: &str) -> io::Result<Answer> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("{head}Host: {address}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::other("this is no plain HTTP/1.1 answer"))
}

/// Parses a whole response; a chunked one is rejected, because none of ours is.
fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    (!chunked).then(|| Answer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parse(answer), Some(Answer { status: 404, body: "{}".to_owned() }));
    }

    #[test]
    fn an_answer_in_chunks_is_refused() {
        assert_eq!(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), None);
    }

    #[test]
    fn a_text_field_is_found_below_others() {
        let json = r#"{"data": {"user": null, "access_token" : "abc.def"}}"#;
        assert_eq!(text_field(json, "access_token"), Some("abc.def"));
        assert_eq!(text_field(json, "refresh_token"), None);
        assert_eq!(text_field(json, "user"), None);
    }

    #[test]
    fn anything_but_success_becomes_a_sentence() {
        let answer = Ok(Answer { status: 409, body: "taken".to_owned() });
        assert_eq!(
            expect_success("register", answer).unwrap_err().to_string(),
            "register answered 409: taken"
        );
    }
}
