//! A small plot as SVG: a few lines over a logarithmic axis, readable on light and dark pages.

use crate::bench::Sample;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 48.0;
/// The approximate number of grid lines.
const TICKS: f64 = 5.0;
/// Colours of text, axes and lines that contrast with white as well as with black.
const INK: &str = "#768390";
const COLOURS: [&str; 4] = ["#2f81f7", "#c4601d", "#8957e5", "#2c8c4a"];

/// Lines over the same axes.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    across: String,
    up: String,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    name: String,
    colour: &'static str,
    is_dashed: bool,
    points: Vec<Point>,
}

/// The measurements at one position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    at: f64,
    median: f64,
    least: f64,
    greatest: f64,
}

/// Returns the points of a line: a sample for each position.
pub(crate) fn points(positions: &[u32], samples: &[Sample]) -> Vec<Point> {
    let point = |(at, sample): (&u32, &Sample)| {
        let (least, greatest) = (sample.least(), sample.greatest());
        Point { at: f64::from(*at), median: sample.median(), least, greatest }
    };
    positions.iter().zip(samples).map(point).collect()
}

impl Plot {
    pub(crate) fn new(title: impl Into<String>, across: &str, up: &str) -> Self {
        Self { title: title.into(), across: across.to_owned(), up: up.to_owned(), lines: Vec::new() }
    }

    /// Adds a line with a colour of its own.
    pub(crate) fn line(&mut self, name: &str, points: Vec<Point>) {
        let used = self.lines.iter().filter(|line| !line.is_dashed).count();
        let colour = COLOURS[used % COLOURS.len()];
        self.lines.push(Line { name: name.to_owned(), colour, is_dashed: false, points });
    }

    /// Adds a dashed line in the colour of the one before.
    pub(crate) fn dashed(&mut self, name: &str, points: Vec<Point>) {
        let colour = self.lines.last().map_or(COLOURS[0], |line| line.colour);
        self.lines.push(Line { name: name.to_owned(), colour, is_dashed: true, points });
    }

    pub(crate) fn to_svg(&self) -> String {
        let axes = self.axes();
        let title = escaped(&self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"{INK}\">\n\
             <title>{title}</title>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n"
        );
        self.draw_axes(&axes, &mut svg);
        self.draw_names(&mut svg);
        for line in &self.lines {
            line.draw(&axes, &mut svg);
        }
        svg + "</svg>\n"
    }

    fn axes(&self) -> Axes {
        let places = self.places();
        let (first, last) = (places.first().copied().unwrap_or(1.0), places.last().copied().unwrap_or(1.0));
        let values = self.lines.iter().flat_map(|line| &line.points).map(|point| point.greatest);
        let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let step = round_step(highest / TICKS);
        Axes { first, last, step, highest: (highest / step).ceil().max(1.0) * step }
    }

    fn draw_axes(&self, axes: &Axes, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut value = 0.0;
        while value <= axes.highest * 1.0001 {
            let y = axes.y(value);
            *svg += &segment((LEFT, y), (right, y), &format!("stroke=\"{INK}\" stroke-opacity=\"0.3\""));
            *svg += &text((LEFT - 8.0, y + 4.0), "end", &number(value));
            value += axes.step;
        }
        for at in self.places() {
            *svg += &text((axes.x(at), bottom + 18.0), "middle", &number(at));
        }
        *svg += &text((f64::midpoint(LEFT, right), bottom + 38.0), "middle", &self.across);
        *svg += &text((LEFT, TOP - 12.0), "end", &self.up);
    }

    /// Draws the legend, below the title.
    fn draw_names(&self, svg: &mut String) {
        let room = (WIDTH - LEFT - RIGHT) / self.lines.len().max(1) as f64;
        for (line, place) in self.lines.iter().zip(0_u32..) {
            let x = LEFT + f64::from(place) * room;
            *svg += &segment((x, 36.0), (x + 24.0, 36.0), &line.stroke());
            *svg += &text((x + 30.0, 40.0), "start", &line.name);
        }
    }

    /// Returns the measured positions, each once.
    fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> =
            self.lines.iter().flat_map(|line| &line.points).map(|point| point.at).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }
}

impl Line {
    fn stroke(&self) -> String {
        let dashes = if self.is_dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        format!("stroke=\"{}\" stroke-width=\"2\" fill=\"none\"{dashes}", self.colour)
    }

    fn draw(&self, axes: &Axes, svg: &mut String) {
        let points = || self.points.iter().filter(|point| point.median.is_finite());
        let path: Vec<String> =
            points().map(|point| format!("{:.1},{:.1}", axes.x(point.at), axes.y(point.median))).collect();
        *svg += &format!("<polyline points=\"{}\" {}/>\n", path.join(" "), self.stroke());
        let colour = self.colour;
        for point in points() {
            let (x, y) = (axes.x(point.at), axes.y(point.median));
            let whisker = format!("stroke=\"{colour}\" stroke-opacity=\"0.6\"");
            *svg += &segment((x, axes.y(point.least)), (x, axes.y(point.greatest)), &whisker);
            *svg += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n");
        }
    }
}

fn segment((x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &str) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>\n")
}

fn text((x, y): (f64, f64), anchor: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escaped(words))
}

/// Maps values to coordinates: logarithmic across, from 0 upwards.
struct Axes {
    first: f64,
    last: f64,
    highest: f64,
    step: f64,
}

impl Axes {
    fn x(&self, at: f64) -> f64 {
        let part =
            if self.last > self.first { (at / self.first).ln() / (self.last / self.first).ln() } else { 0.5 };
        // Points keep away from the edges, so that their whiskers and numbers have room.
        LEFT + 24.0 + part * (WIDTH - LEFT - RIGHT - 48.0)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.highest * (HEIGHT - TOP - BOTTOM)
    }
}

/// Returns the smallest of 1, 2, 5, 10, … that is not less.
fn round_step(wanted: f64) -> f64 {
    if wanted.is_nan() || wanted <= 0.0 {
        return 1.0;
    }
    let decade = 10_f64.powf(wanted.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * decade)
        .find(|step| *step >= wanted * 0.9999)
        .unwrap_or(decade)
}

/// Formats a number without loss, as short as possible: `0.25`, `64`, `10k`, `1M`.
fn number(value: f64) -> String {
    let (value, unit) = match value {
        _ if value >= 1e6 => (value / 1e6, "M"),
        _ if value >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = format!("{value:.3}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let point = |at: f64, median: f64| Point { at, median, least: median * 0.9, greatest: median * 1.1 };
        let mut plot = Plot::new("Rows & <time>", "rows", "ms");
        plot.line("SQLite, p50", vec![point(1e3, 0.2), point(1e6, 0.3)]);
        plot.dashed("SQLite, p99", vec![point(1e3, 0.5), point(1e6, 0.9)]);
        plot.line("PostgreSQL, p50", vec![point(1e3, 0.4), point(1e6, 0.4)]);
        plot
    }

    #[test]
    fn every_line_has_its_points_its_name_and_a_colour() {
        let svg = plot().to_svg();
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert_eq!(svg.matches("<circle").count(), 6);
        for words in ["SQLite, p50", "SQLite, p99", "PostgreSQL, p50", "1000", "1M"] {
            assert!(svg.contains(&format!(">{words}</text>")), "{words}: {svg}");
        }
        // The dashed line is of the colour of the one before, the next has another.
        let points_of = |colour| svg.matches(&format!("r=\"3\" fill=\"{colour}\"")).count();
        assert_eq!(COLOURS.map(points_of), [4, 2, 0, 0]);
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
    }

    #[test]
    fn words_cannot_break_the_drawing() {
        let svg = plot().to_svg();
        assert!(svg.contains("Rows &amp; &lt;time&gt;") && !svg.contains("<time>"));
        // Every opened element is closed.
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn more_is_higher_and_further_right() {
        let axes = plot().axes();
        assert!(axes.x(1e6) > axes.x(1e3) && axes.y(0.9) < axes.y(0.2));
        assert!((axes.x(1e6) + axes.x(1e3) - 2.0 * axes.x(10_f64.powf(4.5))).abs() < 1e-6);
        assert!(axes.y(axes.highest) >= TOP && axes.x(1e6) <= WIDTH - RIGHT);
    }

    #[test]
    fn every_colour_stands_out_from_light_and_from_dark_pages() {
        for colour in COLOURS.into_iter().chain([INK]) {
            for page in ["#ffffff", "#0d1117"] {
                assert!(contrast(colour, page) >= 3.0, "{colour} on {page}: {:.2}", contrast(colour, page));
            }
        }
    }

    #[test]
    fn a_plot_of_nothing_is_still_a_drawing() {
        let svg = Plot::new("Nothing", "x", "y").to_svg();
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn steps_and_numbers_are_round() {
        assert_eq!([0.18, 0.2, 0.21, 3.0, 7.0].map(round_step).map(number), ["0.2", "0.2", "0.5", "5", "10"]);
        assert_eq!([0.25, 64.0, 2500.0, 12_000.0, 1e6].map(number), ["0.25", "64", "2500", "12k", "1M"]);
    }

    /// Returns the contrast ratio of two colours, by the Web Content Accessibility Guidelines.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour: &str| -> f64 {
            let part = |from: usize| {
                let value = f64::from(u8::from_str_radix(&colour[from..from + 2], 16).unwrap()) / 255.0;
                if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }
}
