//! A well-behaved client, and its response times.

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::{Duration, Instant},
};

use launchway_testkit::client::Client;

/// The pause between a response and the next request.
const PAUSE: Duration = Duration::from_millis(2);

/// A running client.
pub(crate) struct Regular {
    is_over: Arc<AtomicBool>,
    calling: JoinHandle<Waits>,
}

/// The response times, the shortest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waits {
    answered: Vec<Duration>,
    /// Responses other than 200, and requests without one.
    pub(crate) unserved: usize,
}

impl Regular {
    /// Starts requesting `path` repeatedly.
    pub(crate) fn begin(client: &Client, path: &'static str) -> Self {
        Self::begin_after(client, path, || ())
    }

    /// Does so with a priority that the load of the machine does not affect, as a client on another one.
    pub(crate) fn begin_with_priority(client: &Client, path: &'static str) -> Self {
        Self::begin_after(client, path, raise_priority)
    }

    fn begin_after(client: &Client, path: &'static str, prepare: fn()) -> Self {
        let is_over = Arc::new(AtomicBool::default());
        let (end, client) = (Arc::clone(&is_over), client.clone());
        let calling = spawn(move || {
            prepare();
            let mut waits = Waits::default();
            while !end.load(Ordering::Relaxed) {
                let asked = Instant::now();
                match client.try_send("GET", path, None) {
                    Ok(answer) if answer.status == 200 => waits.answered.push(asked.elapsed()),
                    _ => waits.unserved += 1,
                }
                sleep(PAUSE);
            }
            waits.answered.sort_unstable();
            waits
        });
        Self { is_over, calling }
    }

    pub(crate) fn end(self) -> Waits {
        self.is_over.store(true, Ordering::Relaxed);
        self.calling.join().expect("a client that only asks")
    }

    /// Sends requests for this time.
    pub(crate) fn during(client: &Client, path: &'static str, time: Duration) -> Waits {
        let regular = Self::begin(client, path);
        sleep(time);
        regular.end()
    }
}

/// Raises the priority of this thread.
fn raise_priority() {
    let thread = fs::read_link("/proc/thread-self").unwrap();
    let raised = Command::new("renice").args(["-n", "-10", "-p"]).arg(thread.file_name().unwrap()).output();
    assert!(raised.is_ok_and(|output| output.status.success()), "the campaign needs root");
}

impl Waits {
    pub(crate) fn answers(&self) -> usize {
        self.answered.len()
    }

    /// Returns the response time of a percentile.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let place = (self.answered.len() * percent).div_ceil(100).max(1) - 1;
        self.answered.get(place).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_wait_that_so_many_did_not_exceed() {
        let answered = (1..=200).map(Duration::from_millis).collect();
        let waits = Waits { answered, unserved: 0 };
        assert_eq!(waits.percentile(50), Duration::from_millis(100));
        assert_eq!(waits.percentile(99), Duration::from_millis(198));
        assert_eq!(waits.percentile(100), Duration::from_millis(200));
        assert_eq!(Waits::default().percentile(99), Duration::ZERO);
    }
}
