//! One request and its response, from the first byte to the last.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use http::{HeaderValue, Method, Request, Uri, header};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    access_log::Entry,
    connection_limiter::ConnectionPermit,
    files::FileQueue,
    proxy::Proxy,
    traffic::{Counters, Outcome},
};

/// An application, across all changes of its target.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) name: Arc<str>,
    counters: Arc<Counters>,
}

impl Application {
    pub(crate) fn new(name: &str, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), counters })
    }
}

/// The scheme of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the value of `X-Forwarded-Proto`.
    pub(crate) fn as_header(self) -> HeaderValue {
        HeaderValue::from_static(self.as_str())
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Peer {
    // Requests reach it through their connection: all threads would write to the same memory if each request counted as
    // a user of the proxy.
    proxy: Arc<Proxy>,
    address: IpAddr,
    pub(crate) scheme: Scheme,
    /// Its `X-Forwarded-*` headers are trusted.
    pub(crate) is_trusted: bool,
    address_header: HeaderValue,
    forwarded_header: HeaderValue,
    requests: AtomicU32,
    files: FileQueue,
    // A tunnel outlives the connection's task, and counts as a connection.
    _permit: OwnedSemaphorePermit,
    _seat: Option<ConnectionPermit>,
}

impl Peer {
    /// Registers a new connection. Returns `None` if the client has too many.
    pub(crate) fn at(
        proxy: &Arc<Proxy>,
        address: SocketAddr,
        scheme: Scheme,
        permit: OwnedSemaphorePermit,
    ) -> Option<Arc<Self>> {
        let address = address.ip().to_canonical();
        let is_trusted = proxy.trusted.iter().any(|network| network.contains(&address));
        let seat = match is_trusted {
            true => None,
            false => Some(proxy.connection_limiter.admit(address, proxy.limits.per_client)?),
        };
        let forwarded = match address {
            IpAddr::V4(address) => format!("for={address};proto={}", scheme.as_str()),
            IpAddr::V6(address) => format!("for=\"[{address}]\";proto={}", scheme.as_str()),
        };
        Some(Arc::new(Self {
            proxy: Arc::clone(proxy),
            address,
            scheme,
            is_trusted,
            address_header: to_header(address.to_string()),
            forwarded_header: to_header(forwarded),
            requests: AtomicU32::new(0),
            files: FileQueue::default(),
            _permit: permit,
            _seat: seat,
        }))
    }

    /// Admits a stream of a connection with several, unless there are too many of this client, or of all.
    pub(crate) fn admit_stream(&self, proxy: &Proxy) -> Option<StreamPermit> {
        let permit = Arc::clone(&proxy.streams).try_acquire_owned().ok()?;
        let seat = match self.is_trusted {
            true => None,
            false => Some(proxy.connection_limiter.admit(self.address, proxy.limits.per_client)?),
        };
        Some(StreamPermit { _permit: permit, _seat: seat })
    }

    /// Returns the address for `X-Forwarded-For`.
    pub(crate) fn as_header(&self) -> &HeaderValue {
        &self.address_header
    }

    /// Returns the address for `Forwarded`.
    pub(crate) fn as_forwarded(&self) -> &HeaderValue {
        &self.forwarded_header
    }

    /// Returns the files that the connection sends.
    pub(crate) fn files(&self) -> &FileQueue {
        &self.files
    }

    /// Returns whether a request of this connection has not been answered yet.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }
}

/// The permit of a stream, which counts as a connection.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    _permit: OwnedSemaphorePermit,
    _seat: Option<ConnectionPermit>,
}

fn to_header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
}

/// The fields of a request for the access log.
#[derive(Debug)]
struct Asked {
    time: SystemTime,
    host: Option<HeaderValue>,
    method: Method,
    uri: Uri,
}

/// One request in flight. Both bodies and a tunnel hold it; the request has finished when the last of them
/// is dropped.
#[derive(Debug)]
pub(crate) struct Exchange {
    peer: Arc<Peer>,
    application: Option<Arc<Application>>,
    asked: Option<Asked>,
    began: Instant,
    status: AtomicU16,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Exchange {
    pub(crate) fn begin<B>(
        peer: &Arc<Peer>,
        application: Option<Arc<Application>>,
        request: &Request<B>,
    ) -> Arc<Self> {
        peer.requests.fetch_add(1, Ordering::Relaxed);
        if let Some(application) = &application {
            application.counters.begin();
        }
        Arc::new(Self {
            peer: Arc::clone(peer),
            application,
            asked: peer.proxy.notes_requests.then(|| Asked::of(request)),
            began: Instant::now(),
            status: AtomicU16::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
        })
    }

    /// Returns whether the application is below its limit of concurrent requests.
    pub(crate) fn fits(&self) -> bool {
        let most = self.peer.proxy.limits.per_application as u64;
        self.application.as_ref().is_none_or(|application| application.counters.in_flight() <= most)
    }

    /// Returns the files that the connection sends, if the kernel can send files to it.
    pub(crate) fn files(&self) -> Option<&FileQueue> {
        match self.peer.scheme {
            Scheme::Http => Some(self.peer.files()),
            Scheme::Https => None,
        }
    }

    pub(crate) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn bytes_received(&self) -> u64 {
        self.bytes_in.load(Ordering::Relaxed)
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            status: self.status.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            duration: self.began.elapsed(),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.peer.requests.fetch_sub(1, Ordering::Relaxed);
        let outcome = self.outcome();
        if let Some(application) = &self.application {
            application.counters.end(outcome);
        }
        if let Some(asked) = &self.asked {
            let application = self.application.as_ref().map(|application| &*application.name);
            self.peer.proxy.access_log.note(&asked.entry(application, outcome, self.peer.address));
        }
    }
}

impl Asked {
    fn of<B>(request: &Request<B>) -> Self {
        Self {
            time: SystemTime::now(),
            host: request.headers().get(header::HOST).cloned(),
            method: request.method().clone(),
            uri: request.uri().clone(),
        }
    }

    fn entry<'a>(&'a self, application: Option<&'a str>, outcome: Outcome, peer: IpAddr) -> Entry<'a> {
        let Self { time, host, method, uri } = self;
        let Outcome { status, bytes_in, bytes_out, duration } = outcome;
        let host = host.as_ref().map(HeaderValue::as_bytes).unwrap_or_default();
        Entry { time: *time, application, host, method, uri, status, bytes_in, bytes_out, duration, peer }
    }
}
