//! The settings of the front proxy.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::{
    paths,
    reader::{Problem, Reader},
    users, values,
};

/// The settings that `launchway proxy run` reads beside its own. The address of the API must be another one, and
/// containers are no trusted proxies.
const SHARED: [&str; 6] = [
    "LAUNCHWAY_BIND",
    "LAUNCHWAY_DATA_DIR",
    "LAUNCHWAY_LOG",
    "LAUNCHWAY_LOG_FORMAT",
    "LAUNCHWAY_NETWORK_POOL",
    "LAUNCHWAY_TRUSTED_PROXIES",
];

/// Returns whether a setting concerns the front proxy. One of its own that is misspelled does, and is refused.
pub(super) fn concerns(name: &str) -> bool {
    name.starts_with("LAUNCHWAY_PROXY_") || SHARED.contains(&name)
}

/// The problem of a front proxy that is to run where there is to be none.
pub(super) fn off() -> Problem {
    Problem::new(
        "LAUNCHWAY_PROXY_BIND is `off`".to_owned(),
        "there is to be no front proxy here: set an address and a port, or do not start one",
    )
}

/// The settings of the front proxy.
#[derive(Debug, Clone)]
pub(crate) struct ProxyConfig {
    /// The listen address.
    pub(crate) bind: SocketAddr,
    /// The listen address of TLS; `None` if TLS is off.
    pub(crate) tls_bind: Option<SocketAddr>,
    /// True if every request is logged.
    pub(crate) access_log: bool,
    /// The time that requests to an old version get before its container is stopped.
    pub(crate) drain: Duration,
    /// Its folder outside of the data directory, if the server does not run it.
    pub(crate) folder: Option<PathBuf>,
    /// The user who may use the control socket, besides its own user and root.
    pub(crate) control_user: Option<u32>,
}

impl ProxyConfig {
    /// Reads the settings: `None` if one is invalid, `Some(None)` if the proxy is disabled.
    pub(super) fn read(read: &mut Reader) -> Option<Option<Self>> {
        let bind = read.setting("LAUNCHWAY_PROXY_BIND", "127.0.0.1:8000", values::proxy_bind);
        let tls_bind = read.setting("LAUNCHWAY_PROXY_TLS_BIND", "off", values::proxy_bind);
        let access_log = read.setting("LAUNCHWAY_PROXY_ACCESS_LOG", "on", values::switch);
        let drain = read.setting("LAUNCHWAY_PROXY_DRAIN", "2m", values::duration);
        let folder = read.optional("LAUNCHWAY_PROXY_DIR", paths::absolute_folder);
        let control_user = read.optional("LAUNCHWAY_PROXY_CONTROL_USER", users::user_id);
        let (bind, tls_bind, access_log, drain) = (bind?, tls_bind?, access_log?, drain?);
        let (folder, control_user) = (folder?, control_user?);
        Some(bind.map(|bind| Self { bind, tls_bind, access_log, drain, folder, control_user }))
    }
}
