//! The reconciler and maintenance of the world.

use std::{sync::Arc, time::Duration};

use launchway_application::{
    LogFreshness,
    deployments::Retirer,
    maintenance::{Maintenance, MaintenancePorts, MaintenanceTimings},
    reconciler::{Reconciler, ReconcilerLimits, ReconcilerPorts, ReconcilerTimings, RegistryPorts},
};
use tokio::sync::watch;

use super::{World, a_worker_id};

impl World {
    /// Returns a reconciler of this world.
    pub(crate) fn reconciler(self: &Arc<Self>) -> Arc<Reconciler> {
        let retirer = Retirer {
            applications: Arc::clone(self) as _,
            deployments: Arc::clone(self) as _,
            deployer: Arc::clone(self) as _,
            inventory: Arc::clone(self) as _,
            runtime_logs: Some(self.runtime_logs()),
            routes: self.routes(),
            context: self.context(),
        };
        let ports = ReconcilerPorts {
            queue: Arc::clone(self) as _,
            applications: Arc::clone(self) as _,
            deployments: Arc::clone(self) as _,
            image_records: Some(Arc::clone(self) as _),
            deployer: Arc::clone(self) as _,
            inventory: Arc::clone(self) as _,
            registry: self
                .state()
                .registry
                .is_some()
                .then(|| RegistryPorts { images: Arc::clone(self) as _, changes: Arc::clone(self) as _ }),
            probe: Arc::clone(self) as _,
            sites: Arc::clone(self) as _,
            routes: self.routes(),
            logs: Arc::clone(self) as _,
            retirer: Arc::new(retirer),
        };
        let (timings, limits) = (ReconcilerTimings::default(), ReconcilerLimits::default());
        let reconciler = Reconciler::new(ports, timings, limits, self.context());
        Arc::new(reconciler.with_announcements().with_execution_log(Arc::clone(self) as _))
    }

    /// Returns maintenance of this world, which gets live versions from `reconciler`.
    pub(crate) fn maintenance(self: &Arc<Self>, reconciler: &Reconciler) -> Maintenance {
        let ports = MaintenancePorts {
            queue: Arc::clone(self) as _,
            routes: self.routes(),
            logs: Arc::clone(self) as _,
            runtime_logs: self.runtime_logs(),
            log_freshness: LogFreshness::default(),
            idempotency: Some(Arc::clone(self) as _),
        };
        let identity = (a_worker_id().instance, a_worker_id().boot);
        let timings = MaintenanceTimings::default();
        Maintenance::new(ports, identity, timings, reconciler.snapshot(), self.context())
            .with_extensions(Arc::clone(self) as _)
            .with_webhooks(Arc::clone(self) as _)
    }

    /// Runs the startup of a server: scans the engine, and takes over earlier jobs.
    pub(crate) async fn begin(self: &Arc<Self>) -> Result<(), launchway_domain::store::StoreError> {
        let reconciler = self.reconciler();
        let maintenance = self.maintenance(&reconciler);
        maintenance.take_over().await?;
        reconciler.begin().await;
        maintenance.begin().await;
        Ok(())
    }
}

/// Runs the reconciler and maintenance of `world` during `story`.
pub(crate) async fn look_after(world: &Arc<World>, story: impl Future<Output = ()>) {
    let (stop, stopped) = watch::channel(false);
    let reconciler = world.reconciler();
    let maintenance = world.maintenance(&reconciler);
    tokio::join!(reconciler.run(stopped.clone()), maintenance.run(stopped), async {
        story.await;
        stop.send_replace(true);
    });
}

/// Advances the time.
pub(crate) async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
