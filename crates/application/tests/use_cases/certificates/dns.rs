//! The check of a domain before an order.

use std::{net::IpAddr, sync::Arc};

use chrono::TimeDelta;
use launchway_domain::{
    certificates::{Certificate, CertificateChanges, MockCertificateRepository, MockDomainResolver, Write},
    clock::Clock as _,
    logs::Level,
    store,
};
use launchway_testkit::FixedClock;
use mockall::predicate::eq;

use super::{Issuer, Managed, domain, expect_account, expect_changes, new_certificate, requested};

/// Returns the writes and the log lines of one look at a due certificate whose domain has these addresses.
async fn looked_up(
    found: Result<Vec<IpAddr>, String>,
    due: Certificate,
) -> (Vec<store::Write>, Vec<(Level, String)>) {
    let mut certificates = MockCertificateRepository::new();
    expect_changes(&mut certificates, CertificateChanges::default());
    expect_account(&mut certificates);
    certificates.expect_due_certificates().returning(move |_| Ok(vec![due.clone()]));
    let mut resolver = MockDomainResolver::new();
    resolver.expect_addresses().with(eq(domain())).once().return_once(|_| found);
    let now = FixedClock::default().now();
    let issuer = Arc::new(Issuer::giving(Ok(new_certificate(now))));
    let managed = Managed::assembled(certificates, Some(issuer), Some(resolver));
    (managed.look().await, managed.lines())
}

#[tokio::test]
async fn nothing_is_ordered_for_a_domain_that_points_elsewhere() {
    let now = FixedClock::default().now();
    let elsewhere = vec![[198, 51, 100, 1].into(), [198, 51, 100, 2].into()];
    let points = "shop.example.com points to 198.51.100.1 and 198.51.100.2, not to 192.0.2.7";
    for (found, before, reason, (failures, minutes)) in [
        (Ok(elsewhere.clone()), 0, points, (1, 1)),
        (Ok(elsewhere), 9, points, (9, 16)),
        (Ok(Vec::new()), 2, "shop.example.com has no address in DNS", (3, 16)),
        (Err("unknown".to_owned()), 3, "shop.example.com has no address in DNS: unknown", (3, 16)),
    ] {
        let due = Certificate { failures: before, ..requested(now) };
        let fail = Write::Fail {
            domain: domain(),
            reason: reason.to_owned(),
            failures,
            next_attempt_at: now + TimeDelta::minutes(minutes),
            at: now,
        };
        let line = (Level::Warn, format!("No certificate could be issued for shop.example.com: {reason}."));
        let (writes, lines) = looked_up(found.clone(), due.clone()).await;
        assert_eq!((writes, lines), (vec![fail.clone().into()], vec![line]));
        // The same reason again is not logged again.
        let due = Certificate { last_error: Some(reason.to_owned()), ..due };
        assert_eq!(looked_up(found, due).await, (vec![fail.into()], vec![]));
    }
}

#[tokio::test]
async fn a_domain_that_points_here_is_ordered() {
    let now = FixedClock::default().now();
    let found = Ok(vec![[192, 0, 2, 7].into(), [198, 51, 100, 1].into()]);
    let (writes, _) = looked_up(found, requested(now)).await;
    let is_issue = |write: &store::Write| matches!(write, store::Write::Certificate(Write::Issue { .. }));
    assert!(writes.iter().any(is_issue), "{writes:?}");
}
