//! Ends the program in the middle of a step.

use std::sync::atomic::{AtomicBool, Ordering};

/// True once a version was started.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Aborts the program if it should at this step.
pub(crate) fn crash_at(step: &str) {
    // At the start, the live versions are routed to once more.
    let is_early = step == "route" && !STARTED.load(Ordering::Relaxed);
    STARTED.fetch_or(step == "started", Ordering::Relaxed);
    if !is_early && std::env::var("ABORT_AT").is_ok_and(|wanted| wanted == step) {
        std::process::abort();
    }
}
