//! Certificates: uploads, and the manager that issues and renews them.

mod dns;
mod outage;
mod renewals;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{SecondsFormat, TimeDelta};
use launchway_application::{
    Error, WakeSignal,
    certificates::{CertificateManager, CertificateManagerPorts, CertificatePublisher, DnsCheck},
    routes::{RoutePorts, Routes},
};
use launchway_domain::{
    applications::{Hostname, MockApplicationRepository},
    audit::{Action, Resource},
    certificates::{
        Certificate, CertificateChanges, CertificateIssuer, CertificateSource, Challenge, ChallengeResponder,
        ExpiringCertificate, HstsMaxAge, HstsPolicy, IssueError, IssuedCertificate,
        MockCertificateRepository, MockCertificateServer, MockDomainResolver, NewCertificate, RenewalWindow,
        Write,
    },
    clock::{Clock as _, Timestamp},
    deployments::{MockDeploymentRepository, MockSiteStore},
    ids::{ApplicationId, DeploymentId},
    logs::{Level, MockLogSink},
    notifications::{self, EventKind, Fact},
    routes::MockTrafficRouter,
    secret::{Sealed, Secret},
    store::{self, MockUnitOfWork},
};
use launchway_testkit::{
    FixedClock,
    builders::{an_application, an_entry, parsed},
};
use mockall::predicate::eq;

use crate::{
    actors::{a_member, a_viewer, lacks},
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, context},
    sealed_values::{a_box, sealed},
};

const DIRECTORY: &str = "https://acme.example.com/dir";

fn domain() -> Hostname {
    parsed("shop.example.com")
}

fn application() -> ApplicationId {
    uuid::Uuid::from_u128(7).into()
}

fn requested(at: Timestamp) -> Certificate {
    Certificate {
        domain: domain(),
        application_id: Some(application()),
        source: CertificateSource::Acme,
        issued: None,
        failures: 0,
        last_error: None,
        next_attempt_at: Some(at),
        updated_at: at,
    }
}

fn new_certificate(at: Timestamp) -> NewCertificate {
    NewCertificate {
        chain: "CHAIN".to_owned(),
        key: Secret::new("KEY".to_owned()),
        not_before: at,
        not_after: at + TimeDelta::days(90),
    }
}

fn issued(at: Timestamp) -> IssuedCertificate {
    IssuedCertificate {
        chain: "CHAIN".to_owned(),
        key: sealed("certificates.private_key:shop.example.com", "KEY"),
        not_before: at,
        not_after: at + TimeDelta::days(90),
    }
}

/// An ACME server that challenges once, and then gives its result.
struct Issuer {
    result: Result<NewCertificate, IssueError>,
    window: Result<Option<RenewalWindow>, IssueError>,
}

impl Issuer {
    fn giving(result: Result<NewCertificate, IssueError>) -> Self {
        Self { result, window: Ok(None) }
    }
}

#[async_trait]
impl CertificateIssuer for Issuer {
    fn directory(&self) -> String {
        DIRECTORY.to_owned()
    }

    async fn register(&self) -> Result<Secret<String>, IssueError> {
        Ok(Secret::new("ACCOUNT".to_owned()))
    }

    async fn renewal_window(
        &self,
        account: &Secret<String>,
        chain: &str,
    ) -> Result<Option<RenewalWindow>, IssueError> {
        assert_eq!((account.expose().as_str(), chain), ("ACCOUNT", "CHAIN"));
        self.window.clone()
    }

    async fn issue(
        &self,
        account: &Secret<String>,
        wanted: &Hostname,
        _replaced: Option<&str>,
        responder: &dyn ChallengeResponder,
    ) -> Result<NewCertificate, IssueError> {
        assert_eq!((account.expose().as_str(), wanted), ("ACCOUNT", &domain()));
        responder.publish(challenge()).await?;
        self.result.clone()
    }
}

fn challenge() -> Challenge {
    let key_authorization = "token.thumbprint".to_owned();
    Challenge { token: "token".to_owned(), key_authorization, tls_domain: None }
}

/// A manager, and what it has written and logged.
struct Managed {
    manager: Arc<CertificateManager>,
    writes: Arc<Mutex<Vec<store::Write>>>,
    lines: Arc<Mutex<Vec<(Level, String)>>>,
    clock: Arc<FixedClock>,
    now: Timestamp,
}

impl Managed {
    fn new(
        certificates: MockCertificateRepository,
        issuer: Option<Result<NewCertificate, IssueError>>,
    ) -> Self {
        let issuer = issuer.map(|result| -> Arc<dyn CertificateIssuer> { Arc::new(Issuer::giving(result)) });
        Self::assembled(certificates, issuer, None)
    }

    fn assembled(
        mut certificates: MockCertificateRepository,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        resolver: Option<MockDomainResolver>,
    ) -> Self {
        let clock = Arc::new(FixedClock::default());
        let now = clock.now();
        let (writes, lines) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (mut store, written) = (MockUnitOfWork::new(), Arc::clone(&writes));
        store.expect_commit().returning(move |mut new| {
            written.lock().unwrap_or_else(PoisonError::into_inner).append(&mut new);
            Ok(())
        });
        let (mut logs, logged) = (MockLogSink::new(), Arc::clone(&lines));
        logs.expect_append().returning(move |new| {
            logged
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(new.into_iter().map(|line| (line.level, line.text)));
            Ok(())
        });
        certificates.expect_live_deployment().returning(|_| Ok(Some(DeploymentId::from(uuid::Uuid::nil()))));
        // After those of the test, which are found first.
        certificates.expect_expiring_certificates().returning(|_| Ok(Vec::new()));
        certificates.expect_unplanned_renewals().returning(|_, _| Ok(Vec::new()));
        certificates.expect_challenges().returning(|| Ok(vec![challenge()]));
        certificates.expect_certificates_revision().returning(|| Ok("2".to_owned()));
        certificates.expect_certificates().returning(|| Ok(Vec::new()));
        certificates.expect_hsts().returning(|| Ok(Vec::new()));
        let certificates = Arc::new(certificates);
        let mut server = MockCertificateServer::new();
        server.expect_revision().returning(|| Ok(Some("1".to_owned())));
        server.expect_set_challenges().with(eq(vec![challenge()])).returning(|_| Ok(()));
        server.expect_set_certificates().returning(|_, _| Ok(()));
        let ports = RoutePorts {
            applications: Arc::new(MockApplicationRepository::new()),
            deployments: Arc::new(MockDeploymentRepository::new()),
            sites: Arc::new(MockSiteStore::new()),
            router: Arc::new(MockTrafficRouter::new()),
        };
        let publisher = CertificatePublisher::new(
            certificates.clone(),
            Arc::new(a_box()),
            Arc::new(server),
            Arc::new(FixedClock::default()),
            443,
        );
        let ports = CertificateManagerPorts {
            certificates,
            issuer,
            dns: resolver.map(|resolver| DnsCheck {
                resolver: Arc::new(resolver),
                addresses: vec![[192, 0, 2, 7].into()],
            }),
            secrets: Arc::new(a_box()),
            logs: Arc::new(logs),
            routes: Arc::new(Routes::new(ports, None).with_certificates(publisher)),
        };
        let context = context(store, Arc::clone(&clock) as _, WakeSignal::default());
        let manager = Arc::new(CertificateManager::new(ports, None, context));
        Self { manager, writes, lines, clock, now }
    }

    async fn look(&self) -> Vec<store::Write> {
        let looked = Arc::clone(&self.manager).look().await;
        assert!(looked.is_ok(), "{looked:?}");
        std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn lines(&self) -> Vec<(Level, String)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn expect_changes(certificates: &mut MockCertificateRepository, changes: CertificateChanges) {
    certificates.expect_certificate_changes().with(eq(None)).returning(move |_| Ok(changes.clone()));
}

fn expect_account(certificates: &mut MockCertificateRepository) {
    let account = sealed(&format!("acme_accounts.credentials:{DIRECTORY}"), "ACCOUNT");
    certificates.expect_acme_account().with(eq(DIRECTORY)).returning(move |_| Ok(Some(account.clone())));
}

fn removal(now: Timestamp) -> store::Write {
    let older_than = now - TimeDelta::hours(1);
    Write::RemoveChallenges { tokens: vec!["token".to_owned()], older_than }.into()
}

#[tokio::test]
async fn missing_certificates_are_requested_and_unused_ones_deleted() {
    let mut certificates = MockCertificateRepository::new();
    let missing = vec![(domain(), application())];
    expect_changes(
        &mut certificates,
        CertificateChanges { missing, has_unused: true, ..CertificateChanges::default() },
    );
    certificates.expect_due_certificates().returning(|_| Ok(Vec::new()));
    let managed = Managed::new(certificates, Some(Err(IssueError::new("unused"))));
    let request = Write::Request { domain: domain(), application_id: Some(application()), at: managed.now };
    assert_eq!(managed.look().await, [Write::DeleteUnused { api_domain: None }.into(), request.into()]);
}

#[tokio::test]
async fn without_an_acme_server_nothing_is_requested() {
    let mut certificates = MockCertificateRepository::new();
    let missing = vec![(domain(), application())];
    expect_changes(&mut certificates, CertificateChanges { missing, ..CertificateChanges::default() });
    assert_eq!(Managed::new(certificates, None).look().await, []);
}

#[tokio::test]
async fn a_due_certificate_is_issued_sealed_and_logged() {
    let mut certificates = MockCertificateRepository::new();
    expect_changes(&mut certificates, CertificateChanges::default());
    expect_account(&mut certificates);
    let now = FixedClock::default().now();
    certificates.expect_due_certificates().with(eq(now)).returning(move |_| Ok(vec![requested(now)]));
    let managed = Managed::new(certificates, Some(Ok(new_certificate(now))));
    let writes = managed.look().await;
    let [first, second, store::Write::Certificate(Write::Issue { domain: of, issued: new, renew_at, at })] =
        writes.as_slice()
    else {
        panic!("{writes:?}")
    };
    assert_eq!(first, &Write::AddChallenge { challenge: challenge(), at: now }.into());
    assert_eq!(second, &removal(now));
    assert_eq!((of, new, *at), (&domain(), &issued(now), now));
    assert!((now + TimeDelta::days(60)..=now + TimeDelta::hours(24 * 60 + 108)).contains(renew_at));
    let lines = managed.lines();
    let [(Level::Info, line)] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.starts_with("A certificate for shop.example.com was issued; it expires on "), "{line}");
}

#[tokio::test]
async fn a_failure_is_recorded_with_its_reason_and_retried_later() {
    let mut certificates = MockCertificateRepository::new();
    expect_changes(&mut certificates, CertificateChanges::default());
    expect_account(&mut certificates);
    let now = FixedClock::default().now();
    let failed = Certificate { failures: 1, ..requested(now) };
    certificates.expect_due_certificates().returning(move |_| Ok(vec![failed.clone()]));
    // The server counted two: one for each kind of challenge.
    let error = IssueError { failures: 2, ..IssueError::new("no way") };
    let managed = Managed::new(certificates, Some(Err(error)));
    let fail = Write::Fail {
        domain: domain(),
        reason: "no way".to_owned(),
        failures: 3,
        next_attempt_at: now + TimeDelta::minutes(16),
        at: now,
    };
    let add = Write::AddChallenge { challenge: challenge(), at: now };
    assert_eq!(managed.look().await, [add.into(), removal(now), fail.into()]);
    let expected = "No certificate could be issued for shop.example.com: no way.";
    assert_eq!(managed.lines(), [(Level::Warn, expected.to_owned())]);
}

#[tokio::test]
async fn users_are_warned_of_a_certificate_that_expires_soon() {
    let now = FixedClock::default().now();
    let expiring = |days: i64, life: i64| ExpiringCertificate {
        domain: domain(),
        scope: scope(),
        application_id: application(),
        application: "shop".to_owned(),
        environment: "production".to_owned(),
        source: CertificateSource::Uploaded,
        not_before: now + TimeDelta::days(days - life),
        not_after: now + TimeDelta::days(days),
        last_error: None,
    };
    let mut certificates = MockCertificateRepository::new();
    expect_changes(&mut certificates, CertificateChanges::default());
    let (soon, later) = (expiring(13, 90), expiring(13, 60));
    certificates
        .expect_expiring_certificates()
        .with(eq(now + TimeDelta::days(14)))
        .returning(move |_| Ok(vec![soon.clone(), later.clone()]));
    let writes = Managed::new(certificates, None).look().await;
    let [warn, store::Write::Notification(notifications::Write::Announce(event))] = writes.as_slice() else {
        panic!("{writes:?}")
    };
    let not_after = now + TimeDelta::days(13);
    assert_eq!(warn, &Write::Warn { domain: domain(), not_after }.into());
    assert_eq!(event.kind, EventKind::CertificateExpiring);
    assert_eq!(event.facts[&Fact::Host], "shop.example.com");
    assert_eq!(event.facts[&Fact::NotAfter], not_after.to_rfc3339_opts(SecondsFormat::Secs, true));
}

#[tokio::test]
async fn an_account_is_registered_at_first_use() {
    let mut certificates = MockCertificateRepository::new();
    expect_changes(&mut certificates, CertificateChanges::default());
    let now = FixedClock::default().now();
    certificates.expect_due_certificates().returning(move |_| Ok(vec![requested(now)]));
    certificates.expect_acme_account().times(1).returning(|_| Ok(None));
    expect_account(&mut certificates);
    let managed = Managed::new(certificates, Some(Ok(new_certificate(now))));
    let credentials = sealed(&format!("acme_accounts.credentials:{DIRECTORY}"), "ACCOUNT");
    let register = Write::Register { directory: DIRECTORY.to_owned(), credentials, at: now };
    assert_eq!(managed.look().await.first(), Some(&register.into()));
}

#[tokio::test]
async fn an_uploaded_certificate_is_stored_sealed() {
    let mut ports = MockedPorts::with_a_box();
    let now = ports.now();
    let shop = an_application().at_domain("shop.example.com").build();
    let id = shop.id;
    ports.applications.expect_get().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(Some(shop)));
    ports.certificate_parser.expect_parse().once().returning(move |_, _, _, _| Ok(new_certificate(now)));
    let entry = an_entry()
        .of(Action::Update, Resource::Application, id)
        .with_message("uploaded a certificate for shop.example.com")
        .with("domain", "shop.example.com")
        .with("private_key", "[changed]")
        .at(now);
    let upload =
        Write::Upload { scope: scope(), application_id: id, domain: domain(), issued: issued(now), at: now };
    ports.expect_commit(vec![upload.into(), audited(1, entry)]);
    let key = Secret::new("KEY".to_owned());
    ports.services().certificates.upload(&a_member(), id, domain(), "CHAIN", &key).await.unwrap();
}

#[tokio::test]
async fn an_upload_for_another_domain_or_by_a_viewer_is_refused() {
    let key = Secret::new("KEY".to_owned());
    let mut ports = MockedPorts::with_a_box();
    let shop = an_application().at_domain("other.example.com").build();
    let id = shop.id;
    ports.applications.expect_get().once().return_once(|_, _| Ok(Some(shop)));
    let refused = ports.services().certificates.upload(&a_member(), id, domain(), "CHAIN", &key).await;
    assert!(matches!(refused, Err(Error::NotFound("the domain"))), "{refused:?}");
    let services = MockedPorts::default().services();
    let refused = services.certificates.upload(&a_viewer(), id, domain(), "CHAIN", &key).await;
    assert!(matches!(refused, Err(Error::Forbidden(lack)) if lack == lacks("deploy:update")));
}

#[tokio::test]
async fn an_hsts_policy_is_set_and_removed_by_members() {
    let max_age = HstsMaxAge::try_from(300).unwrap();
    for max_age in [Some(max_age), None] {
        let mut ports = MockedPorts::with_a_box();
        let now = ports.now();
        let shop = an_application().at_domain("shop.example.com").build();
        let id = shop.id;
        ports.applications.expect_get().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(Some(shop)));
        let entry =
            an_entry().of(Action::Update, Resource::Application, id).with("domain", "shop.example.com");
        let entry = match max_age {
            Some(_) => {
                entry.with_message("set the HSTS policy of shop.example.com").with("max_age", "300").at(now)
            }
            None => entry.with_message("removed the HSTS policy of shop.example.com").at(now),
        };
        let write = Write::SetHsts { scope: scope(), application_id: id, domain: domain(), max_age };
        ports.expect_commit(vec![write.into(), audited(1, entry)]);
        let certificates = ports.services().certificates;
        match max_age {
            Some(max_age) => certificates.set_hsts(&a_member(), id, domain(), max_age).await.unwrap(),
            None => certificates.remove_hsts(&a_member(), id, domain()).await.unwrap(),
        }
    }
    let services = MockedPorts::default().services();
    let refused = services.certificates.remove_hsts(&a_viewer(), application(), domain()).await;
    assert!(matches!(refused, Err(Error::Forbidden(lack)) if lack == lacks("deploy:update")));
}

#[tokio::test]
async fn an_unreadable_key_leaves_other_certificates_served() {
    let now = FixedClock::default().now();
    let good = Certificate { issued: Some(issued(now)), ..requested(now) };
    let broken = Certificate {
        domain: parsed("broken.example.com"),
        issued: Some(IssuedCertificate { key: Sealed("damaged".to_owned()), ..issued(now) }),
        ..requested(now)
    };
    let mut certificates = MockCertificateRepository::new();
    certificates.expect_challenges().returning(|| Ok(Vec::new()));
    certificates.expect_certificates_revision().returning(|| Ok("2".to_owned()));
    certificates.expect_certificates().once().return_once(|| Ok(vec![broken, good]));
    let policy =
        HstsPolicy { domain: domain(), application_id: application(), max_age: HstsMaxAge::default() };
    certificates.expect_hsts().once().return_once(|| Ok(vec![policy]));
    let mut server = MockCertificateServer::new();
    server.expect_revision().returning(|| Ok(Some("1".to_owned())));
    server.expect_set_challenges().once().returning(|_| Ok(()));
    server.expect_set_certificates().once().returning(|revision, served| {
        assert_eq!((revision, served.len(), served[0].key.expose().as_str()), ("2", 1, "KEY"));
        assert_eq!(served[0].hsts, Some(HstsMaxAge::default()));
        Ok(())
    });
    let mut router = MockTrafficRouter::new();
    router.expect_is_there().return_const(true);
    router.expect_replace_all().once().returning(|_| Ok(()));
    let mut applications = MockApplicationRepository::new();
    applications.expect_named().returning(|| Ok(Vec::new()));
    let mut deployments = MockDeploymentRepository::new();
    deployments.expect_live().returning(|| Ok(Vec::new().into()));
    let ports = RoutePorts {
        applications: Arc::new(applications),
        deployments: Arc::new(deployments),
        sites: Arc::new(MockSiteStore::new()),
        router: Arc::new(router),
    };
    let publisher = CertificatePublisher::new(
        Arc::new(certificates),
        Arc::new(a_box()),
        Arc::new(server),
        Arc::new(FixedClock::default()),
        443,
    );
    Routes::new(ports, None).with_certificates(publisher).follow_all().await.unwrap();
}
