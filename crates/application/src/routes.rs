//! Routes: traffic follows the records.

#[cfg(feature = "extensions")]
mod extension_routes;

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError},
    time::Duration,
};

use launchway_domain::{
    applications::{Application, ApplicationRepository, ProxyServer},
    deployments::{
        ContainerId, ContainerRecord, ContainerState, Deployment, DeploymentKind, DeploymentRepository,
        SiteStore, StepError,
    },
    ids::ApplicationId,
    organizations::Scope,
    replicas::{Drain, DrainScope},
    routes::{Endpoint, Route, Target, TrafficRouter},
    store::StoreError,
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, timeout_at},
};

use crate::{OwnReplica, WakeSignal};

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
    /// Publishes certificates to the front proxy; there are none if absent.
    #[cfg(feature = "certificates")]
    certificates: Option<crate::certificates::CertificatePublisher>,
    /// The address that the router listens on; `None` when there is none.
    front: Option<SocketAddr>,
    /// The time at which the router last got all routes; `None` after a failure.
    last_update: Mutex<Option<RouterUpdate>>,
    replica: OwnReplica,
    /// Notified when routes may have changed, by this server or another one.
    changed: WakeSignal,
    /// The drains in progress for other replicas.
    draining: SyncMutex<HashSet<Drain>>,
    /// The last known folder of each site, which is served while a newer one is fetched.
    served: SyncMutex<HashMap<ApplicationId, PathBuf>>,
}

/// The last update of all routes.
#[derive(Debug, Clone, Copy)]
struct RouterUpdate {
    at: Instant,
    /// The routes epoch before the records were read; `None` if there is only one server.
    epoch: Option<i64>,
}

/// The longest that an update waits for sites that are fetched from other servers, and the least time for each.
const SITES_WAIT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_millis(50));

/// The time for which a drain for another replica is tried, and the pause between two tries.
const DRAIN_RETRIES: Duration = Duration::from_secs(60);
const DRAIN_PAUSE: Duration = Duration::from_secs(1);

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
            #[cfg(feature = "certificates")]
            certificates: None,
            front,
            last_update: Mutex::default(),
            replica: OwnReplica::default(),
            changed: WakeSignal::default(),
            draining: SyncMutex::default(),
            served: SyncMutex::default(),
        }
    }

    /// Routes beside other replicas: a change waits until their front proxies have it, and a drain for their requests.
    #[must_use]
    pub fn beside(self, replica: OwnReplica) -> Self {
        Self { replica, ..self }
    }

    /// Publishes certificates together with routes.
    #[cfg(feature = "certificates")]
    #[must_use]
    pub fn with_certificates(self, certificates: crate::certificates::CertificatePublisher) -> Self {
        Self { certificates: Some(certificates), ..self }
    }

    /// Publishes certificates and challenges, and returns when every front proxy has them.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the records cannot be read or the router is unavailable.
    #[cfg(feature = "certificates")]
    pub(crate) async fn publish_certificates(&self) -> Result<(), StepError> {
        if let Some(certificates) = &self.certificates {
            certificates.publish().await?;
        }
        self.replica.wait_for_routes().await;
        Ok(())
    }

    /// Publishes certificates to the own front proxy. A failure does not hold up routes, and is retried with them.
    #[cfg(feature = "certificates")]
    async fn follow_certificates(&self) -> Completeness {
        let Some(certificates) = &self.certificates else { return Completeness::Complete };
        match certificates.publish().await {
            Ok(()) => Completeness::Complete,
            Err(error) => {
                tracing::warn!(%error, "certificates could not be published");
                Completeness::Pending
            }
        }
    }

    /// Returns the signal that routes may have changed, which another replica may have done.
    #[must_use]
    pub fn changed(&self) -> WakeSignal {
        self.changed.clone()
    }

    /// Updates the routes of one application from its records.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the records cannot be read or the router is unavailable.
    pub async fn follow(&self, scope: Scope, id: ApplicationId) -> Result<(), StepError> {
        if !self.ports.router.is_there() {
            return Ok(());
        }
        let mut last_update = self.last_update.lock().await;
        let outcome = self.follow_one(scope, id).await;
        if matches!(outcome, Ok(Completeness::Pending)) {
            *last_update = None;
        }
        forget_failed(&mut last_update, outcome.map(drop))
    }

    async fn follow_one(&self, scope: Scope, id: ApplicationId) -> Result<Completeness, StepError> {
        let Some(application) = self.ports.applications.get(scope, id).await.map_err(unreadable)? else {
            self.ports.router.remove(id).await?;
            return Ok(Completeness::Complete);
        };
        let live = match application.live {
            Some(live) => self.ports.deployments.get(scope, live).await.map_err(unreadable)?,
            None => None,
        };
        let deadline = Instant::now() + SITES_WAIT.0;
        let (target, completeness) = self.target(&application, live.as_ref(), deadline).await?;
        self.ports.router.set(&route(&application, target)).await?;
        Ok(completeness)
    }

    /// Updates all routes from the records.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the records cannot be read or the router is unavailable.
    pub async fn follow_all(&self) -> Result<(), StepError> {
        let mut last_update = self.last_update.lock().await;
        *last_update = None;
        // Before the records: a change in between is read twice, and not missed.
        let epoch = self.replica.routes_epoch().await.map_err(unreadable)?;
        let mut completeness = Completeness::Complete;
        if self.ports.router.is_there() {
            let routes;
            (routes, completeness) = self.recorded().await?;
            self.ports.router.replace_all(&routes).await?;
            #[cfg(feature = "certificates")]
            if self.follow_certificates().await == Completeness::Pending {
                completeness = Completeness::Pending;
            }
        }
        // A site that is missing here must not delay the others, whose routes are current.
        *last_update =
            (completeness == Completeness::Complete).then(|| RouterUpdate { at: Instant::now(), epoch });
        match epoch {
            Some(epoch) => self.replica.acknowledge_routes(epoch).await.map_err(unreadable),
            None => Ok(()),
        }
    }

    /// Updates all routes from the records if the router may have missed a change: after a failure, while a site
    /// is fetched, when it was restarted, when another replica has changed a route, and once a minute.
    ///
    /// # Errors
    /// As [`follow_all`](Routes::follow_all).
    pub async fn confirm(&self) -> Result<(), StepError> {
        let last_update = *self.last_update.lock().await;
        let epoch = match self.replica.routes_epoch().await {
            Ok(epoch) => epoch,
            Err(error) => {
                // An outage of the database stops no application: without it no server removes a container.
                self.renew_lease().await?;
                return Err(unreadable(error));
            }
        };
        let is_recent = last_update
            .is_some_and(|last_update| last_update.at.elapsed() < REPEAT && last_update.epoch == epoch);
        let is_there = self.ports.router.is_there();
        if !(is_recent && (!is_there || self.ports.router.is_current().await?)) {
            self.follow_all().await?;
        }
        self.renew_lease().await
    }

    /// Lets the router use the routes to containers for longer.
    async fn renew_lease(&self) -> Result<(), StepError> {
        match self.ports.router.is_there() {
            true => self.ports.router.lease(self.replica.route_lease()).await,
            false => Ok(()),
        }
    }

    /// Drains what another replica requests, in background tasks.
    ///
    /// # Errors
    /// [`StoreError`] when the requests cannot be read.
    pub(crate) async fn drain_for_others(self: &Arc<Self>) -> Result<(), StoreError> {
        for drain in self.replica.drains().await? {
            if !self.draining().insert(drain.clone()) {
                continue;
            }
            let this = Arc::clone(self);
            tokio::spawn(async move {
                // While the front proxy does not answer, requests may be in flight.
                let end = Instant::now() + DRAIN_RETRIES;
                while !this.drain_own(&drain).await && Instant::now() < end {
                    sleep(DRAIN_PAUSE).await;
                }
                if let Err(error) = this.replica.report_drained(&drain).await {
                    tracing::warn!(%error, "drain could not be reported");
                }
                // Not before: the same drain may be requested again.
                this.draining().remove(&drain);
            });
        }
        Ok(())
    }

    /// Routes the traffic of one application to `target`, regardless of the records.
    pub(crate) async fn route_to(
        &self,
        scope: Scope,
        id: ApplicationId,
        target: Target,
    ) -> Result<(), StepError> {
        let mut last_update = self.last_update.lock().await;
        let outcome = match self.ports.applications.get(scope, id).await.map_err(unreadable) {
            Ok(Some(application)) => self.ports.router.set(&route(&application, target)).await,
            Ok(None) => self.ports.router.remove(id).await,
            Err(error) => Err(error),
        };
        forget_failed(&mut last_update, outcome)?;
        drop(last_update);
        self.replica.wait_for_routes().await;
        Ok(())
    }

    /// Removes the routes of a deleted application.
    pub(crate) async fn forget(&self, id: ApplicationId) -> Result<(), StepError> {
        let mut last_update = self.last_update.lock().await;
        self.served().remove(&id);
        let outcome = self.ports.router.remove(id).await;
        forget_failed(&mut last_update, outcome)?;
        drop(last_update);
        self.replica.wait_for_routes().await;
        Ok(())
    }

    /// Waits for the running requests on the previous target of an application: one container, or all. Requests at the
    /// front proxies of other replicas count too.
    pub(crate) async fn drain(&self, id: ApplicationId, container: Option<ContainerId>) {
        self.drain_with(Drain { application: id, container }, DrainScope::Living).await;
    }

    /// The same for a version that can stay for a while: also waits for replicas that are restarted, whose front proxies may
    /// still route to it.
    pub(crate) async fn drain_for_retirement(&self, id: ApplicationId, container: Option<ContainerId>) {
        self.drain_with(Drain { application: id, container }, DrainScope::Returning).await;
    }

    async fn drain_with(&self, drain: Drain, drain_scope: DrainScope) {
        self.replica.wait_for_routes().await;
        tokio::join!(self.drain_own(&drain), self.replica.drain_others(&drain, drain_scope));
    }

    fn draining(&self) -> MutexGuard<'_, HashSet<Drain>> {
        self.draining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the own front proxy has drained a target.
    async fn drain_own(&self, drain: &Drain) -> bool {
        let Drain { application, container } = drain.clone();
        let drained = self.ports.router.drain(application, container).await;
        if let Err(error) = &drained {
            tracing::warn!(application.id = %application, %error, "drain failed");
        }
        drained.is_ok()
    }

    /// Returns the URL of an application; `None` if no traffic is routed.
    pub(crate) fn url(&self, application: &Application) -> Option<String> {
        let front = self.front?;
        match (&application.blueprint.domain, application.blueprint.proxy_server) {
            // Caddy is reached on the default HTTPS port.
            (Some(domain), ProxyServer::Caddy) => Some(format!("https://{domain}")),
            _ => {
                let host = application.hosts().next()?;
                #[cfg(feature = "certificates")]
                if let Some(url) = self.certificates.as_ref().and_then(|certificates| certificates.url(host))
                {
                    return Some(url);
                }
                let port = if front.port() == 80 { String::new() } else { format!(":{}", front.port()) };
                Some(format!("http://{host}{port}"))
            }
        }
    }

    /// Returns the directory of a deployment's site: its own, or that of the deployment it was rolled back
    /// to.
    pub(crate) async fn site(&self, deployment: &Deployment) -> Result<Option<PathBuf>, StepError> {
        let (scope, application) = (Scope::of_record(deployment.organization_id), deployment.application_id);
        let (mut id, mut kind) = (deployment.id, deployment.kind);
        loop {
            if let Some(folder) = self.ports.sites.release(application, id).await? {
                return Ok(Some(folder));
            }
            let DeploymentKind::Rollback { to } = kind else { return Ok(None) };
            let earlier = self.ports.deployments.get(scope, to).await.map_err(unreadable)?;
            let Some(earlier) = earlier else { return Ok(None) };
            (id, kind) = (earlier.id, earlier.kind);
        }
    }

    /// Returns the target of the live version.
    pub(crate) async fn live_target(&self, deployment: &Deployment) -> Result<Target, StepError> {
        if deployment.container.is_none() {
            return Ok(self.site(deployment).await?.map_or(Target::Absent, Target::Site));
        }
        Ok(target_of(deployment.copies()))
    }

    /// Returns the target of an application by its records. If its site cannot be fetched until `deadline`, that is the
    /// last known one.
    async fn target(
        &self,
        application: &Application,
        live: Option<&Deployment>,
        deadline: Instant,
    ) -> Result<(Target, Completeness), StepError> {
        let target = match live {
            None => Target::Absent,
            Some(_) if application.is_stopped => Target::Stopped,
            Some(live) if live.container.is_none() => {
                let deadline = deadline.max(Instant::now() + SITES_WAIT.1);
                let found = timeout_at(deadline, self.site(live)).await;
                if let Ok(Err(error)) = &found {
                    tracing::warn!(%error, deployment.id = %live.id, "release of a site cannot be fetched");
                }
                let Ok(Ok(Some(folder))) = found else {
                    // Another server may not have archived it yet.
                    let is_lost = matches!(found, Ok(Ok(None))) && self.replica.route_lease().is_none();
                    let completeness = if is_lost { Completeness::Complete } else { Completeness::Pending };
                    let last = self.served().get(&application.id).cloned().filter(|_| !is_lost);
                    return Ok((last.map_or(Target::Absent, Target::Site), completeness));
                };
                self.served().insert(application.id, folder.clone());
                Target::Site(folder)
            }
            Some(live) => self.live_target(live).await?,
        };
        Ok((target, Completeness::Complete))
    }

    fn served(&self) -> std::sync::MutexGuard<'_, HashMap<ApplicationId, PathBuf>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the route of every application of the installation, and those of extensions.
    async fn recorded(&self) -> Result<(Vec<Route>, Completeness), StepError> {
        let named = self.ports.applications.named().await.map_err(unreadable)?;
        let live = self.ports.deployments.live().await.map_err(unreadable)?;
        let live: HashMap<_, _> = live.iter().map(|version| (version.application.id, version)).collect();
        let mut routes = Vec::with_capacity(named.len());
        let (mut completeness, deadline) = (Completeness::Complete, Instant::now() + SITES_WAIT.0);
        for named in named {
            let (target, is_complete) = match live.get(&named.id) {
                Some(version) => {
                    self.target(&version.application, Some(&version.deployment), deadline).await?
                }
                None => (Target::Absent, Completeness::Complete),
            };
            if is_complete == Completeness::Pending {
                completeness = is_complete;
            }
            routes.push(Route { subject: named.id.into(), hosts: named.hosts, target });
        }
        #[cfg(feature = "extensions")]
        routes.extend(self.extension_routes().await.map_err(unreadable)?);
        Ok((routes, completeness))
    }
}

/// The completeness of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Complete,
    /// A site is being fetched, or cannot be fetched.
    Pending,
}

/// Returns the target of the copies of a version: those that run.
pub(crate) fn target_of<'a>(copies: impl Iterator<Item = &'a ContainerRecord>) -> Target {
    let running = copies.filter(|container| container.state == ContainerState::Running);
    let endpoints: Vec<Endpoint> = running
        .filter_map(|container| {
            let address = SocketAddr::new(container.address?, container.port.get());
            Some(Endpoint { id: container.id.clone(), address })
        })
        .collect();
    if endpoints.is_empty() { Target::Absent } else { Target::Endpoints(endpoints) }
}

fn route(application: &Application, target: Target) -> Route {
    Route { subject: application.id.into(), hosts: application.hosts().map(str::to_owned).collect(), target }
}

/// Clears the time of the last full update after a failure, because the router may be outdated.
fn forget_failed(
    last_update: &mut Option<RouterUpdate>,
    outcome: Result<(), StepError>,
) -> Result<(), StepError> {
    if outcome.is_err() {
        *last_update = None;
    }
    outcome
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be read", error)
}
