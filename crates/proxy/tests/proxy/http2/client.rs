//! A client of HTTP/2, and load of several.

use std::{
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http2::{SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{client::TIMEOUT, tls::client::TlsClient};

pub(super) type RequestBody = BoxBody<Bytes, Infallible>;

pub(super) fn full(bytes: Vec<u8>) -> RequestBody {
    Full::new(Bytes::from(bytes)).boxed()
}

/// A body of unknown length.
pub(super) fn chunks(chunks: &[&'static str]) -> RequestBody {
    let frames: Vec<_> =
        chunks.iter().map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))).collect();
    StreamBody::new(futures_util::stream::iter(frames)).boxed()
}

pub(super) async fn body_of(answer: Response<Incoming>) -> Vec<u8> {
    body_and_trailers_of(answer).await.0
}

pub(super) async fn body_and_trailers_of(answer: Response<Incoming>) -> (Vec<u8>, Option<HeaderMap>) {
    let collected = timeout(TIMEOUT, answer.into_body().collect()).await.expect("a body in time").unwrap();
    let trailers = collected.trailers().cloned();
    (collected.to_bytes().to_vec(), trailers)
}

/// One connection.
pub(super) struct Http2Client {
    sender: SendRequest<RequestBody>,
    ended: watch::Receiver<bool>,
}

impl Http2Client {
    pub(super) async fn connect(client: &TlsClient, address: SocketAddr) -> Self {
        let stream = client.stream(address, "shop.example").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        let (end, ended) = watch::channel(false);
        tokio::spawn(async move {
            let _closed = connection.await;
            end.send_replace(true);
        });
        Self { sender, ended }
    }

    pub(super) fn send(
        &self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, hyper::Error>> + Send + use<> {
        let mut sender = self.sender.clone();
        async move { timeout(TIMEOUT, sender.send_request(request)).await.expect("an answer in time") }
    }

    pub(super) fn get(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Response<Incoming>, hyper::Error>> + Send + use<> {
        self.send(Request::get(format!("https://shop.example{path}")).body(full(Vec::new())).unwrap())
    }

    /// Waits until the proxy closes the connection.
    pub(super) async fn closed(&self) {
        let mut ended = self.ended.clone();
        timeout(TIMEOUT, ended.wait_for(|ended| *ended)).await.expect("an end in time").unwrap();
    }
}

/// Clients that send requests without pause, four streams each, and connect again when the proxy asks them to.
pub(super) struct Load {
    clients: JoinSet<()>,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Load {
    pub(super) fn begin(client: &TlsClient, address: SocketAddr, clients: usize) -> Self {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            let (client, is_over, answered) = (client.clone(), Arc::clone(&is_over), Arc::clone(&answered));
            tasks.spawn(async move {
                let mut connection = Http2Client::connect(&client, address).await;
                while !is_over.load(Ordering::Relaxed) {
                    if connection.sender.is_closed() {
                        connection = Http2Client::connect(&client, address).await;
                    }
                    let streams = [(); 4].map(|()| connection.get("/"));
                    for answer in futures_util::future::join_all(streams).await {
                        match answer {
                            Ok(answer) => {
                                let status = answer.status();
                                let text = String::from_utf8(body_of(answer).await).unwrap();
                                assert_eq!((status.as_u16(), text.as_str()), (200, "shop"));
                                answered.fetch_add(1, Ordering::Relaxed);
                            }
                            // Never sent: the proxy had said before that it takes no more streams.
                            Err(error) if error.is_canceled() || is_refused(&error) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                }
            });
        }
        Self { clients: tasks, is_over, answered }
    }

    /// Waits until this many more requests were answered.
    pub(super) async fn go_on(&self, requests: usize) {
        let (enough, begun) = (self.answered.load(Ordering::Relaxed) + requests, Instant::now());
        while self.answered.load(Ordering::Relaxed) < enough {
            assert!(begun.elapsed() < TIMEOUT, "nobody is answered any more");
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns the number of answered requests. Panics if one was not.
    pub(super) async fn end(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(client) = self.clients.join_next().await {
            client.unwrap();
        }
        self.answered.load(Ordering::Relaxed)
    }
}

/// Returns whether the proxy says that it has not processed the request, so that it can be sent again.
fn is_refused(error: &hyper::Error) -> bool {
    let reason = format!("{error:?}");
    reason.contains("REFUSED_STREAM") || reason.contains("GoAway(b\"\", NO_ERROR")
}
