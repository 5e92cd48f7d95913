//! Progress output: a line for each event, and a live line for the current activity.

use crate::screen::Screen;

/// The frames of the spinner.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Moves to the beginning of the line and clears it.
const WIPE: &str = "\r\u{1b}[2K";

/// Remarks above a live line that is redrawn. Only a terminal shows the live line.
pub(crate) struct Progress<'a> {
    screen: &'a Screen,
    is_drawn: bool,
    frame: usize,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(screen: &'a Screen) -> Self {
        Self { screen, is_drawn: false, frame: 0 }
    }

    /// Prints a remark.
    pub(crate) fn print(&mut self, words: &str) {
        self.wipe();
        self.screen.remark(words);
    }

    /// Draws the live line.
    pub(crate) fn draw(&mut self, words: &str) {
        if self.screen.is_live() {
            let frame = FRAMES[self.frame % FRAMES.len()];
            self.frame += 1;
            self.screen.sketch(&format!("{WIPE}{frame} {words}"));
            self.is_drawn = true;
        }
    }

    fn wipe(&mut self) {
        if self.is_drawn {
            self.screen.sketch(WIPE);
            self.is_drawn = false;
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// The number of characters of a bar.
const WIDTH: usize = 24;

/// The progress of a transfer: bytes and files. Only a terminal shows it.
pub(crate) struct Bar<'a> {
    progress: Progress<'a>,
    bytes: (u64, u64),
    files: (usize, usize),
}

impl<'a> Bar<'a> {
    /// Returns a bar for this many bytes and files.
    pub(crate) fn new(screen: &'a Screen, bytes: u64, files: usize) -> Self {
        Self { progress: Progress::new(screen), bytes: (0, bytes), files: (0, files) }
    }

    /// Prints a remark above it.
    pub(crate) fn print(&mut self, words: &str) {
        self.progress.print(words);
    }

    /// Adds what was transferred.
    pub(crate) fn advance(&mut self, bytes: u64, files: usize) {
        self.bytes.0 += bytes;
        self.files.0 += files;
        self.draw();
    }

    /// Draws the bar.
    pub(crate) fn draw(&mut self) {
        let line = bar(self.bytes, self.files);
        self.progress.draw(&line);
    }
}

fn bar((bytes, all_bytes): (u64, u64), (files, all_files): (usize, usize)) -> String {
    let share = |whole: u64| (bytes.min(all_bytes) * whole).checked_div(all_bytes).unwrap_or(whole);
    let full = usize::try_from(share(WIDTH as u64)).unwrap_or(WIDTH);
    let (done, open) = ("█".repeat(full), "░".repeat(WIDTH - full));
    let (bytes, all_bytes) = (size(bytes), size(all_bytes));
    format!("{done}{open} {:3}%  {bytes} of {all_bytes}, {files} of {all_files} files", share(100))
}

/// Returns a size in a unit that people read.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} bytes"),
        10_240..10_485_760 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / (1024 * 1024)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_bytes_and_files() {
        assert_eq!(
            bar((512, 2048), (3, 10)),
            "██████░░░░░░░░░░░░░░░░░░  25%  512 bytes of 2048 bytes, 3 of 10 files"
        );
        assert!(bar((0, 0), (0, 0)).starts_with(&"█".repeat(WIDTH)));
        assert!(bar((20 << 20, 20 << 20), (2, 2)).ends_with("100%  20 MiB of 20 MiB, 2 of 2 files"));
    }
}
