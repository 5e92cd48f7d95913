#![doc = include_str!("../README.md")]

pub mod clock;
pub mod files;
pub mod process;
pub mod resolver;
