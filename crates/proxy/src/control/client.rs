//! The client of the control socket, used by the control plane.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use thiserror::Error;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::{sleep, timeout},
};

use super::{Answer, Folder, Request, Status};
use crate::{
    certificates::{Certificate, Challenge},
    routes::Route,
    traffic::Snapshot,
};

/// The timeout of every request that is not itself a wait.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a request that has all routes or certificates: a busy machine takes long for tens of thousands of names.
const TIMEOUT_OF_ALL: Duration = Duration::from_secs(60);

/// The delay before a request is repeated to the process that took over, and the number of attempts.
const PAUSE: Duration = Duration::from_millis(20);
const MOST_TRIES: u32 = 100;

/// The longest answer: the traffic of ten thousand applications has a few megabytes. The proxy may have another user,
/// and whoever breaks into it does not get the server's memory.
const MOST_BYTES: u64 = 64 * 1_024 * 1_024;

/// A client of the control socket in a proxy's folder.
#[derive(Debug, Clone)]
pub struct Client {
    folder: PathBuf,
}

/// The user and group of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// The user id.
    pub user: u32,
    /// The group id.
    pub group: u32,
}

/// The reason why a control request failed.
#[derive(Debug, Error)]
pub enum ControlError {
    /// No process listens on the socket.
    #[error("the proxy is not running")]
    Absent,
    /// The proxy rejected the request, with this reason.
    #[error("the proxy rejected the request: {0}")]
    Refused(String),
    /// The connection failed. The proxy may or may not have done what was requested.
    #[error("cannot communicate with the proxy")]
    Io(#[from] io::Error),
}

impl Client {
    /// Returns a client of the proxy with this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the status of the proxy.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn status(&self) -> Result<Status, ControlError> {
        match self.ask(&Request::Status, TIMEOUT).await? {
            Answer::Status(status) => Ok(status),
            other => Err(unexpected(&other)),
        }
    }

    /// Routes exactly these hosts to an application. When this returns, the route is in use and survives
    /// a restart.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Rejected if a host belongs to another application.
    pub async fn set(&self, route: Route) -> Result<(), ControlError> {
        self.done(&Request::Set { route }).await
    }

    /// Removes the route of an application.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn remove(&self, application: &str) -> Result<(), ControlError> {
        self.done(&Request::Remove { application: application.to_owned() }).await
    }

    /// Replaces all routes.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Rejected if a host belongs to two applications.
    pub async fn replace_all(&self, routes: Vec<Route>) -> Result<(), ControlError> {
        self.done_within(TIMEOUT_OF_ALL, &Request::ReplaceAll { routes }).await
    }

    /// Lets the routes to containers expire `lease` after this call, unless it is repeated in time; without a
    /// lease, they do not expire. Expired ones are not in use until all routes are replaced.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn lease(&self, lease: Option<Duration>) -> Result<(), ControlError> {
        self.done(&Request::Lease { seconds: lease.map(|lease| lease.as_secs()) }).await
    }

    /// Waits until no request to the application's previous targets is in flight: to `container`, or to
    /// any target. Returns false if the limit passed first.
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
        match self.ask(&request, limit.saturating_add(TIMEOUT)).await? {
            Answer::Drained { is_drained } => Ok(is_drained),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the traffic of each application since the proxy started.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn traffic(&self) -> Result<Snapshot, ControlError> {
        match self.ask(&Request::Traffic, TIMEOUT).await? {
            Answer::Traffic { traffic } => Ok(traffic),
            other => Err(unexpected(&other)),
        }
    }

    /// Replaces all certificates. When this returns, they are in use and survive a restart.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Rejected if the proxy does not serve TLS.
    pub async fn set_certificates(
        &self,
        revision: &str,
        certificates: Vec<Certificate>,
    ) -> Result<(), ControlError> {
        let request = Request::SetCertificates { revision: revision.to_owned(), certificates };
        self.done_within(TIMEOUT_OF_ALL, &request).await
    }

    /// Replaces all answers to ACME challenges.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Rejected if the proxy does not serve TLS.
    pub async fn set_challenges(
        &self,
        challenges: Vec<Challenge>,
        certificates: Vec<Certificate>,
    ) -> Result<(), ControlError> {
        self.done(&Request::SetChallenges { challenges, certificates }).await
    }

    /// Shuts the proxy down. It still answers the requests in flight; this does not wait for them.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn stop(&self) -> Result<(), ControlError> {
        self.done(&Request::Stop).await
    }

    /// Makes the proxy start a successor of its own user, which takes over. This does not wait for that.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]. Refused if no successor of it would stay.
    pub async fn replace(&self) -> Result<(), ControlError> {
        self.done(&Request::Replace).await
    }

    /// Returns the user and group that the proxy had when it began to listen.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn credentials(&self) -> Result<Credentials, ControlError> {
        let peer = connect(&self.folder).await?.peer_cred()?;
        Ok(Credentials { user: peer.uid(), group: peer.gid() })
    }

    async fn done(&self, request: &Request) -> Result<(), ControlError> {
        self.done_within(TIMEOUT, request).await
    }

    async fn done_within(&self, limit: Duration, request: &Request) -> Result<(), ControlError> {
        match self.ask(request, limit).await? {
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
                // Requests are idempotent, and another process may answer the retry.
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
    BufReader::new(stream.take(MOST_BYTES)).read_line(&mut answer).await?;
    if answer.is_empty() {
        return Err(ControlError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(parse(&answer).map_err(io::Error::from)?)
}

/// Parses an answer. That with the traffic is long, and is read every few seconds: it is parsed without the copy that
/// serde makes of an enum whose tag may come last.
fn parse(answer: &str) -> serde_json::Result<Answer> {
    #[derive(Deserialize)]
    struct WithTraffic {
        traffic: Snapshot,
    }
    match answer.starts_with(r#"{"answer":"traffic","#) {
        true => serde_json::from_str(answer).map(|WithTraffic { traffic }| Answer::Traffic { traffic }),
        false => serde_json::from_str(answer),
    }
}

/// Returns whether the error means that the process at the other end has exited.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

async fn connect(folder: &Path) -> Result<UnixStream, ControlError> {
    let connected = match Folder::open(folder) {
        Ok(folder) => connect_in(&folder).await,
        Err(error) => Err(error),
    };
    connected.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::Absent,
        _ => ControlError::Io(error),
    })
}

/// In a folder of another user the socket may be a link to anything, such as the engine's socket: whoever listens has to
/// be that user.
async fn connect_in(folder: &Folder) -> io::Result<UnixStream> {
    let stream = folder.connect().await?;
    let (owner, peer) = (folder.owner()?, stream.peer_cred()?.uid());
    if is_expected(peer, owner, rustix::process::geteuid().as_raw()) {
        Ok(stream)
    } else {
        let text = format!("the folder of the proxy is that of user {owner}, and user {peer} listens there");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }
}

fn is_expected(peer: u32, owner: u32, own: u32) -> bool {
    owner == own || owner == 0 || peer == owner
}

fn unexpected(answer: &Answer) -> ControlError {
    ControlError::Io(io::Error::new(io::ErrorKind::InvalidData, format!("unexpected answer: {answer:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;

    #[test]
    fn every_answer_is_parsed() {
        let traffic = Traffic::default();
        let _counters = traffic.counters("an application");
        let refused = Answer::Refused { reason: "no".to_owned() };
        for answer in [Answer::Traffic { traffic: traffic.snapshot() }, refused, Answer::Done] {
            let line = serde_json::to_string(&answer).unwrap() + "\n";
            assert_eq!(parse(&line).unwrap(), answer);
        }
        assert!(parse(r#"{"answer":"traffic","traffic":{}}"#).is_err());
    }

    #[test]
    fn in_a_folder_of_another_user_only_that_user_is_spoken_to() {
        for (peer, owner, own, expected) in [
            (1_000, 1_000, 1_000, true),
            (0, 1_000, 1_000, true),
            (1_001, 1_001, 1_000, true),
            (0, 1_001, 1_000, false),
            (1_000, 1_001, 1_000, false),
            (1_002, 1_001, 0, false),
            (1_001, 1_001, 0, true),
        ] {
            assert_eq!(is_expected(peer, owner, own), expected, "{peer} in a folder of {owner}, for {own}");
        }
    }
}
