//! Polling with a timeout, and concurrent calls.

use std::time::{Duration, Instant};

/// A timeout that no busy machine exceeds: it is only waited for when a test fails.
const LIMIT: Duration = Duration::from_secs(240);

/// Polls until there is a result.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_within(LIMIT, what, ask)
}

/// Polls with another timeout.
#[track_caller]
pub fn until_within<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        let elapsed = start.elapsed();
        assert!(elapsed < limit, "{what} did not come");
        // Long waits poll less often: the polls of several tests use up a small machine.
        std::thread::sleep((elapsed / 20).clamp(Duration::from_millis(10), Duration::from_millis(250)));
    }
}

/// Runs `count` calls that all start at the same time, and returns their results.
pub fn at_once<T: Send>(count: usize, call: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = std::sync::Barrier::new(count);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..count)
            .map(|number| {
                let (start, call) = (&start, &call);
                scope.spawn(move || {
                    start.wait();
                    call(number)
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    })
}
