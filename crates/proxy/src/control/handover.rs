//! The handover of the listening sockets from one proxy process to the next, without downtime.
//!
//! The successor sends a request and receives the listening sockets; from here to the end no route
//! changes, and all of them are on disk. It reports that it is ready, receives the ownership of the
//! socket, serves, and reports that it does. Until then the predecessor answers on the control
//! socket, so that a client always finds a proxy. The connection stays open until the predecessor has
//! exited. Before `Yours` either of the two may crash, and the other one continues.

use std::{
    io,
    net::TcpListener,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    sync::OwnedMutexGuard,
    time::timeout,
};

use super::{Answer, Folder, Request, descriptors};
use crate::{proxy::Proxy, store::Store, tls::CertificateStore};

/// The version of the protocol in this file. Routes have a format of their own.
const PROTOCOL: u32 = 1;
const READY: &[u8] = b"ready\n";
const SERVING: &[u8] = b"serving\n";
const TIMEOUT: Duration = Duration::from_secs(10);

/// The listening sockets of a proxy. They cannot be upgraded once it has stopped listening.
#[derive(Debug, Clone)]
pub(crate) struct Listeners {
    pub(crate) http: Weak<TcpListener>,
    pub(crate) tls: Option<Weak<TcpListener>>,
}

impl Listeners {
    pub(super) fn tls(&self) -> Option<Arc<TcpListener>> {
        self.tls.as_ref().and_then(Weak::upgrade)
    }
}

/// The listening sockets that a successor receives.
#[derive(Debug)]
pub(crate) struct Inheritance {
    pub(crate) listener: TcpListener,
    /// A proxy of an earlier version, or one without TLS, has none.
    pub(crate) tls: Option<TcpListener>,
    stream: UnixStream,
}

/// Requests the listening sockets of the proxy that answers in this folder. `None` if there is none.
pub(crate) async fn take_over(folder: &Folder) -> io::Result<Option<Inheritance>> {
    let stream = match folder.connect().await {
        Ok(stream) => stream,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let asked = async {
        let mut stream = stream;
        stream.write_all(&line(&Request::HandOver { protocol: PROTOCOL, with_tls: true })?).await?;
        let (text, descriptors) = descriptors::receive(&stream).await?;
        let mut descriptors = descriptors.into_iter();
        match (serde_json::from_slice(&text)?, descriptors.next()) {
            (Answer::Listener, Some(descriptor)) => {
                let tls = descriptors.next().map(listening).transpose()?;
                Ok(Some(Inheritance { listener: listening(descriptor)?, tls, stream }))
            }
            (answer, _) => Err(io::Error::other(format!("the running proxy does not hand over: {answer:?}"))),
        }
    };
    match timeout(TIMEOUT, asked).await? {
        // It ended during the request, or is about to.
        Err(error) if is_absence(&error) => Ok(None),
        asked => asked,
    }
}

fn listening(descriptor: OwnedFd) -> io::Result<TcpListener> {
    let listener = TcpListener::from(descriptor);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | NotFound | UnexpectedEof)
}

impl Inheritance {
    /// Reports that everything is prepared. When this returns, the predecessor has stopped listening.
    pub(crate) async fn ready(mut self) -> io::Result<(TcpListener, Leaving)> {
        self.stream.write_all(READY).await?;
        let (text, _) = timeout(TIMEOUT, descriptors::receive(&self.stream)).await??;
        match serde_json::from_slice(&text)? {
            Answer::Yours => Ok((self.listener, Leaving(self.stream))),
            answer => Err(io::Error::other(format!("the running proxy does not hand over: {answer:?}"))),
        }
    }
}

/// A predecessor that still answers its requests in flight.
#[derive(Debug)]
pub(crate) struct Leaving(UnixStream);

impl Leaving {
    /// Reports that the control socket belongs to this process. Only the time at which the predecessor exits
    /// depends on it.
    pub(crate) async fn report_serving(&mut self) {
        if let Err(error) = self.0.write_all(SERVING).await {
            tracing::debug!(%error, "predecessor exited early");
        }
    }

    /// Resolves when the predecessor has exited.
    pub(crate) async fn gone(mut self) {
        while let Ok(1..) = self.0.read(&mut [0; 64]).await {}
    }
}

/// The connection to the successor, which a predecessor holds until it exits.
#[derive(Debug)]
pub(crate) struct Handed {
    stream: UnixStream,
    _no_changes: (OwnedMutexGuard<Store>, Option<OwnedMutexGuard<CertificateStore>>),
}

impl Handed {
    /// Resolves when the successor serves, or has failed.
    pub(crate) async fn until_served(&mut self) {
        let said = timeout(TIMEOUT, self.stream.read_exact(&mut [0; SERVING.len()])).await;
        if !matches!(said, Ok(Ok(_))) {
            tracing::warn!("successor did not confirm that it serves");
        }
    }
}

/// Passes the listening sockets on. Returns `None` if the successor did not take it: then nothing changes.
pub(super) async fn hand_over(
    proxy: &Proxy,
    listeners: &Listeners,
    mut stream: UnixStream,
    (protocol, with_tls): (u32, bool),
) -> io::Result<Option<Handed>> {
    if protocol != PROTOCOL {
        let reason = format!("this proxy hands over by protocol {PROTOCOL}");
        stream.write_all(&line(&Answer::Refused { reason })?).await?;
        return Ok(None);
    }
    let certificates = match &proxy.tls {
        Some(tls) => Some(tls.certificates.freeze().await),
        None => None,
    };
    let no_changes = (proxy.routes.freeze().await, certificates);
    // It is closed already when the proxy ends without a successor.
    let Some(http) = listeners.http.upgrade() else { return Ok(None) };
    let tls = listeners.tls().filter(|_| with_tls);
    let descriptors: Vec<_> =
        [Some(&http), tls.as_ref()].into_iter().flatten().map(|one| one.as_fd()).collect();
    descriptors::send(&stream, &line(&Answer::Listener)?, &descriptors).await?;
    let mut said = [0; READY.len()];
    timeout(TIMEOUT, stream.read_exact(&mut said)).await??;
    if said != READY {
        return Ok(None);
    }
    stream.write_all(&line(&Answer::Yours)?).await?;
    Ok(Some(Handed { stream, _no_changes: no_changes }))
}

fn line(message: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
