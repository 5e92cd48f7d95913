//! Routes: traffic follows the records.

#[cfg(feature = "extensions")]
mod extension_routes;

use std::{collections::HashMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use launchway_domain::{
    applications::{Application, ApplicationRepository, ProxyServer},
    deployments::{
        ContainerId, ContainerState, Deployment, DeploymentKind, DeploymentRepository, SiteStore, StepError,
    },
    ids::ApplicationId,
    organizations::Scope,
    routes::{Route, Target, TrafficRouter},
    store::StoreError,
};
use tokio::{sync::Mutex, time::Instant};

/// The ports of routes.
pub struct RoutePorts {
    /// Reads the host names of applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads live versions.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Locates published files.
    pub sites: Arc<dyn SiteStore>,
    /// The router.
    pub router: Arc<dyn TrafficRouter>,
}

/// Routes the traffic of applications.
///
/// **Invariant:** reading the records and updating the router is one step under a lock, so that an older
/// read never replaces a newer one.
pub struct Routes {
    ports: RoutePorts,
    /// Reads the routes of extensions; there are none if absent.
    #[cfg(feature = "extensions")]
    extensions: Option<Arc<dyn launchway_domain::extensions::ExtensionRepository>>,
    /// The address that the router listens on; `None` when there is none.
    front: Option<SocketAddr>,
    /// The time at which the router last got all routes; `None` after a failure.
    told: Mutex<Option<Instant>>,
}

/// The interval at which the router gets all routes again, even without a change.
const REPEAT: Duration = Duration::from_secs(60);

impl Routes {
    /// Returns routes for traffic that comes in at `front`.
    #[must_use]
    pub fn new(ports: RoutePorts, front: Option<SocketAddr>) -> Self {
        Self {
            ports,
            #[cfg(feature = "extensions")]
            extensions: None,
            front,
            told: Mutex::default(),
        }
    }

    /// Updates the routes of one application from its records.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the records cannot be read or the router is unavailable.
    pub async fn follow(&self, scope: Scope, id: ApplicationId) -> Result<(), StepError> {
        if !self.ports.router.is_there() {
            return Ok(());
        }
        let mut told = self.told.lock().await;
        let outcome = self.follow_one(scope, id).await;
        forget_failed(&mut told, outcome)
    }

    async fn follow_one(&self, scope: Scope, id: ApplicationId) -> Result<(), StepError> {
        let Some(application) = self.ports.applications.get(scope, id).await.map_err(unreadable)? else {
            return self.ports.router.remove(id).await;
        };
        let live = match application.live {
            Some(live) => self.ports.deployments.get(scope, live).await.map_err(unreadable)?,
            None => None,
        };
        let target = self.target(&application, live.as_ref()).await.map_err(unreadable)?;
        self.ports.router.set(&route(&application, target)).await
    }

    /// Updates all routes from the records.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the records cannot be read or the router is unavailable.
    pub async fn follow_all(&self) -> Result<(), StepError> {
        if !self.ports.router.is_there() {
            return Ok(());
        }
        let mut told = self.told.lock().await;
        *told = None;
        let routes = self.recorded().await.map_err(unreadable)?;
        self.ports.router.replace_all(&routes).await?;
        *told = Some(Instant::now());
        Ok(())
    }

    /// Updates all routes from the records if the router may have missed a change: after a failure, when it
    /// was restarted, and once a minute.
    ///
    /// # Errors
    /// As [`follow_all`](Routes::follow_all).
    pub async fn confirm(&self) -> Result<(), StepError> {
        if !self.ports.router.is_there() {
            return Ok(());
        }
        let told = *self.told.lock().await;
        match told.is_some_and(|told| told.elapsed() < REPEAT) && self.ports.router.is_current().await? {
            true => Ok(()),
            false => self.follow_all().await,
        }
    }

    /// Routes the traffic of one application to `target`, regardless of the records.
    pub(crate) async fn route_to(
        &self,
        scope: Scope,
        id: ApplicationId,
        target: Target,
    ) -> Result<(), StepError> {
        let mut told = self.told.lock().await;
        let outcome = match self.ports.applications.get(scope, id).await.map_err(unreadable) {
            Ok(Some(application)) => self.ports.router.set(&route(&application, target)).await,
            Ok(None) => self.ports.router.remove(id).await,
            Err(error) => Err(error),
        };
        forget_failed(&mut told, outcome)
    }

    /// Removes the routes of a deleted application.
    pub(crate) async fn forget(&self, id: ApplicationId) -> Result<(), StepError> {
        let mut told = self.told.lock().await;
        let outcome = self.ports.router.remove(id).await;
        forget_failed(&mut told, outcome)
    }

    /// Waits for the running requests on the previous target of an application: one container, or all.
    pub(crate) async fn drain(&self, id: ApplicationId, container: Option<ContainerId>) {
        if let Err(error) = self.ports.router.drain(id, container).await {
            tracing::warn!(application.id = %id, %error, "drain failed");
        }
    }

    /// Returns the URL of an application; `None` if no traffic is routed.
    pub(crate) fn url(&self, application: &Application) -> Option<String> {
        let front = self.front?;
        match (&application.blueprint.domain, application.blueprint.proxy_server) {
            // Caddy is reached on the default HTTPS port.
            (Some(domain), ProxyServer::Caddy) => Some(format!("https://{domain}")),
            _ => {
                let host = application.hosts().next()?;
                let port = if front.port() == 80 { String::new() } else { format!(":{}", front.port()) };
                Some(format!("http://{host}{port}"))
            }
        }
    }

    /// Returns the directory of a deployment's site: its own, or that of the deployment it was rolled back
    /// to.
    pub(crate) async fn site(&self, deployment: &Deployment) -> Result<Option<PathBuf>, StoreError> {
        let (scope, application) = (Scope::of_record(deployment.organization_id), deployment.application_id);
        let (mut id, mut kind) = (deployment.id, deployment.kind);
        loop {
            if let Some(folder) = self.ports.sites.release(application, id).await {
                return Ok(Some(folder));
            }
            let DeploymentKind::Rollback { to } = kind else { return Ok(None) };
            let Some(earlier) = self.ports.deployments.get(scope, to).await? else { return Ok(None) };
            (id, kind) = (earlier.id, earlier.kind);
        }
    }

    /// Returns the target of the live version.
    pub(crate) async fn live_target(&self, deployment: &Deployment) -> Result<Target, StoreError> {
        let Some(container) = &deployment.container else {
            return Ok(self.site(deployment).await?.map_or(Target::Absent, Target::Site));
        };
        Ok(match container.address.filter(|_| container.state == ContainerState::Running) {
            Some(address) => {
                let address = SocketAddr::new(address, container.port.get());
                Target::Container { id: container.id.clone(), address }
            }
            None => Target::Absent,
        })
    }

    async fn target(
        &self,
        application: &Application,
        live: Option<&Deployment>,
    ) -> Result<Target, StoreError> {
        match live {
            None => Ok(Target::Absent),
            Some(_) if application.is_stopped => Ok(Target::Stopped),
            Some(live) => self.live_target(live).await,
        }
    }

    /// Returns the route of every application of the installation, and those of extensions.
    async fn recorded(&self) -> Result<Vec<Route>, StoreError> {
        let named = self.ports.applications.named().await?;
        let live = self.ports.deployments.live().await?;
        let live: HashMap<_, _> = live.iter().map(|version| (version.application.id, version)).collect();
        let mut routes = Vec::with_capacity(named.len());
        for named in named {
            let target = match live.get(&named.id) {
                Some(version) => self.target(&version.application, Some(&version.deployment)).await?,
                None => Target::Absent,
            };
            routes.push(Route { subject: named.id.into(), hosts: named.hosts, target });
        }
        #[cfg(feature = "extensions")]
        routes.extend(self.extension_routes().await?);
        Ok(routes)
    }
}

fn route(application: &Application, target: Target) -> Route {
    Route { subject: application.id.into(), hosts: application.hosts().map(str::to_owned).collect(), target }
}

/// Clears the time of the last full update after a failure, because the router may be outdated.
fn forget_failed(told: &mut Option<Instant>, outcome: Result<(), StepError>) -> Result<(), StepError> {
    if outcome.is_err() {
        *told = None;
    }
    outcome
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be read", error)
}
