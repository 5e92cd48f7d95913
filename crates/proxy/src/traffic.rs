//! Traffic counters of each application.
//!
//! Counters live as long as they are referenced: by the application's entry in the routing table, or
//! by a request. Then they are dropped, so there are never more than applications. They start at zero
//! with the process.

use std::{
    array,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::workers;

/// The upper bounds of the duration buckets, in milliseconds. Longer requests are counted in the last
/// bucket.
pub const DURATION_BOUNDS_MS: [u64; 7] = [5, 25, 100, 500, 2_500, 10_000, 60_000];

const BUCKETS: usize = DURATION_BOUNDS_MS.len() + 1;

/// The counters of all applications.
#[derive(Debug, Default)]
pub struct Traffic {
    applications: Mutex<HashMap<String, Weak<Counters>>>,
}

/// The counters of one application.
#[derive(Debug, Default)]
pub struct Counters {
    in_flight: AtomicU64,
    /// Of each thread: threads that write to the same memory wait for each other.
    ended: [Ended; workers::MOST],
}

/// The requests that ended on one thread.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Ended {
    /// By the first digit of the status: informational, successful, and so on.
    statuses: [AtomicU64; 5],
    /// Requests that ended without a response.
    unanswered: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    durations: [AtomicU64; BUCKETS],
    duration_us: AtomicU64,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the response; 0 if there was none.
    pub status: u16,
    /// The number of bytes of the request's body.
    pub bytes_in: u64,
    /// The number of bytes of the response's body.
    pub bytes_out: u64,
    /// The time to the last byte.
    pub duration: Duration,
}

/// The counters of all applications at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// See [`DURATION_BOUNDS_MS`].
    pub duration_bounds_ms: Vec<u64>,
    /// The applications, sorted by id.
    pub applications: Vec<ApplicationTraffic>,
}

/// The counters of one application, since the proxy started or the application was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationTraffic {
    /// The id of the application.
    pub application: String,
    /// Requests that ended, by the first digit of the status: 1xx to 5xx.
    pub requests: [u64; 5],
    /// Requests that ended without a response.
    pub unanswered: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Bytes of the requests' bodies.
    pub bytes_in: u64,
    /// Bytes of the responses' bodies.
    pub bytes_out: u64,
    /// Answered requests by the time to the last byte, one number for each bound and one for longer
    /// requests. Upgraded connections are not included.
    pub durations: [u64; BUCKETS],
    /// The sum of these durations.
    pub duration_ms: u64,
}

impl Traffic {
    /// Returns the counters of an application: the same ones for all callers while they are referenced.
    pub fn counters(&self, application: &str) -> Arc<Counters> {
        let mut applications = self.lock();
        if let Some(counters) = applications.get(application).and_then(Weak::upgrade) {
            return counters;
        }
        if applications.len() == applications.capacity() {
            // Frees unreferenced counters before the map grows.
            applications.retain(|_, counters| counters.strong_count() > 0);
        }
        let counters = Arc::new(Counters::default());
        applications.insert(application.to_owned(), Arc::downgrade(&counters));
        counters
    }

    /// Returns the current counters.
    pub fn snapshot(&self) -> Snapshot {
        let mut applications = self.lock();
        applications.retain(|_, counters| counters.strong_count() > 0);
        let counted = applications.iter().filter_map(|(name, counters)| Some(counters.upgrade()?.read(name)));
        let mut applications: Vec<_> = counted.collect();
        applications.sort_by(|one, other| one.application.cmp(&other.application));
        Snapshot { duration_bounds_ms: DURATION_BOUNDS_MS.to_vec(), applications }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Counters>>> {
        self.applications.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    /// Counts a request as in flight. The caller must [end](Self::end) it, whatever happens.
    pub fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a request.
    pub fn end(&self, outcome: Outcome) {
        let Outcome { status, bytes_in, bytes_out, duration } = outcome;
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let ended = &self.ended[workers::current()];
        ended.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
        ended.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
        let class = usize::from(status / 100).checked_sub(1);
        let counter = class.and_then(|class| ended.statuses.get(class));
        counter.unwrap_or(&ended.unanswered).fetch_add(1, Ordering::Relaxed);
        // The duration of an upgraded connection says nothing about the application.
        if status >= 200 {
            let bucket = DURATION_BOUNDS_MS.partition_point(|bound| Duration::from_millis(*bound) < duration);
            if let Some(counter) = ended.durations.get(bucket) {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            ended.duration_us.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    fn read(&self, application: &str) -> ApplicationTraffic {
        let sum = |counter: &dyn Fn(&Ended) -> &AtomicU64| {
            self.ended.iter().map(|ended| counter(ended).load(Ordering::Relaxed)).sum::<u64>()
        };
        ApplicationTraffic {
            application: application.to_owned(),
            requests: array::from_fn(|class| sum(&|ended| &ended.statuses[class])),
            unanswered: sum(&|ended| &ended.unanswered),
            in_flight: self.in_flight(),
            bytes_in: sum(&|ended| &ended.bytes_in),
            bytes_out: sum(&|ended| &ended.bytes_out),
            durations: array::from_fn(|bucket| sum(&|ended| &ended.durations[bucket])),
            duration_ms: sum(&|ended| &ended.duration_us) / 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn only(traffic: &Traffic) -> ApplicationTraffic {
        let [only] = &traffic.snapshot().applications[..] else { panic!("not one application") };
        only.clone()
    }

    fn answered(status: u16) -> Outcome {
        Outcome { status, bytes_in: 0, bytes_out: 0, duration: Duration::ZERO }
    }

    fn counted(outcome: Outcome) -> ApplicationTraffic {
        let counters = Counters::default();
        counters.begin();
        counters.end(outcome);
        counters.read("shop")
    }

    #[test]
    fn a_request_is_in_flight_until_it_ends_and_is_counted_then() {
        let traffic = Traffic::default();
        let counters = traffic.counters("shop");
        counters.begin();
        counters.begin();
        assert_eq!(counters.in_flight(), 2);
        assert_eq!(only(&traffic).requests, [0; 5]);
        counters.end(Outcome { bytes_in: 3, bytes_out: 5, ..answered(404) });
        counters.end(Outcome { bytes_out: 2, ..answered(0) });
        let counted = only(&traffic);
        assert_eq!(counted.in_flight, 0);
        assert_eq!(counted.requests, [0, 0, 0, 1, 0]);
        assert_eq!(counted.unanswered, 1);
        assert_eq!((counted.bytes_in, counted.bytes_out), (3, 7));
        assert_eq!(counted.durations.iter().sum::<u64>(), 1);
    }

    #[test]
    fn every_status_has_a_class() {
        for (status, class) in
            [(100, 0), (199, 0), (200, 1), (299, 1), (308, 2), (404, 3), (500, 4), (599, 4)]
        {
            assert_eq!(counted(answered(status)).requests[class], 1, "{status}");
        }
        for status in [0, 99, 600, 999, u16::MAX] {
            assert_eq!(counted(answered(status)).unanswered, 1, "{status}");
        }
    }

    #[test]
    fn counts_a_duration_at_the_first_bound_not_exceeded() {
        for (micros, bucket) in [
            (0, 0),
            (5_000, 0),
            (5_001, 1),
            (25_000, 1),
            (100_000, 2),
            (100_001, 3),
            (60_000_000, 6),
            (60_000_001, 7),
            (u64::MAX, 7),
        ] {
            let counted = counted(Outcome { duration: Duration::from_micros(micros), ..answered(200) });
            assert_eq!(counted.durations[bucket], 1, "{micros}");
            assert_eq!(counted.duration_ms, micros / 1000, "{micros}");
        }
    }

    #[test]
    fn an_upgraded_connection_has_no_duration() {
        let counted = counted(Outcome { duration: Duration::from_secs(3600), ..answered(101) });
        assert_eq!((counted.durations, counted.duration_ms), ([0; BUCKETS], 0));
    }

    #[test]
    fn counters_are_shared_while_referenced_and_then_dropped() {
        let traffic = Traffic::default();
        let first = traffic.counters("shop");
        let second = traffic.counters("shop");
        assert!(Arc::ptr_eq(&first, &second));
        first.begin();
        drop(first);
        assert_eq!(only(&traffic).in_flight, 1);
        drop(second);
        assert_eq!(traffic.snapshot().applications, []);
        assert_eq!(traffic.counters("shop").in_flight(), 0);
    }

    #[test]
    fn applications_that_come_and_go_take_no_memory() {
        let traffic = Traffic::default();
        (0..10_000).for_each(|number| drop(traffic.counters(&number.to_string())));
        assert!(traffic.lock().capacity() < 100);
    }

    #[test]
    fn a_snapshot_is_sorted_and_survives_the_control_socket() {
        let traffic = Traffic::default();
        let held: Vec<_> = ["b", "c", "a"].map(|name| traffic.counters(name)).into_iter().collect();
        held[0].begin();
        held[0].end(answered(200));
        let snapshot = traffic.snapshot();
        let names: Vec<_> =
            snapshot.applications.iter().map(|counted| counted.application.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let line = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&line).unwrap(), snapshot);
    }

    #[test]
    fn counting_by_many_threads_loses_nothing() {
        let traffic = Traffic::default();
        let held = traffic.counters("shop");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let counters = traffic.counters("shop");
                        counters.begin();
                        counters.end(Outcome { bytes_out: 1, ..answered(200) });
                    }
                });
            }
        });
        let counted = held.read("shop");
        assert_eq!((counted.requests[1], counted.bytes_out, counted.in_flight), (8000, 8000, 0));
    }
}
