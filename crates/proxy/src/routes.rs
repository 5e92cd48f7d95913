//! Which names lead where, as the control plane tells it and as it is kept.

mod live;

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use self::live::{ChangeError, LiveRoutes};

/// The names of one application, and where they lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Which application, as the control plane calls it.
    pub application: String,
    /// Its names: lower case, ASCII, without a port.
    pub hosts: Vec<String>,
    /// Where they lead.
    pub target: Target,
}

/// Where traffic goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// To a container.
    Container {
        /// The engine's id of it.
        id: String,
        /// Where it listens.
        address: SocketAddr,
    },
    /// To a published folder.
    Site {
        /// Its files.
        folder: PathBuf,
    },
    /// Nowhere: somebody stopped the application.
    Stopped,
    /// Nowhere: no version of it is live.
    Absent,
}
