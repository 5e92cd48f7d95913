//! One listener that answers the checks of all containers.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Result;

use crate::network::listen;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Listens on every loopback address until the process ends.
pub(crate) struct CheckTarget {
    port: u16,
    answered: Arc<AtomicU64>,
}

impl CheckTarget {
    pub(crate) fn listen() -> Result<Self> {
        // Each container has an address of its own in 127.0.0.0/8, and no smaller range has them all.
        let (listener, port) = listen(Ipv4Addr::UNSPECIFIED)?;
        let answered = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&answered);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(stream, &counted);
            }
        });
        Ok(Self { port, answered })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of checks that were answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

/// Answers one request, if it comes from this machine, and counts it.
fn answer(mut stream: TcpStream, answered: &AtomicU64) {
    let is_local = stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback());
    let is_limited = stream.set_read_timeout(Some(TIMEOUT)).is_ok();
    let is_read = is_local && is_limited && stream.read(&mut [0; 4096]).is_ok_and(|length| length > 0);
    if is_read && stream.write_all(ANSWER).is_ok() {
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_on_every_loopback_address() {
        let target = CheckTarget::listen().unwrap();
        for address in [[127, 0, 0, 1], [127, 1, 3, 232]] {
            let mut stream = TcpStream::connect((Ipv4Addr::from(address), target.port())).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        }
        assert_eq!(target.answered(), 2);
    }
}
