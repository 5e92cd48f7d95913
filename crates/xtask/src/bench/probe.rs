//! The speed of the machine at the moment: a fixed work on all processors.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    hint::black_box,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

const LENGTH: Duration = Duration::from_millis(500);
/// The bytes that are hashed in one step.
const BYTES: usize = 64 * 1_024;

/// Returns the steps per second of all processors together.
pub(crate) fn steps_per_second() -> Result<f64> {
    let processors = thread::available_parallelism()?.get();
    let workers: Vec<_> = (0..processors).map(|_| thread::spawn(work)).collect();
    let mut sum = 0.0;
    for worker in workers {
        sum += worker.join().map_err(|_panic| anyhow!("the probe broke"))?;
    }
    Ok(sum)
}

fn work() -> f64 {
    let bytes = vec![7_u8; BYTES];
    let begun = Instant::now();
    let mut steps = 0.0;
    while begun.elapsed() < LENGTH {
        let mut hasher = DefaultHasher::new();
        black_box(&bytes).hash(&mut hasher);
        black_box(hasher.finish());
        steps += 1.0;
    }
    steps / begun.elapsed().as_secs_f64()
}
