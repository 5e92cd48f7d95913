//! The server of the control socket.

use std::{future::Future, io, net::TcpListener, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::mpsc,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    Answer, Request, Status,
    handover::{Handed, Listeners, hand_over},
    successor::Successor,
};
use crate::{proxy::Proxy, routes::ChangeError};

/// The longest line: all routes of ten thousand applications, each with as many of the longest hosts as it
/// may have. With a shorter limit, one application with many hosts could block the routes of all others.
const MOST_BYTES: u64 = 256 * 1_024 * 1_024;

/// The timeout for receiving a line, from its first byte.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait of a drain, whatever limit is requested.
const LONGEST_DRAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The delay before the next `accept` after one failed.
const PAUSE: Duration = Duration::from_millis(50);

/// The server of the control socket.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) listeners: Listeners,
    pub(crate) version: String,
    pub(crate) control_user: Option<u32>,
    pub(crate) successor: Successor,
    /// Receives the reason for which the proxy is to shut down.
    pub(crate) ends: mpsc::Sender<End>,
}

/// The reason for a shutdown.
#[derive(Debug)]
pub(crate) enum End {
    /// A control request.
    Stopped,
    /// Another process has taken over.
    HandedOver(Handed),
}

impl Server {
    /// Accepts and answers connections, for ever.
    pub(crate) async fn run(self, socket: UnixListener) {
        loop {
            match socket.accept().await {
                Ok((stream, _)) => {
                    let server = self.clone();
                    tokio::spawn(async move {
                        if let Err(error) = server.speak(stream).await {
                            tracing::debug!(%error, "control connection failed");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "control socket accept failed");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn speak(self, mut stream: UnixStream) -> io::Result<()> {
        let Some(peer) = Peer::of(&stream, self.control_user)? else {
            let reason = "the control socket is for the proxy's own user, root, and the user in \
                          LAUNCHWAY_PROXY_CONTROL_USER"
                .to_owned();
            return send(&mut stream, &Answer::Refused { reason }).await;
        };
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            let mut limited = (&mut reader).take(MOST_BYTES);
            if timeout(TIMEOUT, limited.read_until(b'\n', &mut line)).await?? == 0 {
                return Ok(());
            }
            let answer = match serde_json::from_slice(&line) {
                Ok(Request::HandOver { protocol, with_tls }) if peer == Peer::Owner => {
                    return self.leave(reader.into_inner(), (protocol, with_tls)).await;
                }
                Ok(request) => self.answer(request).await,
                Err(error) => Answer::Refused { reason: format!("cannot understand this: {error}") },
            };
            send(reader.get_mut(), &answer).await?;
        }
    }

    async fn answer(&self, request: Request) -> Answer {
        let routes = &self.proxy.routes;
        match request {
            Request::Status => Answer::Status(self.status()),
            Request::Set { route } => self.change(routes.set(route)).await,
            Request::Remove { application } => self.change(routes.remove(&application)).await,
            Request::ReplaceAll { routes: all } => self.change(routes.replace_all(all)).await,
            Request::Lease { seconds } => self.change(routes.lease(seconds)).await,
            Request::Drain { application, container, limit_ms } => {
                let limit = Duration::from_millis(limit_ms).min(LONGEST_DRAIN);
                let is_drained = self.drain(&application, container.as_deref(), limit).await;
                Answer::Drained { is_drained }
            }
            Request::SetCertificates { revision, certificates } => match &self.proxy.tls {
                Some(tls) => self.change(tls.certificates.replace_all(revision, certificates)).await,
                None => no_tls(),
            },
            Request::SetChallenges { challenges, certificates } => match &self.proxy.tls {
                Some(tls) => {
                    let change = async {
                        tls.certificates.set_challenges(challenges, certificates);
                        Ok(())
                    };
                    self.change(change).await
                }
                None => no_tls(),
            },
            Request::Traffic => Answer::Traffic { traffic: routes.traffic() },
            Request::Stop => {
                // A full channel means that it is already ending.
                let _ = self.ends.try_send(End::Stopped);
                Answer::Done
            }
            Request::Replace => match self.successor.start() {
                Ok(()) => Answer::Done,
                Err(reason) => Answer::Refused { reason },
            },
            Request::HandOver { .. } => {
                Answer::Refused { reason: "a proxy hands over to one of its own user".to_owned() }
            }
        }
    }

    fn status(&self) -> Status {
        let (table, Listeners { http, .. }) = (self.proxy.routes.table(), &self.listeners);
        let address = |listener: Option<Arc<TcpListener>>| listener.and_then(|one| one.local_addr().ok());
        Status {
            process: std::process::id(),
            version: self.version.clone(),
            addresses: address(http.upgrade()).into_iter().collect(),
            tls_addresses: address(self.listeners.tls()).into_iter().collect(),
            certificates: self.proxy.tls.as_ref().map(|tls| tls.certificates.revision()),
            routes: table.len(),
            is_trusted: table.is_trusted(),
        }
    }

    async fn change(&self, change: impl Future<Output = Result<(), ChangeError>>) -> Answer {
        tokio::select! {
            biased;
            // A change that has begun ends first: a hand-over waits for it.
            changed = change => match changed {
                Ok(()) => Answer::Done,
                Err(ChangeError::Refused(reason)) => Answer::Refused { reason },
                Err(ChangeError::Unkept(reason)) => {
                    Answer::Refused { reason: format!("cannot keep the routes: {reason}") }
                }
            },
            () = self.proxy.is_handed_over.until(true) => Answer::Moved,
        }
    }

    async fn drain(&self, application: &str, container: Option<&str>, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let is_drained = self.proxy.routes.drain(application, container, limit).await;
        is_drained && timeout_at(end, self.proxy.predecessor.until(false)).await.is_ok()
    }

    async fn leave(&self, stream: UnixStream, wanted: (u32, bool)) -> io::Result<()> {
        if let Some(handed) = hand_over(&self.proxy, &self.listeners, stream, wanted).await? {
            self.proxy.is_handed_over.set(true);
            // The receiver is gone only when the proxy has ended meanwhile.
            let _ = self.ends.send(End::HandedOver(handed)).await;
        }
        Ok(())
    }
}

fn no_tls() -> Answer {
    Answer::Refused { reason: "this proxy does not serve TLS".to_owned() }
}

/// A process that may use the control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// One of the proxy's own user, or of root.
    Owner,
    /// One of the user in the settings, which is the server's.
    ControlUser,
}

impl Peer {
    /// Returns `None` for everybody else.
    fn of(stream: &UnixStream, control_user: Option<u32>) -> io::Result<Option<Self>> {
        let own = rustix::process::geteuid().as_raw();
        Ok(Self::by_user(stream.peer_cred()?.uid(), own, control_user))
    }

    fn by_user(user: u32, own: u32, control_user: Option<u32>) -> Option<Self> {
        if user == own || user == 0 {
            Some(Self::Owner)
        } else {
            (control_user == Some(user)).then_some(Self::ControlUser)
        }
    }
}

async fn send(stream: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_user_root_and_the_control_user_may_speak() {
        for (user, own, control_user, expected) in [
            (1_000, 1_000, None, Some(Peer::Owner)),
            (0, 1_000, None, Some(Peer::Owner)),
            (1_001, 1_000, None, None),
            (1_000, 0, None, None),
            (1_001, 1_000, Some(1_001), Some(Peer::ControlUser)),
            (1_002, 1_000, Some(1_001), None),
            (0, 1_000, Some(1_001), Some(Peer::Owner)),
            (1_000, 1_000, Some(1_000), Some(Peer::Owner)),
        ] {
            assert_eq!(Peer::by_user(user, own, control_user), expected, "{user} {own} {control_user:?}");
        }
    }
}
