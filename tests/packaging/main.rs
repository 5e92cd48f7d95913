//! The packaging of Launchway: units for systemd, a Debian package, a container image.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod assets;
mod image;
mod namespaces;
mod nftables;
mod node_filter;
mod privileges;
mod scripts;
mod units;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns a file of the packaging.
fn packaging(path: &str) -> PathBuf {
    root().join("packaging").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(packaging(path)).unwrap()
}
