//! Health checks of containers.

use std::{io, net::SocketAddr, pin::pin, time::Duration};

use async_trait::async_trait;
use hyper::{Request, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use launchway_domain::{
    applications::HealthCheckPath,
    deployments::{HealthProbe, ProbeTarget},
};
use tokio::{net::TcpStream, time::timeout};

/// The timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Checks over the network, at the container's own address: on a published port the engine itself would
/// accept connections.
///
/// By HTTP every status from 200 to 399 is healthy. Redirects are not followed, and bodies not read.
#[derive(Debug, Clone, Copy)]
pub struct NetworkProbe {
    max_wait: Duration,
}

impl Default for NetworkProbe {
    fn default() -> Self {
        Self { max_wait: TIMEOUT }
    }
}

impl NetworkProbe {
    /// Returns a probe with this timeout.
    #[must_use]
    pub fn with_timeout(max_wait: Duration) -> Self {
        Self { max_wait }
    }
}

#[async_trait]
impl HealthProbe for NetworkProbe {
    async fn probe(&self, target: &ProbeTarget) -> Result<(), String> {
        let asked = timeout(self.max_wait, ask(target)).await;
        asked.unwrap_or_else(|_elapsed| {
            Err(format!("{} did not answer within {:?}", target.address, self.max_wait))
        })
    }
}

async fn ask(target: &ProbeTarget) -> Result<(), String> {
    let address = target.address;
    let stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("nothing listens on {address}"),
        _ => format!("{address} cannot be reached: {error}"),
    })?;
    match &target.path {
        None => Ok(()),
        Some(path) => get(stream, address, path).await,
    }
}

async fn get(stream: TcpStream, address: SocketAddr, path: &HealthCheckPath) -> Result<(), String> {
    let path = path.as_str();
    let broken = |error: hyper::Error| match error.is_parse() {
        true => format!("{address} does not answer in HTTP"),
        false => format!("GET {path} was not answered"),
    };
    let request = Request::get(path)
        .header(HOST, address.to_string())
        .header("user-agent", "launchway")
        .body(String::new())
        .map_err(|error| format!("GET {path} cannot be asked: {error}"))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The answer may have come together with the end of the connection.
        _closed = connection => answer.await,
    };
    let status = answer.map_err(broken)?.status().as_u16();
    if (200..400).contains(&status) { Ok(()) } else { Err(format!("GET {path} answered {status}")) }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        task::JoinHandle,
    };

    use super::*;

    /// Answers one request with `text`; returns the request.
    async fn answering(text: &'static str) -> (SocketAddr, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (address, asked)
    }

    async fn probe(address: SocketAddr, path: Option<&str>) -> Result<(), String> {
        let target = ProbeTarget { address, path: path.map(|path| path.parse().unwrap()) };
        NetworkProbe::with_timeout(Duration::from_millis(500)).probe(&target).await
    }

    #[tokio::test]
    async fn a_status_from_200_to_399_is_well() {
        for answer in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.0 399 Odd\r\nContent-Length: 999\r\n\r\nnot all",
        ] {
            let (address, asked) = answering(answer).await;
            assert_eq!(probe(address, Some("/health?deep=1")).await, Ok(()), "{answer}");
            let asked = asked.await.unwrap();
            assert!(asked.starts_with("GET /health?deep=1 HTTP/1.1\r\n"), "{asked}");
            assert!(asked.contains(&format!("host: {address}\r\n")), "{asked}");
        }
    }

    #[tokio::test]
    async fn every_other_answer_is_reported() {
        for (answer, told) in [
            ("HTTP/1.1 500 Oops\r\n\r\n", "GET / answered 500"),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "GET / answered 404"),
            ("", "GET / was not answered"),
        ] {
            let (address, _asked) = answering(answer).await;
            assert_eq!(probe(address, Some("/")).await, Err(told.to_owned()));
        }
        let (address, _asked) = answering("220 mail.example.com ESMTP\r\n").await;
        assert_eq!(probe(address, Some("/")).await, Err(format!("{address} does not answer in HTTP")));
    }

    #[tokio::test]
    async fn without_a_path_somebody_has_to_listen() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(probe(address, None).await, Ok(()));
        drop(listener);
        assert_eq!(probe(address, None).await, Err(format!("nothing listens on {address}")));
        assert_eq!(probe(address, Some("/")).await, Err(format!("nothing listens on {address}")));
    }

    #[tokio::test]
    async fn nobody_is_waited_for_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(probe(address, Some("/")).await, Err(format!("{address} did not answer within 500ms")));
        drop(listener);
    }
}
