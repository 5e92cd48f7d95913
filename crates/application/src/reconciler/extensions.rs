//! Routes of extensions, which refer to containers too, and runs that wait for the machine with the containers.

use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use launchway_domain::{
    deployments::Condition,
    extensions::{ExecutionLog, ExtensionRoute, NewExecutionLine, Write},
    ids::ExecutionId,
    logs::Level,
};

use super::Reconciler;
use crate::homes::{AbsentHome, HomeView, Place, subject_of_extensions};

/// The runs that wait for a server, and the log that says so.
#[derive(Default)]
pub(super) struct WaitingRuns {
    log: Option<Arc<dyn ExecutionLog>>,
    /// The runs whose log says that they wait.
    known: Mutex<HashSet<ExecutionId>>,
}

impl Reconciler {
    /// Logs which runs of extensions wait for a server.
    #[must_use]
    pub fn with_execution_log(self, log: Arc<dyn ExecutionLog>) -> Self {
        Self { runs: WaitingRuns { log: Some(log), ..self.runs }, ..self }
    }

    /// Updates the routes of extensions to the addresses of their containers, and logs which runs wait for a server.
    pub(super) async fn follow_extensions(&self, homes: &HomeView, absent: &[AbsentHome]) {
        if self.context.replica.is_leader() {
            self.report_waiting_runs(absent).await;
        } else if !homes.has_own() {
            return;
        }
        let routes = match self.ports.routes.recorded_extension_routes().await {
            Ok(routes) => routes,
            Err(error) => {
                tracing::warn!(%error, "routes of extensions could not be read");
                return;
            }
        };
        for route in routes {
            let place = homes.place_of_extensions(route.scope.id());
            let address = match place {
                Place::Elsewhere if is_lost(&route, absent) => Some(ExtensionRoute::NOWHERE),
                Place::Anywhere if self.context.replica.is_leader() => self.address_of(&route).await,
                Place::Here => self.address_of(&route).await,
                Place::Elsewhere | Place::Anywhere => None,
            };
            if let Some(address) = address.filter(|address| *address != route.address) {
                self.move_route(&route, address, place).await;
            }
        }
    }

    /// Returns the address of the container of a route; `None` if the engine does not answer.
    async fn address_of(&self, route: &ExtensionRoute) -> Option<IpAddr> {
        match self.ports.deployer.condition(&route.container).await {
            Ok(Condition::Running { address, .. }) => Some(address),
            // Its route is restored when it runs again.
            Ok(_) => Some(ExtensionRoute::NOWHERE),
            Err(error) => {
                tracing::warn!(host = %route.host, %error, "container of an extension could not be inspected");
                None
            }
        }
    }

    async fn move_route(&self, route: &ExtensionRoute, address: IpAddr, place: Place) {
        let moved = vec![Write::MoveRoute { id: route.id, address }.into()];
        let committed = match place {
            // A home needs no proof: no other server acts on what it runs.
            Place::Here => self.context.store.commit(moved).await,
            Place::Elsewhere | Place::Anywhere => self.context.commit_as_leader(moved).await,
        };
        if let Err(error) = committed {
            tracing::warn!(host = %route.host, %error, "address of an extension could not be recorded");
        }
    }

    async fn report_waiting_runs(&self, absent: &[AbsentHome]) {
        let Some(log) = &self.runs.log else { return };
        let servers: HashSet<_> = absent.iter().map(|absent| absent.home.server).collect();
        let mut waiting = Vec::new();
        for server in servers {
            match self.context.homes.runs_waiting_for(server).await {
                Ok(found) => waiting.extend(found),
                Err(error) => tracing::warn!(%error, "runs that wait for a server could not be read"),
            }
        }
        let known = {
            let mut known = self.runs.known.lock().unwrap_or_else(PoisonError::into_inner);
            let now = waiting.iter().map(|(_, run)| *run).collect();
            std::mem::replace(&mut *known, now)
        };
        for (subject, run) in waiting {
            let home = absent.iter().find(|absent| absent.home.subject == subject);
            let Some(home) = home.filter(|_| !known.contains(&run)) else { continue };
            let text = format!("Waiting for the machine of the extension: {}", home.reason());
            let at = self.context.clock.now();
            let line = NewExecutionLine { step_id: None, level: Level::Warn, text, at };
            if let Err(error) = log.append(run, vec![line]).await {
                tracing::warn!(%error, execution.id = %run, "log line could not be stored");
            }
        }
    }
}

/// Returns whether the machine of a route's container is not reachable.
fn is_lost(route: &ExtensionRoute, absent: &[AbsentHome]) -> bool {
    let subject = subject_of_extensions(route.scope.id());
    absent.iter().any(|absent| absent.is_lost && absent.home.subject == subject)
}
