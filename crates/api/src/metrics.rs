//! Metrics in the format of Prometheus.

use std::{collections::BTreeSet, fmt::Write as _, sync::Mutex, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE},
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
            .responds(OPEN_METRICS, |_| json!({"type": "string"}))
            .also_responds(PLAIN)
            .about("As OpenMetrics, or as plain text of Prometheus if `Accept` names only `text/plain`. For callers on the server's own machine, for a session of an administrator of the installation, and for an API token of theirs with the permission `metrics:read`."),
    ]
}

/// The media types of the metrics.
const OPEN_METRICS: &str = "application/openmetrics-text";
const PLAIN: &str = "text/plain";

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
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let text = api.metrics.text()?;
    let (content_type, text) = match accept.contains(PLAIN) && !accept.contains(OPEN_METRICS) {
        true => (format!("{PLAIN}; version=0.0.4; charset=utf-8"), in_plain_text(&text)),
        false => (format!("{OPEN_METRICS}; version=1.0.0; charset=utf-8"), text),
    };
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, content_type))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(text))
}

/// Returns OpenMetrics in the older format of Prometheus, in which the name of a counter is that of its samples.
fn in_plain_text(open_metrics: &str) -> String {
    let counters: BTreeSet<_> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut text = String::new();
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("EOF" | "UNIT"), ..) => continue,
            (Some("#"), Some(kind), Some(name), Some(rest)) if counters.contains(name) => {
                let _ = writeln!(text, "# {kind} {name}_total {rest}");
            }
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_like_their_samples_in_plain_text() {
        let open =
            "# HELP a Bytes.\n# TYPE a counter\n# UNIT a bytes\na_total 1\n# TYPE b gauge\nb 2\n# EOF\n";
        let plain = "# HELP a_total Bytes.\n# TYPE a_total counter\na_total 1\n# TYPE b gauge\nb 2\n";
        assert_eq!(in_plain_text(open), plain);
    }
}
