//! An ACME server that does not answer.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use chrono::TimeDelta;
use launchway_domain::{
    applications::Hostname,
    certificates::{
        Certificate, CertificateChanges, CertificateIssuer, CertificateState, ChallengeResponder, IssueError,
        MockCertificateRepository, NewCertificate, RenewalWindow, Write,
    },
    clock::Timestamp,
    secret::Secret,
    store,
};

use super::{DIRECTORY, Managed, expect_account, expect_changes, issued, new_certificate, requested};

/// An ACME server that answers only while it is up.
#[derive(Default)]
struct Switchable {
    is_up: AtomicBool,
    orders: AtomicUsize,
    issued_at: Mutex<Timestamp>,
}

#[async_trait]
impl CertificateIssuer for Switchable {
    fn directory(&self) -> String {
        DIRECTORY.to_owned()
    }

    async fn register(&self) -> Result<Secret<String>, IssueError> {
        Err(IssueError::new("there is an account"))
    }

    async fn renewal_window(
        &self,
        _account: &Secret<String>,
        _chain: &str,
    ) -> Result<Option<RenewalWindow>, IssueError> {
        Ok(None)
    }

    async fn issue(
        &self,
        _account: &Secret<String>,
        _domain: &Hostname,
        _replaced: Option<&str>,
        _responder: &dyn ChallengeResponder,
    ) -> Result<NewCertificate, IssueError> {
        self.orders.fetch_add(1, Ordering::SeqCst);
        match self.is_up.load(Ordering::SeqCst) {
            true => Ok(new_certificate(*self.issued_at.lock().unwrap_or_else(PoisonError::into_inner))),
            false => Err(IssueError::new("the ACME server cannot be reached")),
        }
    }
}

/// Changes the record as the database does.
fn apply(certificate: &mut Certificate, write: store::Write) {
    match write {
        store::Write::Certificate(Write::Fail { reason, failures, next_attempt_at, .. }) => {
            certificate.failures = failures;
            certificate.last_error = Some(reason);
            certificate.next_attempt_at = Some(next_attempt_at);
        }
        store::Write::Certificate(Write::Issue { issued, renew_at, .. }) => {
            certificate.issued = Some(issued);
            (certificate.failures, certificate.last_error) = (0, None);
            certificate.next_attempt_at = Some(renew_at);
        }
        _ => {}
    }
}

#[tokio::test]
async fn an_outage_of_an_hour_leaves_a_certificate_and_ends() {
    let issuer = Arc::new(Switchable::default());
    let record = Arc::new(Mutex::new(None::<Certificate>));
    let mut certificates = MockCertificateRepository::new();
    expect_changes(&mut certificates, CertificateChanges::default());
    expect_account(&mut certificates);
    let read = Arc::clone(&record);
    certificates.expect_due_certificates().returning(move |now| {
        let record = read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(record.into_iter().filter(|one| one.next_attempt_at.is_some_and(|at| at <= now)).collect())
    });
    let managed = Managed::assembled(certificates, Some(issuer.clone()), None);
    // It is due for its renewal when the outage begins.
    let first = issued(managed.now - TimeDelta::days(60));
    let due = Certificate { issued: Some(first.clone()), ..requested(managed.now) };
    *record.lock().unwrap_or_else(PoisonError::into_inner) = Some(due);
    let look = async || {
        let writes = managed.look().await;
        let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
        let record = record.as_mut().expect("a record");
        writes.into_iter().for_each(|write| apply(record, write));
        record.clone()
    };
    for minute in 0..60 {
        managed.clock.set(managed.now + TimeDelta::minutes(minute));
        let shown = look().await;
        assert_eq!(shown.issued, Some(first.clone()));
        assert_eq!(shown.state(managed.now + TimeDelta::minutes(minute)), CertificateState::Valid);
        assert_eq!(shown.last_error.as_deref(), Some("the ACME server cannot be reached"));
    }
    // After 0, 1, 5 and 21 minutes, which no limit of a server forbids.
    assert_eq!(issuer.orders.load(Ordering::SeqCst), 4);
    assert_eq!(managed.lines().len(), 4);

    issuer.is_up.store(true, Ordering::SeqCst);
    let back = managed.now + TimeDelta::minutes(85);
    *issuer.issued_at.lock().unwrap_or_else(PoisonError::into_inner) = back;
    managed.clock.set(back);
    let shown = look().await;
    assert_eq!((shown.issued, shown.failures, shown.last_error), (Some(issued(back)), 0, None));
    assert!(shown.next_attempt_at.is_some_and(|next| next >= back + TimeDelta::days(60)));
}
