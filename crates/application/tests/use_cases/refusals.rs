//! Telling one refusal from another.

use std::fmt::Debug;

use launchway_application::Error;

/// Fails unless `outcome` is the refusal `expected`, in kind, words and cause.
#[track_caller]
pub(crate) fn assert_refused<T: Debug>(outcome: Result<T, Error>, expected: impl Into<Error>) {
    match outcome {
        Ok(done) => panic!("not refused: {done:?}"),
        Err(refusal) => assert_eq!(format!("{refusal:?}"), format!("{:?}", expected.into())),
    }
}
