//! The written form of targets, on the control socket and on disk.
//!
//! **Invariant:** a target with one endpoint is written as it was before a route could have several. One with
//! several adds the others in a field that an older proxy ignores, so that it routes to the first one. Either
//! of the server and the proxy may therefore be the older one, and so may the one that takes over.

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Endpoint, Target};

/// The written form of a [`Target`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum WrittenTarget {
    Container {
        id: String,
        address: SocketAddr,
        /// The endpoints after the first one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        further: Vec<Endpoint>,
    },
    Site {
        folder: PathBuf,
    },
    Stopped,
    Absent,
}

impl From<WrittenTarget> for Target {
    fn from(written: WrittenTarget) -> Self {
        match written {
            WrittenTarget::Container { id, address, further } => {
                let mut endpoints = Vec::with_capacity(1 + further.len());
                endpoints.push(Endpoint { id, address });
                endpoints.extend(further);
                Self::Endpoints(endpoints)
            }
            WrittenTarget::Site { folder } => Self::Site { folder },
            WrittenTarget::Stopped => Self::Stopped,
            WrittenTarget::Absent => Self::Absent,
        }
    }
}

impl From<Target> for WrittenTarget {
    fn from(target: Target) -> Self {
        match target {
            Target::Endpoints(endpoints) => {
                let mut endpoints = endpoints.into_iter();
                match endpoints.next() {
                    Some(Endpoint { id, address }) => {
                        Self::Container { id, address, further: endpoints.collect() }
                    }
                    None => Self::Absent,
                }
            }
            Target::Site { folder } => Self::Site { folder },
            Target::Stopped => Self::Stopped,
            Target::Absent => Self::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn endpoint(number: u8) -> Endpoint {
        Endpoint { id: format!("c{number}"), address: SocketAddr::from(([10, 0, 0, number], 80)) }
    }

    #[test]
    fn one_endpoint_is_written_as_before_there_were_several() {
        let former = json!({"kind": "container", "id": "c1", "address": "10.0.0.1:80"});
        let target = Target::Endpoints(vec![endpoint(1)]);
        assert_eq!(serde_json::to_value(&target).unwrap(), former);
        assert_eq!(serde_json::from_value::<Target>(former).unwrap(), target);
    }

    #[test]
    fn an_older_proxy_reads_the_first_of_several_endpoints() {
        /// The target, as earlier versions read it.
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        enum Former {
            Container { id: String, address: SocketAddr },
        }
        let target = Target::Endpoints((1..=3).map(endpoint).collect());
        let written = serde_json::to_value(&target).unwrap();
        let Endpoint { id, address } = endpoint(1);
        let read: Former = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read, Former::Container { id, address });
        assert_eq!(serde_json::from_value::<Target>(written).unwrap(), target);
    }

    #[test]
    fn no_endpoint_is_no_target() {
        let written = serde_json::to_value(Target::Endpoints(Vec::new())).unwrap();
        assert_eq!(written, json!({"kind": "absent"}));
    }
}
