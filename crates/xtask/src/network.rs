//! Ports of this machine.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result};

/// Listens on a free port; returns the port, too.
pub(crate) fn listen(address: Ipv4Addr) -> Result<(TcpListener, u16)> {
    let listener =
        TcpListener::bind((address, 0)).with_context(|| format!("no port of {address} is free"))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Returns a port of 127.0.0.1 that is free now.
pub(crate) fn free_port() -> Result<u16> {
    listen(Ipv4Addr::LOCALHOST).map(|(_, port)| port)
}
