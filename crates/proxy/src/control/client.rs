//! The control plane's side of the socket.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::{sleep, timeout},
};

use super::{Answer, Folder, Request, Status};
use crate::{routes::Route, traffic::Snapshot};

/// For an answer to anything that is not a wait by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Until a process that has taken over is asked again, and how often.
const PAUSE: Duration = Duration::from_millis(20);
const MOST_TRIES: u32 = 100;

/// Speaks to a proxy by the socket in its folder.
#[derive(Debug, Clone)]
pub struct Client {
    folder: PathBuf,
}

/// Why the proxy did not do as asked.
#[derive(Debug, Error)]
pub enum ControlError {
    /// Nobody listens on the socket.
    #[error("no proxy runs")]
    Absent,
    /// The proxy says why it did not.
    #[error("the proxy refuses: {0}")]
    Refused(String),
    /// It cannot be told whether it did.
    #[error("cannot speak to the proxy")]
    Io(#[from] io::Error),
}

impl Client {
    /// For the proxy with this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// How the proxy is.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn status(&self) -> Result<Status, ControlError> {
        match self.ask(&Request::Status, PATIENCE).await? {
            Answer::Status(status) => Ok(status),
            other => Err(unexpected(&other)),
        }
    }

    /// Leads an application's names there, and no others. When this returns it holds, also over a
    /// restart.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Refused if a name belongs to another application.
    pub async fn set(&self, route: Route) -> Result<(), ControlError> {
        self.done(&Request::Set { route }).await
    }

    /// Forgets an application.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn remove(&self, application: &str) -> Result<(), ControlError> {
        self.done(&Request::Remove { application: application.to_owned() }).await
    }

    /// Makes these all routes that there are.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Refused if a name belongs to two applications.
    pub async fn replace_all(&self, routes: Vec<Route>) -> Result<(), ControlError> {
        self.done(&Request::ReplaceAll { routes }).await
    }

    /// Waits until no request is under way any more to where the application's traffic went before: to
    /// `container`, or to anything.
    /// False if the limit passed first.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn drain(
        &self,
        application: &str,
        container: Option<&str>,
        limit: Duration,
    ) -> Result<bool, ControlError> {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let container = container.map(str::to_owned);
        let request = Request::Drain { application: application.to_owned(), container, limit_ms };
        match self.ask(&request, limit.saturating_add(PATIENCE)).await? {
            Answer::Drained { is_drained } => Ok(is_drained),
            other => Err(unexpected(&other)),
        }
    }

    /// What each application was asked since the proxy started.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn traffic(&self) -> Result<Snapshot, ControlError> {
        match self.ask(&Request::Traffic, PATIENCE).await? {
            Answer::Traffic { traffic } => Ok(traffic),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes the proxy end. It still answers what is under way; this does not wait for that.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn stop(&self) -> Result<(), ControlError> {
        self.done(&Request::Stop).await
    }

    async fn done(&self, request: &Request) -> Result<(), ControlError> {
        match self.ask(request, PATIENCE).await? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn ask(&self, request: &Request, limit: Duration) -> Result<Answer, ControlError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match timeout(limit, exchange(&self.folder, request)).await.map_err(io::Error::from)? {
                // The other process is about to listen on the same socket.
                Ok(Answer::Moved) if tries < MOST_TRIES => sleep(PAUSE).await,
                // Nothing is different when it is asked twice, and perhaps another one answers.
                Err(ControlError::Io(error)) if is_end(&error) && tries < MOST_TRIES => sleep(PAUSE).await,
                Ok(Answer::Refused { reason }) => return Err(ControlError::Refused(reason)),
                answer => return answer,
            }
        }
    }
}

async fn exchange(folder: &Path, request: &Request) -> Result<Answer, ControlError> {
    let mut stream = connect(folder).await?;
    let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    if answer.is_empty() {
        return Err(ControlError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(serde_json::from_str(&answer).map_err(io::Error::from)?)
}

/// Whether the process at the other end has ended.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

async fn connect(folder: &Path) -> Result<UnixStream, ControlError> {
    let connected = match Folder::open(folder) {
        Ok(folder) => folder.connect().await,
        Err(error) => Err(error),
    };
    connected.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::Absent,
        _ => ControlError::Io(error),
    })
}

fn unexpected(answer: &Answer) -> ControlError {
    ControlError::Io(io::Error::new(io::ErrorKind::InvalidData, format!("unexpected answer: {answer:?}")))
}
