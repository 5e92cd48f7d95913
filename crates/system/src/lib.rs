#![doc = include_str!("../README.md")]

pub mod clock;
pub mod files;
pub mod output;
pub mod process;
pub mod resolver;
