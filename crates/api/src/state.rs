//! What handlers work with.

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

/// How many large deliveries of code hosts are read at once: whoever sends one need not prove anything
/// before its last byte.
const LARGE_DELIVERIES: usize = 8;

/// How the API is to behave.
#[derive(Debug, Clone)]
pub struct ApiOptions {
    /// The proxies whose word about a client's address is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The origin that browsers reach the API by, such as `https://deploy.example.com`.
    pub public_origin: Option<String>,
    /// The largest body that is read, in bytes.
    pub body_limit: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
}

/// What handlers work with: the use cases, and the API's own state.
pub struct Api {
    /// Every use case.
    pub services: Services,
    /// How the API is to behave.
    pub options: ApiOptions,
    /// What is counted.
    pub metrics: Metrics,
    pub(crate) request_ids: RequestIds,
    /// Places for large deliveries of code hosts.
    pub(crate) large_deliveries: Semaphore,
    /// The ability of the store to keep changes, which `/ready` depends on.
    pub(crate) store: Option<Arc<dyn StoreHealth>>,
    stopping: AtomicBool,
}

impl Api {
    /// An API over `services`.
    #[must_use]
    pub fn new(services: Services, options: ApiOptions, metrics: Metrics) -> Self {
        Self {
            services,
            options,
            metrics,
            request_ids: RequestIds::default(),
            large_deliveries: Semaphore::new(LARGE_DELIVERIES),
            store: None,
            stopping: AtomicBool::new(false),
        }
    }

    /// Makes `/ready` fail while `store` cannot keep changes.
    #[must_use]
    pub fn with_store(self, store: Arc<dyn StoreHealth>) -> Self {
        Self { store: Some(store), ..self }
    }

    /// From now on the API says that it is not ready for new work.
    pub fn begin_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
