//! The shared state of handlers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ipnet::IpNet;
use launchway_application::Services;
use launchway_domain::store::StoreHealth;
use tokio::sync::Semaphore;

use crate::{metrics::Metrics, request_ids::RequestIds};

/// The number of large webhook deliveries that are read at once: their sender is not authenticated before
/// the last byte.
const LARGE_DELIVERIES: usize = 8;

/// The number of pushes, fetches and uploads that are served at once.
const LARGE_SOURCES: usize = 8;

/// The options of the API.
#[derive(Debug, Clone)]
pub struct ApiOptions {
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The public origin of the API, such as `https://deploy.example.com`.
    pub public_origin: Option<String>,
    /// The largest body that is read, in bytes.
    pub body_limit: usize,
    /// The time that a body may take to arrive.
    pub body_timeout: Duration,
}

/// The shared state of handlers: the use cases, and the state of the API itself.
pub struct Api {
    /// Every use case.
    pub services: Arc<Services>,
    /// The options of the API.
    pub options: ApiOptions,
    /// The metrics of the server.
    pub metrics: Metrics,
    pub(crate) request_ids: RequestIds,
    /// Permits for bodies of git clients and uploads.
    pub(crate) large_sources: Arc<Semaphore>,
    /// Permits for large webhook deliveries.
    pub(crate) large_deliveries: Semaphore,
    /// The health of the store, which `/ready` depends on.
    pub(crate) store: Option<Arc<dyn StoreHealth>>,
    stopping: AtomicBool,
}

impl Api {
    /// Returns an API over `services`.
    #[must_use]
    pub fn new(services: impl Into<Arc<Services>>, options: ApiOptions, metrics: Metrics) -> Self {
        Self {
            services: services.into(),
            options,
            metrics,
            request_ids: RequestIds::default(),
            large_sources: Arc::new(Semaphore::new(LARGE_SOURCES)),
            large_deliveries: Semaphore::new(LARGE_DELIVERIES),
            store: None,
            stopping: AtomicBool::new(false),
        }
    }

    /// Makes `/ready` fail while `store` cannot commit changes.
    #[must_use]
    pub fn with_store(self, store: Arc<dyn StoreHealth>) -> Self {
        Self { store: Some(store), ..self }
    }

    /// Makes `/ready` fail from now on, because the server stops.
    pub fn begin_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
