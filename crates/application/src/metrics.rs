//! Metrics of applications: a short history of what each uses, for its page.
//!
//! Nothing is stored. The requests come from the counters of this server's front proxy, which are read anyway; containers
//! are asked only while somebody looks.

mod series;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use launchway_domain::{
    applications::Application,
    auth::{Action, Actor, Permission, Resource},
    deployments::{ContainerId, Deployment},
    ids::ApplicationId,
    metrics::{ContainerStatistics, ContainerUsage},
};
use tokio::time::{Instant, timeout};

use self::series::Series;
pub use self::series::{SPAN, Sample};
use crate::{Error, applications::APPLICATION};

const READ: Permission = Permission::new(Resource::Deploy, Action::Read);

/// The shortest time between two samples of an application.
const INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two samples of requests: a rate over less is mostly noise.
const REQUEST_INTERVAL: Duration = Duration::from_secs(10);
/// The longest wait for the engine. A page is shown without the sample.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The most applications whose containers are sampled.
const CAPACITY: usize = 1000;

/// The recent metrics of an application, each oldest first; empty if there is no figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApplicationMetrics {
    /// The usage of processors in percent of one.
    pub cpu: Vec<Sample>,
    /// The memory in bytes.
    pub memory: Vec<Sample>,
    /// The requests per minute that the front proxy of this server completed.
    pub requests: Vec<Sample>,
}

/// Keeps the recent metrics of applications.
pub struct Metrics {
    /// `None` if the engine does not report what containers use.
    statistics: Option<Arc<dyn ContainerStatistics>>,
    usage: Mutex<HashMap<ApplicationId, Usage>>,
    traffic: Mutex<HashMap<ApplicationId, Traffic>>,
}

/// The samples of an application's containers.
#[derive(Default)]
struct Usage {
    /// The time of the last attempt.
    asked: Option<Instant>,
    /// The last usage of each container.
    last: Vec<(ContainerId, ContainerUsage)>,
    read: Option<Instant>,
    cpu: Series,
    memory: Series,
}

/// The samples of an application's requests.
struct Traffic {
    total: u64,
    read: Instant,
    requests: Series,
}

impl Metrics {
    /// Returns metrics without samples.
    #[must_use]
    pub fn new(statistics: Option<Arc<dyn ContainerStatistics>>) -> Self {
        Self { statistics, usage: Mutex::default(), traffic: Mutex::default() }
    }

    /// Records how many requests each application has had, by counters that start at zero with the front proxy. An
    /// application that is absent is dropped.
    pub fn record_requests(&self, totals: impl IntoIterator<Item = (ApplicationId, u64)>) {
        let now = Instant::now();
        let mut traffic = lock(&self.traffic);
        let mut previous = std::mem::take(&mut *traffic);
        for (application, total) in totals {
            let known = previous.remove(&application);
            let mut next = known.unwrap_or_else(|| Traffic { total, read: now, requests: Series::default() });
            let elapsed = now - next.read;
            if elapsed >= REQUEST_INTERVAL {
                // A counter that went back belongs to a proxy that was started again.
                let requests = total.checked_sub(next.total).unwrap_or(total);
                next.requests.push(now, requests as f64 * 60.0 / elapsed.as_secs_f64());
                (next.total, next.read) = (total, now);
            }
            traffic.insert(application, next);
        }
    }

    /// Returns the recent metrics of an application whose live version is `live`, after a sample of its containers if the
    /// last one is older than five seconds.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an application of another organization, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn of(
        &self,
        actor: &Actor,
        application: &Application,
        live: Option<&Deployment>,
    ) -> Result<ApplicationMetrics, Error> {
        if actor.require(READ)?.id() != application.organization_id {
            return Err(APPLICATION);
        }
        let containers = live.into_iter().flat_map(Deployment::copies).map(|copy| copy.id.clone());
        let containers: Vec<ContainerId> = containers.collect();
        if !containers.is_empty()
            && let Some(statistics) = &self.statistics
            && self.is_due(application.id)
        {
            // A sample that fails is missing in the history, and the next one follows.
            if let Ok(Some(found)) = timeout(TIMEOUT, sample(&**statistics, containers)).await {
                self.record_usage(application.id, found);
            }
        }
        let now = Instant::now();
        let (cpu, memory) = match lock(&self.usage).get(&application.id) {
            Some(usage) => (usage.cpu.samples(now), usage.memory.samples(now)),
            None => Default::default(),
        };
        let traffic = lock(&self.traffic);
        let requests = traffic.get(&application.id).map(|traffic| traffic.requests.samples(now));
        Ok(ApplicationMetrics { cpu, memory, requests: requests.unwrap_or_default() })
    }

    /// Returns whether a sample is due, and counts it as taken: callers at the same time take one.
    fn is_due(&self, application: ApplicationId) -> bool {
        let now = Instant::now();
        let mut all = lock(&self.usage);
        if all.len() >= CAPACITY && !all.contains_key(&application) {
            all.retain(|_, usage| usage.asked.is_some_and(|asked| now - asked < SPAN));
            if all.len() >= CAPACITY {
                return false;
            }
        }
        let usage = all.entry(application).or_default();
        let is_due = usage.asked.is_none_or(|asked| now - asked >= INTERVAL);
        if is_due {
            usage.asked = Some(now);
        }
        is_due
    }

    fn record_usage(&self, application: ApplicationId, found: Vec<(ContainerId, ContainerUsage)>) {
        let now = Instant::now();
        let mut all = lock(&self.usage);
        let usage = all.entry(application).or_default();
        usage.memory.push(now, found.iter().map(|(_, usage)| usage.memory as f64).sum());
        // Other containers are another version, whose processor time says nothing about the time before.
        let is_same = found.iter().map(|(id, _)| id).eq(usage.last.iter().map(|(id, _)| id));
        if let Some(read) = usage.read
            && is_same
        {
            let time = |all: &[(ContainerId, ContainerUsage)]| {
                all.iter().map(|(_, usage)| usage.cpu_time).sum::<Duration>()
            };
            // A container that was started again begins at zero.
            if let Some(used) = time(&found).checked_sub(time(&usage.last)) {
                usage.cpu.push(now, used.as_secs_f64() / (now - read).as_secs_f64().max(0.001) * 100.0);
            }
        }
        (usage.last, usage.read) = (found, Some(now));
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the usage of all `containers`; `None` if one of them is not known.
async fn sample(
    statistics: &dyn ContainerStatistics,
    containers: Vec<ContainerId>,
) -> Option<Vec<(ContainerId, ContainerUsage)>> {
    let mut found = Vec::with_capacity(containers.len());
    for container in containers {
        match statistics.usage(&container).await {
            Ok(usage) => found.push((container, usage?)),
            Err(error) => {
                tracing::debug!(%error, "usage of a container could not be read");
                return None;
            }
        }
    }
    Some(found)
}
