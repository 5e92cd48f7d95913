//! The shared state of handlers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::HttpRequest;
use launchway_application::Services;
use launchway_domain::auth::Origin;

use crate::live::run_number;

/// The options of the dashboard.
#[derive(Debug, Clone)]
pub struct DashboardOptions {
    /// Returns the client and the id of a request.
    pub origin: fn(&HttpRequest) -> Origin,
    /// Returns whether a request comes from the machine of the server.
    pub is_local: fn(&HttpRequest) -> bool,
    /// Returns whether a request comes from a page of the server's own origin, by its `Origin` header.
    pub is_from_own_page: fn(&HttpRequest) -> bool,
    /// The public origin of the server, such as `https://deploy.example.com`.
    pub public_origin: Option<String>,
    /// The time that a form may take to arrive.
    pub body_timeout: Duration,
}

/// The shared state of handlers: the use cases, and the state of the dashboard itself.
pub struct Dashboard {
    pub(crate) services: Arc<Services>,
    pub(crate) options: DashboardOptions,
    /// A number of this run of the server.
    pub(crate) run_number: u64,
    stopping: AtomicBool,
}

impl Dashboard {
    /// Returns a dashboard over `services`.
    #[must_use]
    pub fn new(services: Arc<Services>, options: DashboardOptions) -> Self {
        Self { services, options, run_number: run_number(), stopping: AtomicBool::new(false) }
    }

    /// Ends every event stream, because the server stops.
    pub fn begin_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
