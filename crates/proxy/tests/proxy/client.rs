//! A client that sends exactly the bytes that a test wants.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// The timeout of every wait in a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// An open connection, and its unread input.
pub(crate) struct Connection<S = TcpStream> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

/// A response as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub(crate) async fn connect(address: SocketAddr) -> Connection {
    TcpStream::connect(address).await.unwrap().into()
}

/// Sends one request, on a connection of its own.
pub(crate) async fn get(address: SocketAddr, host: &str, path: &str) -> Answer {
    connect(address).await.get(host, path).await.unwrap()
}

/// Sends bytes, closes nothing, and returns everything until the other side closes.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut connection = connect(address).await;
    connection.send(bytes).await;
    connection.rest().await
}

impl From<TcpStream> for Connection {
    fn from(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, read: Vec::new() }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Wraps a stream of which nothing has been read.
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // The other side may have closed already, which the test will see by reading.
        let _ = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn get(&mut self, host: &str, path: &str) -> Result<Answer, String> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await;
        self.answer().await
    }

    /// Returns everything until the other side closes.
    pub(crate) async fn rest(&mut self) -> String {
        while self.fill().await.unwrap_or_default() > 0 {}
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    /// Reads one complete response to anything but HEAD.
    pub(crate) async fn answer(&mut self) -> Result<Answer, String> {
        let mut answer = self.head().await?;
        let header = |name| answer.header(name).map(str::to_owned);
        if let Some(length) = header("content-length") {
            answer.body = self.take(length.parse().unwrap()).await?;
        } else if header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await? {
                answer.body.extend(chunk);
            }
        } else if ![101, 204, 304].contains(&answer.status) {
            while self.fill().await? > 0 {}
            answer.body = std::mem::take(&mut self.read);
        }
        Ok(answer)
    }

    /// Reads the head of a response.
    pub(crate) async fn head(&mut self) -> Result<Answer, String> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(Answer { status: status.ok_or_else(|| format!("no status: {head}"))?, head, body: Vec::new() })
    }

    /// Reads one chunk of a body, or `None` at its end. The trailers stay unread except for the last line.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, String> {
        let line = self.until(b"\r\n").await?;
        let size = std::str::from_utf8(&line).unwrap().trim();
        let size =
            usize::from_str_radix(size, 16).map_err(|error| format!("no chunk size: {size}: {error}"))?;
        if size == 0 {
            self.trailers().await?;
            return Ok(None);
        }
        let chunk = self.take(size).await?;
        self.until(b"\r\n").await?;
        Ok(Some(chunk))
    }

    async fn trailers(&mut self) -> Result<(), String> {
        while self.until(b"\r\n").await? != b"\r\n" {}
        Ok(())
    }

    pub(crate) async fn until(&mut self, end: &[u8]) -> Result<Vec<u8>, String> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                return Ok(self.read.drain(..at + end.len()).collect());
            }
            if self.fill().await? == 0 {
                return Err(format!("closed after {:?}", String::from_utf8_lossy(&self.read)));
            }
        }
    }

    pub(crate) async fn take(&mut self, length: usize) -> Result<Vec<u8>, String> {
        while self.read.len() < length {
            if self.fill().await? == 0 {
                return Err(format!("closed after {} of {length} bytes", self.read.len()));
            }
        }
        Ok(self.read.drain(..length).collect())
    }

    async fn fill(&mut self) -> Result<usize, String> {
        let read = timeout(TIMEOUT, self.stream.read_buf(&mut self.read)).await;
        read.map_err(|error| format!("nothing came in time: {error}"))?.map_err(|error| error.to_string())
    }
}
