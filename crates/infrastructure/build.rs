//! Makes a new migration part of the program without touching a Rust file.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
