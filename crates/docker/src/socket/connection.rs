//! One connection to the engine.

use std::path::Path;

use http_body_util::{BodyExt as _, Limited};
use hyper::{Request, Response, StatusCode, body::Bytes, body::Incoming, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::{net::UnixStream, task::JoinHandle};

use crate::{command::unreadable, errors::EngineError};

/// An error of a request.
#[derive(Debug)]
pub(crate) enum SocketError {
    /// There is no engine, or it does not answer.
    Unavailable(String),
    /// The engine answered with another status.
    Status(StatusCode),
    /// The response cannot be parsed.
    Unreadable,
}

impl From<SocketError> for EngineError {
    fn from(error: SocketError) -> Self {
        match error {
            SocketError::Unavailable(why) => Self::Unavailable(why),
            SocketError::Status(status) => Self::Message(format!("docker answered {status}")),
            SocketError::Unreadable => unreadable(),
        }
    }
}

/// A connection to the engine, for consecutive requests.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: http1::SendRequest<String>,
    driver: JoinHandle<()>,
}

impl Connection {
    pub(super) async fn open(socket: &Path) -> Result<Self, SocketError> {
        let stream = UnixStream::connect(socket)
            .await
            .map_err(|error| SocketError::Unavailable(format!("{}: {error}", socket.display())))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // The sender gets the error as well.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, driver })
    }

    /// Sends a `GET` request. Fails unless the status is 200.
    pub(super) async fn get(&mut self, target: &str) -> Result<Response<Incoming>, SocketError> {
        let request = Request::get(target).header(HOST, "docker").body(String::new());
        let request = request.map_err(|_not_a_target| SocketError::Unreadable)?;
        self.sender.ready().await.map_err(broken)?;
        let response = self.sender.send_request(request).await.map_err(broken)?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => {
                // The next request can be sent once this answer was read.
                let _ignored = Limited::new(response.into_body(), LONGEST_COMPLAINT).collect().await;
                Err(SocketError::Status(status))
            }
        }
    }

    /// Sends a `GET` request, and reads the response if it is not longer than `longest` bytes.
    pub(super) async fn read(&mut self, target: &str, longest: usize) -> Result<Bytes, SocketError> {
        let response = self.get(target).await?;
        let body = Limited::new(response.into_body(), longest).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|_cut_off| SocketError::Unreadable)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The most bytes that are read of an error response.
const LONGEST_COMPLAINT: usize = 64 * 1024;

fn broken(error: hyper::Error) -> SocketError {
    SocketError::Unavailable(format!("the connection broke off: {error}"))
}
