//! Small plots of the recent metrics of an application, drawn on the server.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use launchway_application::metrics::{ApplicationMetrics, SPAN, Sample};

use crate::format::bytes;

/// The size of a plot, in its own units.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 48.0;
/// The distance of the highest value from the upper edge, so that its line is not cut.
const MARGIN: f64 = 2.0;
/// The width of a single sample.
const TICK: f64 = 4.0;
/// The time without a sample that leaves a gap: pages fetch themselves every ten seconds.
const GAP: Duration = Duration::from_secs(35);
/// The shortest time that plots show.
const SHORTEST: Duration = Duration::from_secs(60);

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

/// The plots of an application, all over the same time.
#[derive(Default)]
pub(crate) struct Plots {
    pub(crate) all: Vec<Plot>,
    /// The time that they show, such as "the last 3 minutes".
    pub(crate) time: String,
}

impl Plots {
    /// Returns the plots of the metrics that have samples. They begin with the oldest sample.
    pub(crate) fn new(metrics: &ApplicationMetrics) -> Self {
        let all = [&metrics.cpu, &metrics.memory, &metrics.requests];
        let oldest = all.iter().filter_map(|samples| samples.first()).map(|sample| sample.age).max();
        let minutes = oldest.unwrap_or_default().clamp(SHORTEST, SPAN).as_secs().div_ceil(60);
        let span = Duration::from_secs(minutes * 60);
        let percent = |value: f64| format!("{value:.1} %");
        let memory = |value: f64| bytes(value.round().max(0.0) as u64);
        let plots = [
            Plot::new("CPU", &metrics.cpu, span, percent),
            Plot::new("Memory", &metrics.memory, span, memory),
            Plot::new("Requests per minute", &metrics.requests, span, |value| format!("{value:.0}")),
        ];
        let time =
            if minutes == 1 { "the last minute".to_owned() } else { format!("the last {minutes} minutes") };
        Self { all: plots.into_iter().flatten().collect(), time }
    }
}

impl Plot {
    /// Returns the plot of `samples` over `span`; `None` without any. Its upper edge is the highest value, and at least 1.
    fn new(
        title: &'static str,
        samples: &[Sample],
        span: Duration,
        format: impl Fn(f64) -> String,
    ) -> Option<Self> {
        let last = samples.last()?;
        let highest = samples.iter().map(|sample| sample.value).fold(0.0, f64::max);
        let point = |sample: &Sample| {
            let time = 1.0 - sample.age.as_secs_f64() / span.as_secs_f64();
            (time * WIDTH, HEIGHT - sample.value.max(0.0) / highest.max(1.0) * (HEIGHT - MARGIN))
        };
        let lines = samples.chunk_by(|before, after| before.age.saturating_sub(after.age) <= GAP);
        let lines: Vec<Vec<(f64, f64)>> =
            lines.map(|line| visible(line.iter().map(point).collect())).collect();
        Some(Self {
            title,
            current: format(last.value),
            highest: format(highest),
            areas: lines.iter().map(|line| area(line)).collect(),
            lines: lines.iter().map(|line| text(line)).collect(),
        })
    }
}

/// Returns a line that is drawn: a single point becomes a short line.
fn visible(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    match points[..] {
        [(x, y)] => vec![(x - TICK, y), (x, y)],
        _ => points,
    }
}

/// Returns the points of a polyline.
fn text(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
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
    use super::*;

    fn sample(age: u64, value: f64) -> Sample {
        Sample { age: Duration::from_secs(age), value }
    }

    #[test]
    fn a_metric_without_samples_has_no_plot() {
        let metrics = ApplicationMetrics { memory: vec![sample(0, 1e6)], ..ApplicationMetrics::default() };
        let titles: Vec<_> = Plots::new(&metrics).all.iter().map(|plot| plot.title).collect();
        assert_eq!(titles, ["Memory"]);
        assert!(Plots::new(&ApplicationMetrics::default()).all.is_empty());
    }

    #[test]
    fn plots_begin_with_the_oldest_sample() {
        for (age, time) in [
            (0, "the last minute"),
            (60, "the last minute"),
            (61, "the last 2 minutes"),
            (599, "the last 10 minutes"),
        ] {
            let (cpu, memory) = (vec![sample(0, 1.0)], vec![sample(age, 1.0), sample(0, 1.0)]);
            let metrics = ApplicationMetrics { cpu, memory, requests: Vec::new() };
            assert_eq!(Plots::new(&metrics).time, time, "{age}");
        }
    }

    #[test]
    fn a_line_is_broken_where_nobody_looked() {
        let samples = [sample(600, 0.0), sample(590, 50.0), sample(35, 100.0), sample(0, 25.0)];
        let plot = Plot::new("CPU", &samples, SPAN, |value| format!("{value} %")).unwrap();
        assert_eq!(plot.lines, ["0.0,48.0 4.0,25.0", "226.0,2.0 240.0,36.5"]);
        assert_eq!(plot.areas[1], "226.0,48.0 226.0,2.0 240.0,36.5 240.0,48.0");
        assert_eq!((plot.current.as_str(), plot.highest.as_str()), ("25 %", "100 %"));
        let apart = [sample(36, 100.0), sample(0, 25.0)];
        let plot = Plot::new("CPU", &apart, SPAN, |value| value.to_string()).unwrap();
        assert_eq!(plot.lines.len(), 2);
    }

    #[test]
    fn a_value_near_zero_does_not_fill_the_plot() {
        let plot = Plot::new("CPU", &[sample(0, 0.1)], SPAN, |value| value.to_string()).unwrap();
        assert_eq!(plot.lines, ["236.0,43.4 240.0,43.4"]);
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
