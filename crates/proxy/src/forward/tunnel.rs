//! Upgraded connections: bytes are copied in both directions.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Response, Version, header};
use hyper::{
    body::Incoming,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};

use super::headers;
use crate::{
    body::{self, Body},
    close::Phase,
    exchange::Exchange,
    proxy::Proxy,
    stall::Stall,
    upstream::Upstream,
};

/// Answers with a switch of protocols, and copies bytes from then on. The target is in use until the end.
pub(super) fn open(
    proxy: &Arc<Proxy>,
    exchange: Arc<Exchange>,
    upstream: Arc<Upstream>,
    client: OnUpgrade,
    mut response: Response<Incoming>,
) -> Response<Body> {
    let application = hyper::upgrade::on(&mut response);
    let proxy = Arc::clone(proxy);
    let tunnel = async move {
        let _in_use = (exchange, upstream);
        tokio::select! {
            ended = pass(&proxy, client, application) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "tunnel failed");
                }
            }
            () = proxy.closing.reached(Phase::Cutting) => {}
        }
    };
    tokio::spawn(tunnel);
    let (mut parts, _) = response.into_parts();
    parts.version = Version::HTTP_11;
    let protocol = parts.headers.remove(header::UPGRADE);
    headers::clean_response(&mut parts.headers);
    parts.headers.extend(protocol.map(|protocol| (header::UPGRADE, protocol)));
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    Response::from_parts(parts, body::empty())
}

async fn pass(proxy: &Proxy, client: OnUpgrade, application: OnUpgrade) -> Result<(), body::BoxError> {
    let (client, application) = tokio::try_join!(client, application)?;
    let mut client = TokioIo::new(client);
    let mut application =
        Watched { stream: TokioIo::new(application), stall: Stall::new(proxy.limits.tunnel_stall) };
    copy_bidirectional(&mut client, &mut application).await?;
    Ok(())
}

/// A stream that fails when no byte moves in either direction. Every byte of a tunnel passes here.
struct Watched {
    stream: TokioIo<Upgraded>,
    stall: Stall,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Pending => self.stall.poll_over(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
            ready => {
                self.stall.reset();
                ready
            }
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if written.is_ready() {
            self.stall.reset();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
