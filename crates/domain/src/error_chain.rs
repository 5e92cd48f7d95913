//! Errors in one line.

use std::{error::Error, fmt, iter};

/// Displays an error and its sources in one line, separated by colons: a log entry and a terminal then show
/// the whole cause.
#[derive(Debug, Clone, Copy)]
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'a));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        iter::successors(self.0.source(), |&error| error.source())
            .try_for_each(|source| write!(f, ": {source}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn sources_follow_their_error_from_the_outermost_on() {
        let alone = Layer("a", None);
        assert_eq!(ErrorChain(&alone).to_string(), "a");
        let nested = Layer("c", Some(Box::new(Layer("b", Some(Box::new(alone))))));
        assert_eq!(ErrorChain(&nested).to_string(), "c: b: a");
    }
}
