//! Looking after what extensions made.

use chrono::TimeDelta;
use launchway_domain::{
    deployments::Condition,
    extensions::{ExtensionRoute, Write},
};

use super::Upkeep;

/// How long the workspace of a run stays.
const WORKSPACES: TimeDelta = TimeDelta::days(7);

impl Upkeep {
    /// Notices containers that are elsewhere since the engine started them again, so that their
    /// names lead there.
    pub(super) async fn follow_extensions(&self) {
        let routes = match self.ports.extensions.routes().await {
            Ok(routes) => routes,
            Err(error) => {
                tracing::warn!(%error, "the names of extensions could not be looked for");
                return;
            }
        };
        for route in routes {
            self.follow_route(&route).await;
        }
    }

    async fn follow_route(&self, route: &ExtensionRoute) {
        let address = match self.ports.deployer.condition(&route.container).await {
            Ok(Condition::Running { address, .. }) => address,
            // It is reached again when it runs again. Until then its address may be somebody else's.
            Ok(Condition::Exited { .. } | Condition::Gone) => ExtensionRoute::NOWHERE,
            Err(error) => {
                tracing::warn!(host = %route.host, %error, "the container of a name could not be asked for");
                return;
            }
        };
        if address == route.address {
            return;
        }
        let moved = Write::MoveRoute { id: route.id, address };
        if let Err(error) = self.tools.store.commit(vec![moved.into()]).await {
            tracing::warn!(host = %route.host, %error, "the address of a container could not be recorded");
        }
    }

    /// Removes the workspaces of runs that were over long ago.
    pub(super) async fn sweep_workspaces(&self) {
        if let Err(error) = self.ports.runner.sweep(self.tools.clock.now() - WORKSPACES).await {
            tracing::warn!(%error, "old workspaces could not be removed");
        }
    }
}
