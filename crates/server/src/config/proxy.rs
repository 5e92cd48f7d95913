//! The settings of the front proxy.

use std::{net::SocketAddr, time::Duration};

use super::{reader::Reader, values};

/// The settings of the front proxy.
#[derive(Debug)]
pub(crate) struct ProxyConfig {
    /// The listen address.
    pub(crate) bind: SocketAddr,
    /// True if every request is logged.
    pub(crate) access_log: bool,
    /// The time that requests to an old version get before its container is stopped.
    pub(crate) drain: Duration,
}

impl ProxyConfig {
    /// Reads the settings: `None` if one is invalid, `Some(None)` if the proxy is disabled.
    pub(super) fn read(read: &mut Reader) -> Option<Option<Self>> {
        let bind = read.setting("LAUNCHWAY_PROXY_BIND", "127.0.0.1:8000", values::proxy_bind);
        let access_log = read.setting("LAUNCHWAY_PROXY_ACCESS_LOG", "on", values::switch);
        let drain = read.setting("LAUNCHWAY_PROXY_DRAIN", "2m", values::duration);
        let (bind, access_log, drain) = (bind?, access_log?, drain?);
        Some(bind.map(|bind| Self { bind, access_log, drain }))
    }
}
