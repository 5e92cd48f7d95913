//! Rate limiting of login attempts.

use std::{pin::Pin, task::Poll, time::Duration};

use chrono::TimeDelta;
use launchway_application::Error;
use launchway_domain::{auth::Admission, users::EmailAddress};
use launchway_testkit::builders::{a_client, parsed};

use crate::{
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn ada() -> EmailAddress {
    parsed("ada@example.com")
}

#[tokio::test]
async fn a_guess_is_counted_with_account_address_and_time() {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada());

    ports.expect_forgiveness();

    let outcome = ports.login_attempts().bounded(&ada(), a_client().address, async { Ok("right") }).await;

    assert_eq!(outcome.unwrap(), "right");
}

#[tokio::test]
async fn a_guess_too_many_gets_the_time_to_wait() {
    let mut ports = MockedPorts::default();
    ports.expect_throttling(&ada(), ports.now() + TimeDelta::seconds(90));

    let outcome = ports.login_attempts().bounded(&ada(), a_client().address, not_reached()).await;

    assert_refused(outcome, Error::RateLimited { retry_after: Duration::from_secs(90) });
}

#[tokio::test]
async fn a_caller_who_waits_as_long_as_asked_is_never_early() {
    for (microseconds, seconds) in [(1_000_000, 1), (1_000_001, 2), (1_999_999, 2), (2_000_000, 2)] {
        let mut ports = MockedPorts::default();
        ports.expect_throttling(&ada(), ports.now() + TimeDelta::microseconds(microseconds));

        let outcome = ports.login_attempts().bounded(&ada(), a_client().address, not_reached()).await;

        assert_refused(outcome, Error::RateLimited { retry_after: Duration::from_secs(seconds) });
    }
}

#[tokio::test]
async fn the_shortest_wait_is_one_second() {
    for microseconds in [1, 0, -1, -5_000_000] {
        let mut ports = MockedPorts::default();
        ports.expect_throttling(&ada(), ports.now() + TimeDelta::microseconds(microseconds));

        let outcome = ports.login_attempts().bounded(&ada(), a_client().address, not_reached()).await;

        assert_refused(outcome, Error::RateLimited { retry_after: Duration::from_secs(1) });
    }
}

#[tokio::test]
async fn nothing_may_be_guessed_while_guesses_cannot_be_counted() {
    let mut ports = MockedPorts::default();
    ports.throttle.expect_admit().once().returning(|_| Err(unavailable()));

    let outcome = ports.login_attempts().bounded(&ada(), a_client().address, not_reached()).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn a_wrong_guess_stays_counted() {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada());
    let guess = async { Err::<(), _>(Error::InvalidCredentials("wrong")) };

    let outcome = ports.login_attempts().bounded(&ada(), a_client().address, guess).await;

    assert_refused(outcome, Error::InvalidCredentials("wrong"));
}

#[tokio::test]
async fn a_guess_that_met_a_fault_of_ours_is_taken_back() {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada());
    ports.expect_forgiveness();
    let guess = async { Err::<(), _>(unavailable().into()) };

    let outcome = ports.login_attempts().bounded(&ada(), a_client().address, guess).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn a_guess_that_cannot_be_taken_back_is_left_to_grow_old() {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada());
    ports.expect_failing_forgiveness();

    let outcome = ports.login_attempts().bounded(&ada(), a_client().address, async { Ok("right") }).await;

    assert_eq!(outcome.unwrap(), "right");
}

async fn not_reached() -> Result<(), Error> {
    panic!("a guess was made that was not admitted")
}

#[tokio::test]
async fn a_flood_of_guesses_is_turned_away_and_not_queued() {
    let mut ports = MockedPorts::default();
    ports.throttle.expect_admit().returning(|_| Ok(Admission::Granted));
    let login_attempts = ports.login_attempts();
    let email = ada();
    let guess =
        || login_attempts.bounded(&email, a_client().address, std::future::pending::<Result<(), Error>>());
    let mut under_way: Vec<_> = (0..256).map(|_| Box::pin(guess())).collect();
    for guess in &mut under_way {
        assert!(poll_once(guess.as_mut()).await.is_none(), "one of the first 256 was turned away");
    }

    let one_more = poll_once(Box::pin(guess()).as_mut()).await.unwrap();
    assert_refused(one_more, Error::RateLimited { retry_after: Duration::from_secs(1) });

    drop(under_way.pop());
    assert!(
        poll_once(Box::pin(guess()).as_mut()).await.is_none(),
        "a place that is free again was not given"
    );
}

/// Polls a future once, and returns its output if it is ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}
