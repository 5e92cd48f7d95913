//! Small plots of the recent metrics of an application, drawn on the server.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use launchway_application::metrics::{ApplicationMetrics, SPAN, Sample};

use crate::format::bytes;

/// The size of a plot, in its own units.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 48.0;
/// The distance of the highest value from the upper edge, so that its line is not cut.
const MARGIN: f64 = 2.0;
/// The time without a sample that leaves a gap, as a part of the whole.
const GAP: f64 = 0.06;

/// A plot, and the values that it is described by.
pub(crate) struct Plot {
    pub(crate) title: &'static str,
    pub(crate) current: String,
    pub(crate) highest: String,
    /// The lines without a gap, each as the points of a polyline.
    pub(crate) lines: Vec<String>,
    /// The areas below the lines.
    pub(crate) areas: Vec<String>,
}

impl Plot {
    /// Returns the plots of the metrics that have samples.
    pub(crate) fn all(metrics: &ApplicationMetrics) -> Vec<Self> {
        let percent = |value: f64| format!("{value:.1} %");
        let memory = |value: f64| bytes(value.round().max(0.0) as u64);
        let plots = [
            Self::new("CPU", &metrics.cpu, 1.0, percent),
            Self::new("Memory", &metrics.memory, 1.0, memory),
            Self::new("Requests per minute", &metrics.requests, 1.0, |value| format!("{value:.0}")),
        ];
        plots.into_iter().flatten().collect()
    }

    /// Returns the plot of `samples`; `None` without any. Its upper edge is the highest value, and at least `least`.
    fn new(
        title: &'static str,
        samples: &[Sample],
        least: f64,
        format: impl Fn(f64) -> String,
    ) -> Option<Self> {
        let last = samples.last()?;
        let highest = samples.iter().map(|sample| sample.value).fold(0.0, f64::max);
        let scale = highest.max(least);
        let point = |sample: &Sample| {
            let time = 1.0 - sample.age.as_secs_f64() / SPAN.as_secs_f64();
            (time * WIDTH, HEIGHT - sample.value.max(0.0) / scale * (HEIGHT - MARGIN))
        };
        let points: Vec<(f64, f64)> = samples.iter().map(point).collect();
        let lines: Vec<&[(f64, f64)]> =
            points.chunk_by(|(before, _), (after, _)| after - before <= GAP * WIDTH).collect();
        Some(Self {
            title,
            current: format(last.value),
            highest: format(highest),
            areas: lines.iter().map(|line| area(line)).collect(),
            lines: lines.iter().map(|line| text(line)).collect(),
        })
    }
}

/// Returns the points of a polyline. A single point is a short line, because a line of no length is not drawn.
fn text(points: &[(f64, f64)]) -> String {
    let mut text: String = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
    if let [(x, y)] = points {
        text.push_str(&format!("{:.1},{y:.1}", x + 1.0));
    }
    text.trim_end().to_owned()
}

/// Returns the points of the area below a line.
fn area(points: &[(f64, f64)]) -> String {
    match (points.first(), points.last()) {
        (Some((first, _)), Some((last, _))) => {
            format!("{first:.1},{HEIGHT:.1} {} {last:.1},{HEIGHT:.1}", text(points))
        }
        _ => String::new(),
    }
}

/// Returns a number that changes when there is a new sample.
pub(crate) fn version(metrics: &ApplicationMetrics) -> u64 {
    let mut hasher = DefaultHasher::new();
    for samples in [&metrics.cpu, &metrics.memory, &metrics.requests] {
        samples.len().hash(&mut hasher);
        for sample in samples {
            sample.value.to_bits().hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sample(age: u64, value: f64) -> Sample {
        Sample { age: Duration::from_secs(age), value }
    }

    #[test]
    fn a_metric_without_samples_has_no_plot() {
        let metrics = ApplicationMetrics { memory: vec![sample(0, 1e6)], ..ApplicationMetrics::default() };
        let titles: Vec<_> = Plot::all(&metrics).iter().map(|plot| plot.title).collect();
        assert_eq!(titles, ["Memory"]);
    }

    #[test]
    fn a_line_is_broken_where_nobody_looked() {
        let samples = [sample(600, 0.0), sample(590, 50.0), sample(20, 100.0), sample(0, 25.0)];
        let plot = Plot::new("CPU", &samples, 1.0, |value| format!("{value} %")).unwrap();
        assert_eq!(plot.lines, ["0.0,48.0 4.0,25.0", "232.0,2.0 240.0,36.5"]);
        assert_eq!(plot.areas[1], "232.0,48.0 232.0,2.0 240.0,36.5 240.0,48.0");
        assert_eq!((plot.current.as_str(), plot.highest.as_str()), ("25 %", "100 %"));
    }

    #[test]
    fn a_value_near_zero_does_not_fill_the_plot() {
        let plot = Plot::new("CPU", &[sample(0, 0.1)], 1.0, |value| value.to_string()).unwrap();
        assert_eq!(plot.lines, ["240.0,43.4 241.0,43.4"]);
    }

    #[test]
    fn the_version_changes_with_a_sample() {
        let one = ApplicationMetrics { cpu: vec![sample(5, 1.0)], ..ApplicationMetrics::default() };
        let older = ApplicationMetrics { cpu: vec![sample(6, 1.0)], ..ApplicationMetrics::default() };
        let two =
            ApplicationMetrics { cpu: vec![sample(6, 1.0), sample(0, 1.0)], ..ApplicationMetrics::default() };
        assert_eq!(version(&one), version(&older));
        assert_ne!(version(&one), version(&two));
    }
}
