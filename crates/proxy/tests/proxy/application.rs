//! Applications: one that answers every request, and one that is scripted by the test.

use std::net::SocketAddr;

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

use crate::client::Connection;

/// An application that answers each request with its name, and keeps connections alive.
pub(crate) struct Named {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

pub(crate) async fn named(name: &'static str) -> Named {
    let (listener, address) = listen().await;
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(async move {
                let mut connection = Connection::from(stream);
                while connection.until(b"\r\n\r\n").await.is_ok() {
                    let length = name.len();
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}");
                    connection.send(answer.as_bytes()).await;
                }
            });
        }
    });
    Named { address, task }
}

impl Named {
    /// Stops it and closes its connections, as the engine kills a container.
    pub(crate) fn kill(&self) {
        self.task.abort();
    }
}

/// An application whose connections the test handles itself.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    connections: mpsc::UnboundedReceiver<TcpStream>,
}

pub(crate) async fn scripted() -> Scripted {
    let (listener, address) = listen().await;
    let (sender, connections) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if sender.send(stream).is_err() {
                return;
            }
        }
    });
    Scripted { address, connections }
}

impl Scripted {
    /// Returns the next connection of the proxy.
    pub(crate) async fn connection(&mut self) -> Connection {
        let next = tokio::time::timeout(crate::client::TIMEOUT, self.connections.recv());
        Connection::from(next.await.expect("a connection in time").unwrap())
    }

    /// Returns whether there is no connection besides those that the test has taken.
    pub(crate) fn is_untouched(&mut self) -> bool {
        self.connections.try_recv().is_err()
    }
}

pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns an address on which no process listens.
pub(crate) async fn nobody() -> SocketAddr {
    listen().await.1
}
