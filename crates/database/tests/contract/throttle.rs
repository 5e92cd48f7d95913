//! Contract of `LoginThrottle`.

use chrono::TimeDelta;
use launchway_database::{Database, DurableThrottle};
use launchway_domain::auth::{Admission, LoginAttempt, LoginThrottle as _, ThrottleLimits};
use tokio::task::JoinSet;

use crate::{
    builders::{at, id},
    fresh::Fresh,
};

contract!(
    one_address_may_fail_so_often_for_one_account,
    one_address_may_fail_so_often_altogether,
    one_account_may_be_failed_so_often_altogether,
    a_failure_stops_counting_after_the_window,
    the_wait_ends_when_every_limit_allows_it,
    a_refused_attempt_is_not_counted,
    a_forgiven_attempt_is_not_counted,
    counts_survive_a_restart_and_are_shared_by_replicas,
    attempts_at_the_same_time_cannot_slip_through_together,
);

const LIMITS: ThrottleLimits =
    ThrottleLimits { window: TimeDelta::seconds(100), account_and_address: 3, address: 5, account: 7 };

fn throttle(db: &Database) -> DurableThrottle {
    DurableThrottle::new(db.clone(), LIMITS)
}

fn attempt(account: &str, address: &str, seconds: i64) -> LoginAttempt {
    let email = format!("{account}@example.com").parse().unwrap();
    LoginAttempt::new(id(), &email, address.parse().unwrap(), at(seconds))
}

async fn admit(throttle: &DurableThrottle, account: &str, address: &str, seconds: i64) -> Admission {
    throttle.admit(&attempt(account, address, seconds)).await.unwrap()
}

fn until(seconds: i64) -> Admission {
    Admission::Refused { until: at(seconds) }
}

async fn one_address_may_fail_so_often_for_one_account(db: Database) {
    let throttle = throttle(&db);
    for seconds in 0..3 {
        assert_eq!(admit(&throttle, "ada", "192.0.2.1", seconds).await, Admission::Granted);
    }
    assert_eq!(admit(&throttle, "ada", "192.0.2.1", 3).await, until(100));
    assert_eq!(admit(&throttle, "ada", "192.0.2.2", 3).await, Admission::Granted);
    assert_eq!(admit(&throttle, "grace", "192.0.2.1", 3).await, Admission::Granted);
}

async fn one_address_may_fail_so_often_altogether(db: Database) {
    let throttle = throttle(&db);
    for seconds in 0..5 {
        let account = format!("user{seconds}");
        assert_eq!(admit(&throttle, &account, "192.0.2.1", seconds).await, Admission::Granted);
    }
    assert_eq!(admit(&throttle, "another", "192.0.2.1", 5).await, until(100));
    assert_eq!(admit(&throttle, "another", "192.0.2.2", 5).await, Admission::Granted);
}

async fn one_account_may_be_failed_so_often_altogether(db: Database) {
    let throttle = throttle(&db);
    for seconds in 0..7 {
        let address = format!("192.0.2.{seconds}");
        assert_eq!(admit(&throttle, "ada", &address, seconds).await, Admission::Granted);
    }
    assert_eq!(admit(&throttle, "ada", "192.0.2.99", 7).await, until(100));
    assert_eq!(admit(&throttle, "grace", "192.0.2.99", 7).await, Admission::Granted);
}

async fn a_failure_stops_counting_after_the_window(db: Database) {
    let throttle = throttle(&db);
    for seconds in [0, 10, 20] {
        admit(&throttle, "ada", "192.0.2.1", seconds).await;
    }
    assert_eq!(admit(&throttle, "ada", "192.0.2.1", 99).await, until(100));
    assert_eq!(admit(&throttle, "ada", "192.0.2.1", 100).await, Admission::Granted);
    assert_eq!(admit(&throttle, "ada", "192.0.2.1", 101).await, until(110));
}

async fn the_wait_ends_when_every_limit_allows_it(db: Database) {
    let throttle = throttle(&db);
    for (seconds, account) in [(0, "ada"), (10, "grace"), (20, "grace"), (30, "ada"), (40, "ada")] {
        assert_eq!(admit(&throttle, account, "192.0.2.1", seconds).await, Admission::Granted);
    }
    // The address is free again at 100, and so is Ada's account from there.
    assert_eq!(admit(&throttle, "ada", "192.0.2.1", 50).await, until(100));
    assert_eq!(admit(&throttle, "ada", "192.0.2.1", 100).await, Admission::Granted);
    // Now Ada's own limit lasts longer (130) than that of the address (110).
    assert_eq!(admit(&throttle, "ada", "192.0.2.1", 105).await, until(130));
}

async fn a_refused_attempt_is_not_counted(db: Database) {
    let throttle = throttle(&db);
    for seconds in 0..3 {
        admit(&throttle, "ada", "192.0.2.1", seconds).await;
    }
    for seconds in 3..20 {
        assert_eq!(admit(&throttle, "ada", "192.0.2.1", seconds).await, until(100));
    }
    assert_eq!(admit(&throttle, "grace", "192.0.2.1", 20).await, Admission::Granted);
    assert_eq!(admit(&throttle, "ada", "192.0.2.2", 20).await, Admission::Granted);
}

async fn a_forgiven_attempt_is_not_counted(db: Database) {
    let throttle = throttle(&db);
    for seconds in 0..20 {
        let attempt = attempt("ada", "192.0.2.1", seconds);
        assert_eq!(throttle.admit(&attempt).await.unwrap(), Admission::Granted);
        throttle.forgive(attempt.id).await.unwrap();
    }
    throttle.forgive(id()).await.unwrap();
}

async fn counts_survive_a_restart_and_are_shared_by_replicas(fresh: &Fresh) {
    for seconds in 0..3 {
        admit(&throttle(&fresh.database), "ada", "192.0.2.1", seconds).await;
    }
    let other = throttle(&fresh.open_again());
    assert_eq!(admit(&other, "ada", "192.0.2.1", 3).await, until(100));
}

async fn attempts_at_the_same_time_cannot_slip_through_together(db: Database) {
    let throttle = throttle(&db);
    let mut tasks = JoinSet::new();
    for _ in 0..30 {
        let throttle = throttle.clone();
        tasks.spawn(async move { admit(&throttle, "ada", "192.0.2.1", 0).await });
    }
    let admissions = tasks.join_all().await;
    assert_eq!(admissions.iter().filter(|admission| **admission == Admission::Granted).count(), 3);
}
