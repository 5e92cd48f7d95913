//! Cancellation of runs.

use launchway_application::Error;
use launchway_domain::{
    extensions::{ExecutionState, Write},
    jobs::Write as JobWrite,
    store::{self, StoreError},
};

use super::{HELLO, a_run, an_entry, an_operator, scope};
use crate::ports::MockedPorts;

#[tokio::test]
async fn a_run_that_has_not_finished_is_cancelled() {
    let detail = a_run(an_entry(HELLO).await, "{}", &[("A", ExecutionState::Running)]);
    let (id, job, at) = (detail.execution.id, detail.execution.job_id, MockedPorts::default().now());
    let mut ports = MockedPorts::default();
    let execution = detail.execution.clone();
    ports.executions.expect_get().return_once(|_, _| Ok(Some((execution, Vec::new()))));
    ports.expect_commit_seen_by(move |writes| {
        let cancel: store::Write = JobWrite::RequestCancel { scope: scope(), id: job, at }.into();
        assert_eq!(writes[..2], [cancel, Write::FollowJobs { at }.into()]);
    });
    ports.executions.expect_detail().return_once(|_, _| Ok(Some(detail)));
    assert!(ports.services().extensions.cancel(&an_operator(), id).await.is_ok());
}

#[tokio::test]
async fn a_run_that_just_finished_conflicts() {
    let mut detail = a_run(an_entry(HELLO).await, "{}", &[("A", ExecutionState::Running)]);
    let id = detail.execution.id;
    let running = detail.execution.clone();
    detail.execution.state = ExecutionState::Completed;
    let over = detail.execution.clone();

    let mut ports = MockedPorts::default();
    let known = over.clone();
    ports.executions.expect_get().return_once(|_, _| Ok(Some((known, Vec::new()))));
    let refused = ports.services().extensions.cancel(&an_operator(), id).await.unwrap_err();
    assert_eq!(refused.to_string(), "the execution is completed already");

    let mut ports = MockedPorts::default();
    let mut answers = vec![over, running];
    ports
        .executions
        .expect_get()
        .times(2)
        .returning(move |_, _| Ok(answers.pop().map(|run| (run, Vec::new()))));
    ports.expect_failing_commit(StoreError::Stale);
    let refused = ports.services().extensions.cancel(&an_operator(), id).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
}
