//! BranchPoller of errors.

use std::fmt::Debug;

use launchway_application::Error;

/// Asserts that `outcome` is the error `expected`, in kind, message and source.
#[track_caller]
pub(crate) fn assert_refused<T: Debug>(outcome: Result<T, Error>, expected: impl Into<Error>) {
    match outcome {
        Ok(done) => panic!("not refused: {done:?}"),
        Err(refusal) => assert_eq!(format!("{refusal:?}"), format!("{:?}", expected.into())),
    }
}
