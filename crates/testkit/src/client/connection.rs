//! A raw connection for malformed requests.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use super::Answer;

/// A raw connection that sends any bytes, however malformed.
pub struct Connection {
    stream: TcpStream,
    received: BufReader<TcpStream>,
}

impl Clone for Connection {
    /// Returns the same connection, for another thread to send on.
    fn clone(&self) -> Self {
        let stream = self.stream.try_clone().unwrap();
        Self { received: BufReader::new(stream.try_clone().unwrap()), stream }
    }
}

impl Connection {
    /// Connects to `address`, which is `host:port`.
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { received: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// Sends bytes. The other side may have stopped reading them, which is not an error here: its response
    /// counts.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Shuts down the sending direction.
    pub fn stop_sending(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// Returns the next response; `None` if the connection ends instead.
    pub fn try_answer(&mut self) -> Option<Answer> {
        let mut answer = self.head()?;
        let length = answer.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.received.read_exact(&mut body).ok()?;
        answer.text = String::from_utf8(body).unwrap();
        Some(answer)
    }

    /// Returns the next response.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        self.try_answer().expect("an answer instead of the end of the connection")
    }

    /// Returns the next response, to a request whose response has no body.
    #[track_caller]
    pub fn answer_without_body(&mut self) -> Answer {
        self.head().expect("an answer instead of the end of the connection")
    }

    fn head(&mut self) -> Option<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = std::collections::BTreeMap::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        // Only an interim response; the final one follows.
        if status == 100 {
            return self.head();
        }
        Some(Answer { what: first, status, headers, text: String::new() })
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.received.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(line.trim_end().to_owned())
    }
}
