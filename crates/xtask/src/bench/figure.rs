//! One figure of a report: its measurements, their spread, and its goal.

use crate::bench::Sample;

/// A measured quantity. Two reports are compared by the names of their figures.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    unit: &'static str,
    digits: usize,
    sample: Sample,
    goal: Option<Goal>,
}

#[derive(Clone, Debug)]
struct Goal {
    words: String,
    is_met: bool,
}

impl Figure {
    /// A figure without a goal, shown with this many decimal digits.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, digits: usize, sample: Sample) -> Self {
        Self { name: name.into(), unit, digits, sample, goal: None }
    }

    /// Requires a median of at least this.
    pub(crate) fn at_least(self, limit: f64) -> Self {
        let is_met = self.sample.median() >= limit;
        self.judged(format!("at least {limit}"), is_met)
    }

    /// Requires a median of at most this.
    pub(crate) fn at_most(self, limit: f64) -> Self {
        let is_met = self.sample.median() <= limit;
        self.judged(format!("at most {limit}"), is_met)
    }

    /// Sets a goal that is not a single number.
    pub(crate) fn judged(self, words: String, is_met: bool) -> Self {
        Self { goal: Some(Goal { words, is_met }), ..self }
    }

    pub(crate) fn is_missed(&self) -> bool {
        self.goal.as_ref().is_some_and(|goal| !goal.is_met)
    }

    /// Formats the figure as text below its section.
    pub(crate) fn sentence(&self) -> String {
        let Self { name, unit, digits, sample, goal } = self;
        let measured = format!("{sample:.digits$} {unit}");
        let measured = measured.trim_end();
        match goal {
            Some(Goal { words, is_met: true }) => format!("- **met**: {name}: {measured}; goal: {words}"),
            Some(Goal { words, is_met: false }) => format!("- **MISSED**: {name}: {measured}; goal: {words}"),
            None => format!("- {name}: {measured}"),
        }
    }

    /// Returns the median as a ratio to a probe that made so many steps per second: a rate as the number for 1,000 steps, a
    /// time as a number of steps. Other figures do not depend on the speed of the machine.
    fn by_probe(&self, probe: f64) -> Option<f64> {
        let median = self.sample.median();
        Some(match self.unit {
            "1/s" => median / probe * 1e3,
            "s" => median * probe,
            "ms" | "ms of CPU" => median * 1e-3 * probe,
            "µs" => median * 1e-6 * probe,
            _ => return None,
        })
    }

    /// Formats the figure as a row of [`Self::COLUMNS`].
    pub(crate) fn cells(&self, probe: Option<f64>) -> Vec<String> {
        let number = |value: f64| format!("{value:.*}", self.digits);
        let (goal, verdict) = match &self.goal {
            Some(Goal { words, is_met }) => (words.as_str(), if *is_met { "met" } else { "missed" }),
            None => ("–", "–"),
        };
        vec![
            self.name.clone(),
            number(self.sample.median()),
            number(self.sample.least()),
            number(self.sample.greatest()),
            self.unit.to_owned(),
            probe
                .and_then(|probe| self.by_probe(probe))
                .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}")),
            goal.to_owned(),
            verdict.to_owned(),
        ]
    }

    pub(crate) const COLUMNS: [&'static str; 8] =
        ["figure", "median", "least", "greatest", "unit", "by probe", "goal", "verdict"];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure::new("first answer", "ms", 1, [50.0, 60.0, 55.0].into_iter().collect())
    }

    #[test]
    fn a_goal_is_met_by_the_median() {
        assert!(!figure().at_most(55.0).is_missed());
        assert!(figure().at_most(54.0).is_missed());
        assert!(!figure().at_least(55.0).is_missed());
        assert!(figure().at_least(56.0).is_missed());
    }

    #[test]
    fn nothing_measured_is_a_missed_goal() {
        let nothing = || Figure::new("nothing", "", 1, Sample::default());
        assert!(nothing().at_most(1.0).is_missed() && nothing().at_least(1.0).is_missed());
    }

    #[test]
    fn a_figure_is_said_with_its_spread_and_its_goal() {
        assert_eq!(figure().sentence(), "- first answer: 55.0 (50.0–60.0) ms");
        let met = "- **met**: first answer: 55.0 (50.0–60.0) ms; goal: at most 100";
        assert_eq!(figure().at_most(100.0).sentence(), met);
        assert!(figure().at_most(10.0).sentence().starts_with("- **MISSED**"));
    }

    #[test]
    fn a_figure_has_a_cell_for_every_column() {
        let cells = figure().at_most(100.0).cells(None);
        assert_eq!(cells, ["first answer", "55.0", "50.0", "60.0", "ms", "–", "at most 100", "met"]);
        assert_eq!(cells.len(), Figure::COLUMNS.len());
    }

    #[test]
    fn times_and_rates_are_ratios_to_the_probe() {
        let cell = |unit, value| {
            let figure = Figure::new("a figure", unit, 1, [value].into_iter().collect());
            figure.cells(Some(2_000.0)).swap_remove(5)
        };
        for (unit, value, expected) in [
            ("1/s", 500.0, "250.00"),
            ("s", 0.5, "1000.00"),
            ("ms", 500.0, "1000.00"),
            ("µs", 500.0, "1.00"),
            ("ms of CPU", 1.0, "2.00"),
            ("MB", 500.0, "–"),
            ("", 500.0, "–"),
        ] {
            assert_eq!(cell(unit, value), expected, "{unit}");
        }
    }
}
