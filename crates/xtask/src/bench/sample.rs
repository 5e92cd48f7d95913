//! Repeated measurements of one quantity: their median and their spread.

use std::fmt::{self, Display, Formatter};

/// Measurements in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the middle value, or the mean of the two middle ones; NaN without measurements.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.get(middle) {
            Some(&upper) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted[middle - 1], upper),
            Some(&only) => only,
            None => f64::NAN,
        }
    }

    /// Returns a percentile.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let sorted = self.sorted();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn least(&self) -> f64 {
        self.sorted().first().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.sorted().last().copied().unwrap_or(f64::NAN)
    }

    /// Returns the ratio of each measurement to the one that was taken with it.
    pub(crate) fn over(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect()
    }

    /// Returns the difference of each measurement and the one that was taken with it.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(ours, theirs)| ours - theirs).collect()
    }

    /// Adds a measurement that failed. It counts for nothing, nor does the one that was taken with it.
    pub(crate) fn push_failure(&mut self) {
        self.0.push(f64::NAN);
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted: Vec<f64> = self.0.iter().copied().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        Self(values.into_iter().collect())
    }
}

/// The median, then the least and the greatest: `0.51 (0.48–0.55)`; the precision applies to all three.
impl Display for Sample {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let digits = formatter.precision().unwrap_or(2);
        let (median, least, greatest) = (self.median(), self.least(), self.greatest());
        write!(formatter, "{median:.digits$} ({least:.digits$}–{greatest:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_measurement_counts_for_nothing() {
        let (mut ours, mut theirs) = (Sample(vec![2.0]), Sample(vec![1.0]));
        ours.push_failure();
        theirs.push(100.0);
        ours.push(9.0);
        theirs.push(3.0);
        assert_eq!(ours.over(&theirs).to_string(), "2.50 (2.00–3.00)");
        assert_eq!((ours.least(), ours.greatest()), (2.0, 9.0));
    }

    #[test]
    fn the_median_of_an_odd_number_is_the_middle_one() {
        assert!((Sample(vec![9.0, 1.0, 2.0]).median() - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert!((Sample(vec![4.0, 1.0, 2.0, 9.0]).median() - 3.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_percentile_is_not_exceeded_by_so_many() {
        let sample = Sample((1..=200).map(f64::from).collect());
        assert!((sample.percentile(99) - 198.0).abs() < f64::EPSILON);
        assert!((sample.percentile(100) - 200.0).abs() < f64::EPSILON);
        assert!(Sample::default().percentile(99).is_nan());
    }

    #[test]
    fn a_sample_shows_its_spread() {
        assert_eq!(format!("{:.1}", Sample(vec![3.0, 1.0, 2.0])), "2.0 (1.0–3.0)");
    }

    #[test]
    fn ratios_are_those_of_measurements_that_were_taken_together() {
        let ratios = Sample(vec![1.0, 6.0]).over(&Sample(vec![2.0, 3.0]));
        assert_eq!(format!("{ratios:.1}"), "1.2 (0.5–2.0)");
    }

    #[test]
    fn differences_are_those_of_measurements_of_one_round() {
        let differences = Sample(vec![1.0, 6.0]).minus(&Sample(vec![2.0, 3.0]));
        assert_eq!(format!("{differences:.1}"), "1.0 (-1.0–3.0)");
    }

    #[test]
    fn nothing_measured_meets_no_goal() {
        assert!(Sample::default().median().is_nan());
    }
}
