//! Dockerfiles: parsed into a typed tree, checked there, and written anew.
//!
//! **Invariant:** the engine builds the text that [`Dockerfile::render`] wrote from a tree that
//! [`Policy::check`] accepted, never the text of a repository. The rendered text has one line for each
//! instruction, plain ASCII options, and nothing that versions of the engine read differently.

mod arguments;
mod json;
mod lines;
mod parse;
mod policy;
mod render;
mod sources;
#[cfg(test)]
mod tests;
mod tree;
mod trigger;
mod words;

pub use self::{
    policy::{BaseImage, CheckedDockerfile, DockerfileBuilder, Policy},
    tree::{
        Command, Dockerfile, Escape, Flag, Healthcheck, Instruction, Pairs, Paths, Stage, Statement, Transfer,
    },
};

/// The longest line of a rendered Dockerfile, in bytes: the engine reads at most 64 KiB.
const MAX_LINE_LENGTH: usize = 65_000;

/// The reason why a Dockerfile is not built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Rejection {
    /// The line, counted from 1, in which the instruction begins.
    pub line: usize,
    /// A sentence for the author of the file.
    pub reason: String,
}

impl Rejection {
    fn at(line: usize) -> impl Fn(String) -> Self {
        move |reason| Self { line, reason }
    }
}

/// Text of a Dockerfile as an error message may repeat it.
fn excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
