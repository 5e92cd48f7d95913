//! The routes of extensions.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use launchway_domain::{
    extensions::{ExtensionRepository, ExtensionRoute},
    routes::{Route, Target},
    store::StoreError,
};

use super::Routes;

impl Routes {
    /// Routes the traffic of extensions too.
    #[must_use]
    pub fn with_extensions(self, extensions: Arc<dyn ExtensionRepository>) -> Self {
        Self { extensions: Some(extensions), ..self }
    }

    /// Returns the addresses that routes use.
    pub(crate) async fn addresses(&self) -> Result<Vec<IpAddr>, StoreError> {
        self.ports.deployments.live_addresses().await
    }

    /// Returns the recorded routes of extensions.
    pub(crate) async fn recorded_extension_routes(&self) -> Result<Vec<ExtensionRoute>, StoreError> {
        match &self.extensions {
            Some(extensions) => extensions.routes().await,
            None => Ok(Vec::new()),
        }
    }

    pub(super) async fn extension_routes(&self) -> Result<impl Iterator<Item = Route>, StoreError> {
        let recorded = self.recorded_extension_routes().await?;
        Ok(recorded.into_iter().map(|route| {
            let address = SocketAddr::new(route.address, route.port.get());
            let target = match route.has_no_target() {
                true => Target::Absent,
                false => Target::container(route.container, address),
            };
            Route { subject: route.id.into(), hosts: vec![route.host.into()], target }
        }))
    }
}
