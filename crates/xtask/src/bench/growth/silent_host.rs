//! A code host that accepts connections and never answers, so that a worker has something to wait for.

use std::{net::Ipv4Addr, thread};

use anyhow::Result;

use crate::network::listen;

/// Listens until the process ends.
pub(crate) struct SilentHost(u16);

impl SilentHost {
    pub(crate) fn listen() -> Result<Self> {
        let (listener, port) = listen(Ipv4Addr::LOCALHOST)?;
        thread::spawn(move || {
            // Connections are kept open until the client's timeout.
            let _kept: Vec<_> = listener.incoming().collect();
        });
        Ok(Self(port))
    }

    pub(crate) fn port(&self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{ErrorKind, Read as _, Write as _},
        net::TcpStream,
        time::Duration,
    };

    use super::*;

    #[test]
    fn whoever_asks_waits() {
        let host = SilentHost::listen().unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, host.port())).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let silence = stream.read(&mut [0]).unwrap_err().kind();
        assert!(matches!(silence, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silence}");
    }
}
