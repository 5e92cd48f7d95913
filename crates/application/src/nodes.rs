//! Nodes: the machines that run the containers of applications.

use std::sync::Arc;

use launchway_domain::{
    auth::Actor,
    nodes::{Node, NodeInventory},
};

use crate::Error;

/// Reads the nodes of the installation.
pub struct Nodes {
    /// `None` if the engine is that of one machine.
    inventory: Option<Arc<dyn NodeInventory>>,
}

impl Nodes {
    /// Assembles the use case; without an inventory there are no nodes.
    #[must_use]
    pub fn new(inventory: Option<Arc<dyn NodeInventory>>) -> Self {
        Self { inventory }
    }

    /// Returns the nodes, by their names, for administrators of the installation.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for everyone else, [`Error::Unavailable`] if the cluster cannot be asked.
    pub async fn list(&self, actor: &Actor) -> Result<Vec<Node>, Error> {
        actor.require_metrics()?;
        let Some(inventory) = &self.inventory else { return Ok(Vec::new()) };
        inventory.nodes().await.map_err(|error| Error::Unavailable(error.into()))
    }
}
