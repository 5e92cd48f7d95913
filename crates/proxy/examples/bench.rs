//! Both ends of a measurement: `bench backend 9000` answers everything with 1 KiB, and
//! `bench proxy 8000 9000` leads `bench.localhost` on port 8000 there.

use std::{
    convert::Infallible,
    env,
    error::Error,
    net::{Ipv4Addr, SocketAddr},
};

use bytes::Bytes;
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use launchway_proxy::{
    Limits, Settings, body,
    control::Client,
    routes::{Route, Target},
    run,
};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let address =
        |port: &str| Ok::<_, Box<dyn Error>>(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?)));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["backend", port] => backend(address(port)?).await,
        ["proxy", port, to] => proxy(address(port)?, address(to)?).await,
        _ => Err("bench backend PORT | bench proxy PORT TO".into()),
    }
}

async fn backend(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    let text = Bytes::from(vec![b'x'; 1_024]);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let text = text.clone();
        let service = service_fn(move |_: Request<Incoming>| {
            let text = text.clone();
            async move { Ok::<_, Infallible>(Response::new(body::full(text))) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn proxy(bind: SocketAddr, to: SocketAddr) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let settings = Settings {
        bind,
        folder: folder.path().to_owned(),
        trusted: Vec::new(),
        limits: Limits::default(),
        access_log: env::var_os("ACCESS_LOG").is_some(),
        version: "bench".to_owned(),
    };
    let control = Client::at(folder.path());
    let running = tokio::spawn(run(settings, std::future::pending()));
    let route = Route {
        application: "bench".to_owned(),
        hosts: vec!["bench.localhost".to_owned()],
        target: Target::Container { id: "bench".to_owned(), address: to },
    };
    while control.replace_all(vec![route.clone()]).await.is_err() && !running.is_finished() {}
    Ok(running.await??)
}
