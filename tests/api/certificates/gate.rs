//! A port that leads to another one, until it is closed.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// A port in front of another one, by which a server disappears and comes back as it was.
pub(super) struct Gate {
    pub(super) port: u16,
    is_closed: Arc<AtomicBool>,
}

impl Gate {
    /// Opens one in front of a port of this machine.
    pub(super) fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if !closed.load(Ordering::SeqCst) {
                    thread::spawn(move || {
                        // A connection that breaks off is one that its two ends see.
                        let _ended = forward(&client, target);
                    });
                }
            }
        });
        Self { port, is_closed }
    }

    /// Ends new connections at once.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn open(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }
}

fn forward(client: &TcpStream, target: u16) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", target))?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let sent = thread::spawn(move || {
        let copied = io::copy(&mut from, &mut to);
        let _ended = to.shutdown(Shutdown::Write);
        copied
    });
    let (mut from, mut to) = (server, client.try_clone()?);
    io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Both)?;
    sent.join().map_err(|_panicked| io::Error::other("a thread panicked"))?.map(drop)
}
