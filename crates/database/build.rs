//! Rebuilds the crate when a migration is added, without a change to a Rust file.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
