//! A bounded series of samples.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// The time that a series covers.
pub const SPAN: Duration = Duration::from_secs(10 * 60);
/// The most samples of a series.
const CAPACITY: usize = 120;

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The time since it was taken.
    pub age: Duration,
    /// The value.
    pub value: f64,
}

/// The samples of the last [`SPAN`], oldest first.
#[derive(Debug, Default)]
pub(super) struct Series(VecDeque<(Instant, f64)>);

impl Series {
    /// Adds a sample, and drops those that are too old or too many.
    pub(super) fn push(&mut self, now: Instant, value: f64) {
        self.0.retain(|(at, _)| now - *at < SPAN);
        if self.0.len() == CAPACITY {
            self.0.pop_front();
        }
        self.0.push_back((now, value));
    }

    /// Returns the samples by their ages.
    pub(super) fn samples(&self, now: Instant) -> Vec<Sample> {
        let recent = self.0.iter().filter(|(at, _)| now - *at < SPAN);
        recent.map(|(at, value)| Sample { age: now - *at, value: *value }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_covers_ten_minutes() {
        let (mut series, start) = (Series::default(), Instant::now());
        series.push(start, 1.0);
        series.push(start + SPAN - Duration::from_secs(1), 2.0);
        assert_eq!(series.samples(start + SPAN - Duration::from_secs(1)).len(), 2);
        let later = series.samples(start + SPAN);
        assert_eq!(later, [Sample { age: Duration::from_secs(1), value: 2.0 }]);
        series.push(start + SPAN, 3.0);
        assert_eq!(series.0.len(), 2);
    }

    #[test]
    fn a_series_is_bounded() {
        let (mut series, start) = (Series::default(), Instant::now());
        for number in 0..=CAPACITY {
            series.push(start, number as f64);
        }
        let samples = series.samples(start);
        assert_eq!((samples.len(), samples[0].value), (CAPACITY, 1.0));
    }
}
