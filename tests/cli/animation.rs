//! A recording of a terminal as an animated SVG, with nothing but text and style in it.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use vt100::{Cell, Color, Parser, Screen};

/// The width of a character, in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 19.0;
const MARGIN: f64 = 16.0;
/// The time that the end is shown before the animation restarts.
const REST: Duration = Duration::from_secs(4);
/// Changes that are closer than this are merged.
const BLINK: Duration = Duration::from_millis(60);

/// The output to a terminal of some size, with times.
pub(crate) struct Recording {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
    pub(crate) pieces: Vec<(Duration, Vec<u8>)>,
}

/// The content of a line, from one time to another; without an end it stayed.
struct Line {
    row: u16,
    shown: String,
    from: Duration,
    until: Option<Duration>,
}

impl Recording {
    /// Returns the time of the last output.
    pub(crate) fn end(&self) -> Duration {
        self.pieces.last().map_or(Duration::ZERO, |(at, _)| *at)
    }

    /// Returns the picture.
    pub(crate) fn picture(&self, label: &str) -> String {
        let lines = self.lines();
        let whole = (self.end() + REST).as_secs_f64();
        let (width, height) =
            (f64::from(self.columns) * WIDTH + 2.0 * MARGIN, f64::from(self.rows) * HEIGHT + 2.0 * MARGIN);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{label}\">\n<style>\n\
             text {{ font: 14px ui-monospace, monospace; fill: #c9d1d9; white-space: pre }}\n\
             .red {{ fill: #ff7b72 }} .green {{ fill: #7ee787 }} .yellow {{ fill: #e3b341 }}\n\
             .dim {{ fill: #8b949e }} .bold {{ font-weight: bold }}\n"
        );
        // One rule for each stretch of time; most lines come and stay.
        let mut stretches = BTreeMap::new();
        for line in &lines {
            let number = stretches.len();
            stretches.entry((line.from, line.until)).or_insert(number);
        }
        for ((from, until), number) in &stretches {
            let share = |at: Duration| at.as_secs_f64() / whole * 100.0;
            let end = until
                .map_or(String::new(), |until| format!(" {:.2}% {{ visibility: hidden }}", share(until)));
            let _ = writeln!(
                svg,
                "@keyframes s{number} {{ 0% {{ visibility: hidden }} {:.2}% {{ visibility: visible }}{end} }}\n\
                 .s{number} {{ animation: s{number} {whole:.2}s step-end infinite }}",
                share(*from)
            );
        }
        // With reduced motion, only the end is shown.
        svg.push_str(
            "@media (prefers-reduced-motion: reduce) { text { animation: none } .gone { visibility: hidden } }\n\
             </style>\n",
        );
        let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>");
        for line in &lines {
            let number = stretches[&(line.from, line.until)];
            let gone = if line.until.is_some() { " gone" } else { "" };
            let y = MARGIN + (f64::from(line.row) + 0.75) * HEIGHT;
            let _ = writeln!(
                svg,
                "<text class=\"s{number}{gone}\" x=\"{MARGIN}\" y=\"{y:.1}\" xml:space=\"preserve\">{}</text>",
                line.shown
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns every content of every row that was not empty.
    fn lines(&self) -> Vec<Line> {
        let mut parser = Parser::new(self.rows.try_into().unwrap(), self.columns.try_into().unwrap(), 0);
        let mut open: Vec<Option<Line>> = (0..self.rows).map(|_| None).collect();
        let mut over = Vec::new();
        for (number, (at, bytes)) in self.pieces.iter().enumerate() {
            parser.process(bytes);
            let next = self.pieces.get(number + 1).map(|(next, _)| *next);
            if next.is_some_and(|next| next - *at < BLINK) {
                continue;
            }
            for (row, place) in (0..self.rows).zip(&mut open) {
                let shown = look(parser.screen(), row, self.columns);
                if place.as_ref().map_or("", |line| &line.shown) == shown {
                    continue;
                }
                over.extend(place.take().map(|line| Line { until: Some(*at), ..line }));
                if !shown.is_empty() {
                    *place = Some(Line { row, shown, from: *at, until: None });
                }
            }
        }
        over.extend(open.into_iter().flatten());
        over
    }
}

/// Returns a row as text with its styles.
fn look(screen: &Screen, row: u16, columns: u16) -> String {
    let cells: Vec<&Cell> = (0..columns).filter_map(|column| screen.cell(row, column)).collect();
    let end = cells.iter().rposition(|cell| !cell.contents().trim().is_empty()).map_or(0, |last| last + 1);
    let mut text = String::new();
    for stretch in cells[..end].chunk_by(|one, other| face(one) == face(other)) {
        let words: String =
            stretch.iter().map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect();
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        match face(stretch[0]).as_str() {
            "" => text.push_str(&words),
            face => text.push_str(&format!("<tspan class=\"{face}\">{words}</tspan>")),
        }
    }
    text
}

fn face(cell: &Cell) -> String {
    let colour = match cell.fgcolor() {
        Color::Idx(1) => "red",
        Color::Idx(2) => "green",
        Color::Idx(3) => "yellow",
        _ => "",
    };
    let parts = [colour, if cell.dim() { "dim" } else { "" }, if cell.bold() { "bold" } else { "" }];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
