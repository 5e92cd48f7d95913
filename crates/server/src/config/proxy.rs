//! The settings of the front proxy.

use std::{net::SocketAddr, time::Duration};

use super::{reader::Reader, values};

/// What can be set about the front proxy.
#[derive(Debug)]
pub(crate) struct ProxyConfig {
    /// Where it listens.
    pub(crate) bind: SocketAddr,
    /// Whether it notes every request.
    pub(crate) access_log: bool,
    /// How long requests to an old version may go on before its container goes.
    pub(crate) drain: Duration,
}

impl ProxyConfig {
    /// Reads the settings: `None` when one was refused, `Some(None)` when there is to be no proxy.
    pub(super) fn read(read: &mut Reader) -> Option<Option<Self>> {
        let bind = read.setting("LAUNCHWAY_PROXY_BIND", "127.0.0.1:8000", values::proxy_bind);
        let access_log = read.setting("LAUNCHWAY_PROXY_ACCESS_LOG", "on", values::switch);
        let drain = read.setting("LAUNCHWAY_PROXY_DRAIN", "2m", values::duration);
        let (bind, access_log, drain) = (bind?, access_log?, drain?);
        Some(bind.map(|bind| Self { bind, access_log, drain }))
    }
}
