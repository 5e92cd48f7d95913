//! Accepts, serves and closes connections of clients.

use std::{
    convert::Infallible,
    future::{Future as _, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;

use crate::{
    close::Phase,
    exchange::{Peer, Scheme},
    files::Transport,
    forward, http2,
    proxy::Proxy,
    tls,
    wire::Wire,
    workers::{self, Loads},
};

/// The backlog of the listening socket.
const BACKLOG: u32 = 4_096;

/// The size of the read buffer. Heads are limited by `Limits`.
const BUFFER: usize = 64 * 1_024;

/// The delay before the next `accept` after one failed, mostly because file descriptors ran out.
const PAUSE: Duration = Duration::from_millis(50);

/// Binds a listening socket.
pub(crate) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted proxy must not wait for connections of the last one.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// Accepts connections of a scheme until the proxy shuts down.
pub(crate) async fn accept(proxy: Arc<Proxy>, loads: Arc<Loads>, listener: TcpListener, scheme: Scheme) {
    loop {
        let taken = async {
            let permit = Arc::clone(&proxy.connections).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((permit, listener.accept().await?))
        };
        tokio::select! {
            biased;
            () = proxy.closing.reached(Phase::Leaving) => return,
            taken = taken => match taken {
                Ok((permit, (stream, address))) => {
                    let Some(peer) = Peer::at(&proxy, address, scheme, permit) else { continue };
                    workers::place(&proxy, &loads, stream, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "client accept failed");
                    sleep(PAUSE).await;
                }
            },
        }
    }
}

/// Serves a connection until it ends.
pub(crate) async fn greet(proxy: &Arc<Proxy>, stream: TcpStream, peer: Arc<Peer>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "client connection setup failed");
        return;
    }
    match peer.scheme {
        Scheme::Http => serve(proxy, stream, peer).await,
        // Boxed: only these connections have the buffers of TLS.
        Scheme::Https => {
            if let Some(stream) = Box::pin(shake_hands(proxy, stream)).await {
                match stream.get_ref().1.alpn_protocol() {
                    Some(tls::ACME_TLS) => close(proxy, stream).await,
                    Some(tls::HTTP_2) => Box::pin(http2::serve(proxy, stream, peer)).await,
                    _ => Box::pin(serve(proxy, stream, peer)).await,
                }
            }
        }
    }
}

/// Returns the stream behind a TLS handshake; `None` if that failed or took too long.
async fn shake_hands(proxy: &Proxy, stream: TcpStream) -> Option<Box<TlsStream<TcpStream>>> {
    let tls = proxy.tls.as_ref()?;
    let handshake = timeout(proxy.limits.handshake, tls.acceptor().accept(stream));
    let shaken = tokio::select! {
        biased;
        () = proxy.closing.reached(Phase::Cutting) => return None,
        shaken = handshake => shaken.map_err(io::Error::from).flatten(),
    };
    match shaken {
        Ok(stream) => Some(Box::new(stream)),
        Err(error) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
    }
}

/// Ends a connection that was only about its handshake.
async fn close(proxy: &Proxy, mut stream: Box<TlsStream<TcpStream>>) {
    match timeout(proxy.limits.handshake, stream.shutdown()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "TLS connection close failed"),
        Err(_elapsed) => tracing::debug!("TLS connection close timed out"),
    }
}

async fn serve<S>(proxy: &Arc<Proxy>, stream: S, peer: Arc<Peer>)
where
    S: AsyncRead + Transport + Send + 'static,
{
    let wire = Wire::new(stream, Arc::clone(&peer), &proxy.limits);
    let peer = &peer;
    let service =
        service_fn(|request| async move { Ok::<_, Infallible>(forward::answer(proxy, peer, request).await) });
    let mut connection = pin!(
        http1::Builder::new()
            .half_close(false)
            .max_headers(proxy.limits.headers)
            .max_header_size(proxy.limits.head_bytes)
            .max_buf_size(BUFFER.max(proxy.limits.head_bytes))
            .serve_connection(TokioIo::new(wire), service)
            .with_upgrades()
    );
    let mut watch = proxy.closing.watch();
    let mut is_told = false;
    let ended = poll_fn(|cx| {
        match watch.poll_phase(cx) {
            Phase::Serving | Phase::Leaving => {}
            Phase::ClosingIdle if is_told => {}
            Phase::ClosingIdle => {
                is_told = true;
                connection.as_mut().graceful_shutdown();
            }
            Phase::Cutting => return Poll::Ready(Ok(())),
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "client connection failed");
    }
}
