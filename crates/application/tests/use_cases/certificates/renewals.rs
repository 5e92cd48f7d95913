//! Renewals at the time that the ACME server suggests.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use launchway_domain::{
    certificates::{
        Certificate, CertificateChanges, IssueError, MockCertificateRepository, RenewalWindow, Write,
    },
    clock::{Clock as _, Timestamp},
    store,
};
use launchway_testkit::FixedClock;
use mockall::predicate::eq;

use super::{Issuer, Managed, domain, expect_account, expect_changes, issued, requested};

/// Returns the writes of one look at certificates that the server answers so about, the renewal of each being planned
/// in 60 days.
async fn planned(
    certificates: Vec<Certificate>,
    window: Result<Option<RenewalWindow>, IssueError>,
) -> Vec<store::Write> {
    let now = FixedClock::default().now();
    let mut repository = MockCertificateRepository::new();
    expect_changes(&mut repository, CertificateChanges::default());
    expect_account(&mut repository);
    repository.expect_unplanned_renewals().with(eq(now), eq(20)).once().return_once(|_, _| Ok(certificates));
    repository.expect_due_certificates().returning(|_| Ok(Vec::new()));
    let issuer = Issuer { window, ..Issuer::giving(Err(IssueError::new("nothing is due"))) };
    Managed::assembled(repository, Some(Arc::new(issuer)), None).look().await
}

fn a_certificate(now: Timestamp) -> Certificate {
    Certificate { issued: Some(issued(now)), ..requested(now + TimeDelta::days(60)) }
}

fn plan(now: Timestamp, renew_at: Option<Timestamp>, check_in: TimeDelta) -> store::Write {
    let not_after = now + TimeDelta::days(90);
    Write::PlanRenewal { domain: domain(), not_after, renew_at, check_at: now + check_in }.into()
}

#[tokio::test]
async fn a_renewal_is_planned_within_the_suggested_window() {
    let now = FixedClock::default().now();
    let (start, end) = (now + TimeDelta::days(10), now + TimeDelta::days(11));
    let window = RenewalWindow { start, end, retry_after: Duration::from_secs(6 * 60 * 60) };
    let writes = planned(vec![a_certificate(now)], Ok(Some(window))).await;
    let [store::Write::Certificate(Write::PlanRenewal { renew_at: Some(time), check_at, .. })] =
        writes.as_slice()
    else {
        panic!("{writes:?}")
    };
    assert!((start..=end).contains(time), "{time}");
    assert_eq!(*check_at, now + TimeDelta::hours(6));
    // A plan within the window stays.
    let window = RenewalWindow { end: now + TimeDelta::days(61), ..window };
    let writes = planned(vec![a_certificate(now)], Ok(Some(window))).await;
    assert_eq!(writes, [plan(now, None, TimeDelta::hours(6))]);
}

#[tokio::test]
async fn without_suggestions_the_plan_stays() {
    let now = FixedClock::default().now();
    assert_eq!(planned(vec![a_certificate(now)], Ok(None)).await, [plan(now, None, TimeDelta::days(1))]);
    let error = || Err(IssueError::new("the ACME server cannot be reached"));
    let two = vec![a_certificate(now), a_certificate(now)];
    assert_eq!(planned(two, error()).await, [(); 2].map(|()| plan(now, None, TimeDelta::hours(6))));
}
