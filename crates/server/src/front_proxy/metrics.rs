//! The metrics of the front proxy in the format of Prometheus.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use launchway_proxy::traffic::{ApplicationTraffic, Snapshot};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// The latest counters, shared by all clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProxyMetrics(Arc<Mutex<Vec<ApplicationTraffic>>>);

impl ProxyMetrics {
    /// Replaces the counters.
    pub(crate) fn renew(&self, traffic: Snapshot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = traffic.applications;
    }
}

/// Reads one counter.
type Reading = fn(&ApplicationTraffic) -> u64;
const COUNTERS: [(&str, &str, Reading); 4] = [
    ("proxy_unanswered", "Requests that ended without a response", |traffic| traffic.unanswered),
    ("proxy_received_bytes", "Bytes of request bodies", |traffic| traffic.bytes_in),
    ("proxy_sent_bytes", "Bytes of response bodies", |traffic| traffic.bytes_out),
    ("proxy_duration_milliseconds", "Total time to the last byte", |traffic| traffic.duration_ms),
];
const STATUSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

impl Collector for ProxyMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let traffic = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let help = "Completed requests to applications";
        let mut family = encoder.encode_descriptor("proxy_requests", help, None, MetricType::Counter)?;
        for application in traffic.iter() {
            for (status, count) in STATUSES.iter().zip(application.requests) {
                let labels = [("application", application.application.as_str()), ("status", status)];
                encode(&mut family, &labels, count)?;
            }
        }
        for (name, help, read) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for application in traffic.iter() {
                encode(&mut family, &[("application", application.application.as_str())], read(application))?;
            }
        }
        let help = "Requests to applications in progress";
        let mut family = encoder.encode_descriptor("proxy_in_flight", help, None, MetricType::Gauge)?;
        for application in traffic.iter() {
            let labels = [("application", application.application.as_str())];
            let count = i64::try_from(application.in_flight).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn encode(family: &mut MetricEncoder<'_>, labels: &[(&str, &str)], count: u64) -> fmt::Result {
    ConstCounter::new(count).encode(family.encode_family(&labels)?)
}
