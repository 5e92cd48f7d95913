//! What is going on: a line for everything that happened, and one that lives for what happens now.

use crate::screen::Screen;

/// What turns while something is awaited.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// To the beginning of the line, and nothing on it.
const WIPE: &str = "\r\u{1b}[2K";

/// Remarks above a line that is drawn again and again. Only a terminal shows that line.
pub(crate) struct Progress<'a> {
    screen: &'a Screen,
    is_drawn: bool,
    frame: usize,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(screen: &'a Screen) -> Self {
        Self { screen, is_drawn: false, frame: 0 }
    }

    /// Something that happened.
    pub(crate) fn say(&mut self, words: &str) {
        self.wipe();
        self.screen.remark(words);
    }

    /// What happens now.
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
