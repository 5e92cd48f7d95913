//! Routes, as the control plane sends them and as they are stored.

mod live;
mod written;

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use self::live::{ChangeError, LiveRoutes};
use self::written::WrittenTarget;

/// The hosts of one application, and their target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The id of the application in the control plane.
    pub application: String,
    /// Its hosts: lower case, ASCII, without a port.
    pub hosts: Vec<String>,
    /// The target of the traffic.
    pub target: Target,
    /// True if a proxy with TLS redirects every request over HTTP, also before there is a certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub https_only: bool,
}

/// The target of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenTarget", into = "WrittenTarget")]
pub enum Target {
    /// The copies of an application, over which requests are balanced. Without any, the target is absent.
    Endpoints(Vec<Endpoint>),
    /// A static site.
    Site {
        /// The folder with its files.
        folder: PathBuf,
    },
    /// None: a user stopped the application.
    Stopped,
    /// None: no deployment of the application is live.
    Absent,
}

/// One copy of an application: a container that listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The id of the container in the engine.
    pub id: String,
    /// The address on which it listens.
    pub address: SocketAddr,
}
