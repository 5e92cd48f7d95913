//! A minimal server that answers every request with as many bytes as its path says, or 1 KiB: the upstream of the
//! proxy benchmark.

use std::{convert::Infallible, io};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const LONGEST: usize = 10 * 1_024 * 1_024;
const USUAL: usize = 1_024;

#[expect(clippy::print_stdout, reason = "who starts it reads the address")]
fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let page = Bytes::from(vec![b'x'; LONGEST]);
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let page = page.clone();
            let answer = service_fn(move |request: hyper::Request<_>| {
                let length = request.uri().path()[1..].parse().unwrap_or(USUAL).min(LONGEST);
                let page = page.slice(..length);
                async move { Ok::<_, Infallible>(Response::new(Full::new(page))) }
            });
            // A broken connection is not an error of the backend.
            tokio::spawn(async move {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    })
}
