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
