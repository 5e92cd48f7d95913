//! The routes of extensions, which refer to containers too.

use launchway_domain::{
    deployments::Condition,
    extensions::{ExtensionRoute, Write},
};

use super::Reconciler;

impl Reconciler {
    /// Updates the routes of extensions to the addresses of their containers.
    pub(super) async fn follow_extension_routes(&self) {
        let routes = match self.ports.routes.recorded_extension_routes().await {
            Ok(routes) => routes,
            Err(error) => {
                tracing::warn!(%error, "routes of extensions could not be read");
                return;
            }
        };
        for route in routes {
            self.follow_extension_route(&route).await;
        }
    }

    async fn follow_extension_route(&self, route: &ExtensionRoute) {
        let address = match self.ports.deployer.condition(&route.container).await {
            Ok(Condition::Running { address, .. }) => address,
            // Its route is restored when it runs again.
            Ok(_) => ExtensionRoute::NOWHERE,
            Err(error) => {
                tracing::warn!(host = %route.host, %error, "container of an extension could not be inspected");
                return;
            }
        };
        if address == route.address {
            return;
        }
        let moved = Write::MoveRoute { id: route.id, address };
        if let Err(error) = self.context.commit_as_leader(vec![moved.into()]).await {
            tracing::warn!(host = %route.host, %error, "address of an extension could not be recorded");
        }
    }
}
