//! Tables: columns as wide as needed, headings above.

use crate::screen::{Tone, visible};

/// A text in a table, and its tone.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    pub(crate) fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { tone: Some(tone), ..Self::from(text.as_ref()) }
    }
}

impl From<&str> for Cell {
    /// Joins the text into one line.
    fn from(text: &str) -> Self {
        Self { text: visible(text).replace(['\n', '\t'], " "), tone: None }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// Rows under headings.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    nothing: String,
}

impl Table {
    /// Creates a table with these headings, and the text `nothing` that is shown without rows.
    pub(crate) fn new(headings: &[&'static str], nothing: impl Into<String>) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new(), nothing: nothing.into() }
    }

    /// Adds a row, with a cell for each heading.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Formats the table.
    pub(crate) fn render(&self, tint: impl Fn(&str, Tone) -> String) -> String {
        if self.rows.is_empty() {
            return format!("{}\n", self.nothing);
        }
        let widths: Vec<usize> = (0..self.headings.len()).map(|column| self.width(column)).collect();
        let headings: Vec<_> =
            self.headings.iter().map(|heading| Cell::toned(heading, Tone::Quiet)).collect();
        let mut text = line(&headings, &widths, &tint);
        for row in &self.rows {
            text.push_str(&line(row, &widths, &tint));
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count());
        cells.chain([self.headings[column].chars().count()]).max().unwrap_or_default()
    }
}

/// Formats one line, with two spaces between columns and none at its end.
fn line(cells: &[Cell], widths: &[usize], tint: &impl Fn(&str, Tone) -> String) -> String {
    let mut text = String::new();
    for (number, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let shown = match cell.tone {
            Some(tone) if !cell.text.is_empty() => tint(&cell.text, tone),
            _ => cell.text.clone(),
        };
        text.push_str(&shown);
        if number + 1 < cells.len() {
            text.push_str(&" ".repeat(width - cell.text.chars().count() + 2));
        }
    }
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["NAME", "STATE"], "none");
        table.row(["a".into(), Cell::toned("running", Tone::Good)]);
        table.row(["longer".into(), "".into()]);
        let text = table.render(|text, _| text.to_owned());
        assert_eq!(text, "NAME    STATE\na       running\nlonger\n");
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let mut table = Table::new(&["A", "B"], "none");
        table.row([Cell::toned("x", Tone::Good), "y".into()]);
        let text = table.render(|text, _| format!("<{text}>"));
        assert_eq!(text, "<A>  <B>\n<x>  y\n");
    }

    #[test]
    fn without_rows_there_is_a_sentence() {
        assert_eq!(Table::new(&["A"], "nothing here").render(|text, _| text.to_owned()), "nothing here\n");
    }

    #[test]
    fn a_cell_is_one_line_and_cannot_steer_the_terminal() {
        let mut table = Table::new(&["A"], "none");
        table.row(["x\ny\u{1b}[1m".into()]);
        assert_eq!(table.render(|text, _| text.to_owned()), "A\nx y\u{fffd}[1m\n");
    }
}
