//! Routes, as the control plane sends them and as they are stored.

mod live;

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use self::live::{ChangeError, LiveRoutes};

/// The hosts of one application, and their target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The id of the application in the control plane.
    pub application: String,
    /// Its hosts: lower case, ASCII, without a port.
    pub hosts: Vec<String>,
    /// The target of the traffic.
    pub target: Target,
}

/// The target of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// A container.
    Container {
        /// The id of the container in the engine.
        id: String,
        /// The address on which it listens.
        address: SocketAddr,
    },
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
