//! Metrics in the format of Prometheus.

use std::{sync::Mutex, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web::Data,
};
use launchway_application::Error;
use prometheus_client::{
    collector::Collector,
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use crate::{Api, caller::Caller, client::is_local, endpoint::Endpoint, error::ApiError};
use serde_json::json;

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/metrics", "metrics", metrics)
            .summary("Get the metrics in the format of Prometheus")
            .responds("application/openmetrics-text", |_| json!({"type": "string"}))
            .about("For callers on the server's own machine, for a session of an administrator of the installation, and for an API token of theirs with the permission `metrics:read`."),
    ]
}

/// The metrics of the server.
pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    durations: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("launchway");
        let requests = Family::default();
        // From a tenth of a millisecond to ten seconds: from a cached read to a hashed password.
        let durations = Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0]);
        registry.register("http_requests", "Completed requests", requests.clone());
        registry.register("http_request_duration_seconds", "Time to the response headers", durations.clone());
        Self { registry: Mutex::new(registry), requests, durations }
    }
}

impl Metrics {
    /// Registers another collector, which is called when the metrics are read.
    pub fn also_collect(&self, collector: Box<dyn Collector>) {
        if let Ok(mut registry) = self.registry.lock() {
            registry.register_collector(collector);
        }
    }

    /// Counts a request. `route` is the pattern, not the path, to limit the number of labels.
    pub(crate) fn count(
        &self,
        method: &'static str,
        route: Option<&'static str>,
        status: u16,
        took: Duration,
    ) {
        let route = route.unwrap_or("none");
        self.requests.get_or_create(&RequestLabels { method, route, status }).inc();
        self.durations.observe(took.as_secs_f64());
    }

    fn text(&self) -> Result<String, ApiError> {
        let registry = self
            .registry
            .lock()
            .map_err(|_poisoned| ApiError::internal("the metrics registry lock is poisoned"))?;
        let mut text = String::new();
        encode(&mut text, &registry).map_err(ApiError::internal)?;
        Ok(text)
    }
}

async fn metrics(
    api: Data<Api>,
    request: HttpRequest,
    caller: Result<Caller, ApiError>,
) -> Result<HttpResponse, ApiError> {
    if !is_local(&request) {
        caller?.require_metrics().map_err(Error::from)?;
    }
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(api.metrics.text()?))
}
