//! Records the output of a program, with times.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use launchway_domain::deployments::Output;

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pieces: Mutex<Vec<(Instant, String)>>,
}

impl Recorder {
    pub(crate) fn text(&self) -> String {
        self.pieces.lock().unwrap().iter().map(|(_, piece)| piece.as_str()).collect()
    }

    /// Returns the time at which the first piece with these words was printed.
    pub(crate) fn moment_of(&self, words: &str) -> Option<Instant> {
        let pieces = self.pieces.lock().unwrap();
        pieces.iter().find(|(_, piece)| piece.contains(words)).map(|(at, _)| *at)
    }

    /// Waits until these words were printed.
    pub(crate) async fn wait_for(&self, words: &str) {
        for _ in 0..600 {
            if self.moment_of(words).is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("`{words}` did not come: {}", self.text());
    }
}

#[async_trait]
impl Output for Recorder {
    async fn write(&self, piece: &[u8]) {
        let piece = String::from_utf8_lossy(piece).into_owned();
        self.pieces.lock().unwrap().push((Instant::now(), piece));
    }
}
