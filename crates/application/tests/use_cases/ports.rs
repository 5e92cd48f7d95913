//! Every port as a mock.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_application::{
    EngineStatus, Homes, OutboundPorts, OwnReplica, Ports, ServiceContext, Services, Terms, WakeSignal,
    applications::ApplicationPolicy,
    auth::LoginAttempts,
    installation::InstallationPorts,
    routes::{RoutePorts, Routes},
};
use launchway_domain::{
    applications::{ApplicationRepository, MockApplicationRepository},
    audit::MockAuditRepository,
    auth::{
        Admission, LoginAttempt, MockCredentialRepository, MockIdentityRepository, MockLoginThrottle,
        MockPasswordHasher, TokenHash,
    },
    certificates::{MockCertificateParser, MockCertificateRepository},
    clock::{Clock, Timestamp},
    deployments::{DeploymentRepository, MockDeploymentRepository, MockSiteStore},
    diagnostics::{MockDiagnostics, MockStorageStatistics},
    extensions::{
        Action, ExtensionKey, ExtensionRepository, MockExecutionRepository, MockExtensionRepository,
        PortCheck, PortError, PortRefusal, Values,
    },
    idempotency::MockIdempotencyStore,
    ids::{LoginAttemptId, OrganizationId},
    jobs::MockQueueStatistics,
    logs::MockLogReader,
    notifications::{MockMailer, MockNotificationRepository, MockOutboundGuard, MockWebhookSender},
    organizations::{MockDeployKeyRepository, MockKeyMaker, MockOrganizationRepository},
    previews::MockPreviewRepository,
    quotas::MockUsageRepository,
    routes::MockTrafficRouter,
    secret::MockSecretBox,
    sources::{MockChangeDetector, MockSourceRepositories},
    store::{MockUnitOfWork, StoreError, Write, are_audited},
    users::{EmailAddress, MockUserRepository},
    webhooks::MockWebhookRepository,
};
use launchway_testkit::{CountingEntropy, CountingIds, FixedClock, builders::a_client};
use mockall::predicate::eq;

use crate::sealed_values::a_box;

/// The setup token of the installation.
pub(crate) const SETUP_TOKEN: &str = "lwi_setup";

/// Decides the same about all host ports.
struct DecidedPorts(Option<PortRefusal>);

#[async_trait]
impl PortCheck for DecidedPorts {
    async fn check(
        &self,
        _: OrganizationId,
        _: &ExtensionKey,
        _: &[Action],
        _: &Values,
    ) -> Result<(), PortError> {
        self.0.map_or(Ok(()), |refusal| Err(refusal.into()))
    }
}

/// Mocks of all ports; a call without an expectation fails the test.
#[derive(Default)]
pub(crate) struct MockedPorts {
    /// Private, so that every expected commit is checked for an audit entry.
    store: MockUnitOfWork,
    pub(crate) identities: MockIdentityRepository,
    pub(crate) credentials: MockCredentialRepository,
    pub(crate) users: MockUserRepository,
    pub(crate) organizations: MockOrganizationRepository,
    pub(crate) usage: MockUsageRepository,
    /// The refusal of host ports; none is refused without.
    pub(crate) port_refusal: Option<PortRefusal>,
    pub(crate) audit: MockAuditRepository,
    pub(crate) applications: MockApplicationRepository,
    pub(crate) changes: MockChangeDetector,
    pub(crate) repositories: MockSourceRepositories,
    pub(crate) deployments: MockDeploymentRepository,
    pub(crate) extensions: MockExtensionRepository,
    pub(crate) executions: MockExecutionRepository,
    pub(crate) logs: MockLogReader,
    pub(crate) idempotency: MockIdempotencyStore,
    pub(crate) certificates: MockCertificateRepository,
    pub(crate) certificate_parser: MockCertificateParser,
    pub(crate) deploy_keys: MockDeployKeyRepository,
    pub(crate) webhooks: MockWebhookRepository,
    pub(crate) previews: MockPreviewRepository,
    pub(crate) notifications: MockNotificationRepository,
    pub(crate) guard: MockOutboundGuard,
    pub(crate) sender: MockWebhookSender,
    pub(crate) mailer: MockMailer,
    pub(crate) key_maker: MockKeyMaker,
    pub(crate) policy: ApplicationPolicy,
    pub(crate) router: MockTrafficRouter,
    pub(crate) throttle: MockLoginThrottle,
    pub(crate) hasher: MockPasswordHasher,
    pub(crate) secrets: MockSecretBox,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) wake: WakeSignal,
}

impl MockedPorts {
    /// Returns ports with a secret box that seals and opens everything.
    pub(crate) fn with_a_box() -> Self {
        Self { secrets: a_box(), ..Self::default() }
    }

    /// Returns the time at which all use cases run.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Expects one commit of exactly `writes`.
    pub(crate) fn expect_commit(&mut self, writes: Vec<Write>) {
        self.expect_commit_and(move |written| {
            assert_eq!(written, writes);
            Ok(())
        });
    }

    /// Expects one commit of any writes.
    pub(crate) fn expect_any_commit(&mut self) {
        self.expect_commit_and(|_| Ok(()));
    }

    /// Expects one commit, which is passed to `look`.
    pub(crate) fn expect_commit_seen_by(&mut self, look: impl FnOnce(&[Write]) + Send + 'static) {
        self.expect_commit_and(move |written| {
            look(&written);
            Ok(())
        });
    }

    /// Expects one commit of any writes, which fails.
    pub(crate) fn expect_failing_commit(&mut self, error: StoreError) {
        self.expect_commit_and(|_| Err(error));
    }

    /// Expects one commit with the result of `outcome`. It fails if the audit log gets no entry.
    pub(crate) fn expect_commit_and<F>(&mut self, outcome: F)
    where
        F: FnOnce(Vec<Write>) -> Result<(), StoreError> + Send + 'static,
    {
        self.store.expect_commit().once().return_once(|writes| {
            assert!(are_audited(&writes), "no audit entry for {writes:?}");
            outcome(writes)
        });
    }

    /// Expects that an attempt of [`a_client`] at `email` with the first id is admitted.
    pub(crate) fn expect_admission(&mut self, email: &EmailAddress) {
        self.expect_attempt(email, Admission::Granted);
    }

    /// Expects that an attempt is rejected until `until`.
    pub(crate) fn expect_throttling(&mut self, email: &EmailAddress, until: Timestamp) {
        self.expect_attempt(email, Admission::Refused { until });
    }

    fn expect_attempt(&mut self, email: &EmailAddress, admission: Admission) {
        let attempt = LoginAttempt::new(attempt_id(), email, a_client().address, self.now());
        self.throttle.expect_admit().with(eq(attempt)).once().returning(move |_| Ok(admission));
    }

    /// Expects that the attempt is taken back.
    pub(crate) fn expect_forgiveness(&mut self) {
        self.throttle.expect_forgive().with(eq(attempt_id())).once().returning(|_| Ok(()));
    }

    /// Expects that taking the attempt back fails.
    pub(crate) fn expect_failing_forgiveness(&mut self) {
        self.throttle.expect_forgive().with(eq(attempt_id())).once().returning(|_| Err(unavailable()));
    }

    /// Returns the services over these ports.
    pub(crate) fn services(self) -> Services {
        let applications: Arc<dyn ApplicationRepository> = Arc::new(self.applications);
        let deployments: Arc<dyn DeploymentRepository> = Arc::new(self.deployments);
        let extensions: Arc<dyn ExtensionRepository> = Arc::new(self.extensions);
        let routes = RoutePorts {
            applications: Arc::clone(&applications),
            deployments: Arc::clone(&deployments),
            sites: Arc::new(MockSiteStore::new()),
            router: Arc::new(self.router),
        };
        Services::new(Ports {
            context: context(self.store, self.clock, self.wake),
            identities: Arc::new(self.identities),
            credentials: Arc::new(self.credentials),
            users: Arc::new(self.users),
            organizations: Arc::new(self.organizations),
            usage: Arc::new(self.usage),
            port_check: Arc::new(DecidedPorts(self.port_refusal)),
            audit: Arc::new(self.audit),
            applications,
            changes: Arc::new(self.changes),
            repositories: Arc::new(self.repositories),
            has_shared_repositories: false,
            certificates: Arc::new(self.certificates),
            certificate_parser: Arc::new(self.certificate_parser),
            deployments,
            extensions: Arc::clone(&extensions),
            executions: Arc::new(self.executions),
            logs: Arc::new(self.logs),
            nodes: None,
            statistics: None,
            installation: InstallationPorts {
                queue: Arc::new(MockQueueStatistics::new()),
                storage: Arc::new(MockStorageStatistics::new()),
                diagnostics: Arc::new(MockDiagnostics::new()),
            },
            idempotency: Arc::new(self.idempotency),
            deploy_keys: Arc::new(self.deploy_keys),
            webhooks: Arc::new(self.webhooks),
            previews: Arc::new(self.previews),
            notifications: Arc::new(self.notifications),
            outbound: OutboundPorts {
                guard: Arc::new(self.guard),
                webhooks: Arc::new(self.sender),
                mailer: Arc::new(self.mailer),
                public_url: Some("https://launchway.example.com".to_owned()),
            },
            key_maker: Arc::new(self.key_maker),
            policy: self.policy,
            routes: Arc::new(Routes::new(routes, None).with_extensions(Arc::clone(&extensions))),
            throttle: Arc::new(self.throttle),
            hasher: Arc::new(self.hasher),
            secrets: Arc::new(self.secrets),
            setup_token: TokenHash::of(SETUP_TOKEN),
        })
    }

    /// Returns the service that only other services use.
    pub(crate) fn login_attempts(self) -> LoginAttempts {
        LoginAttempts::new(Arc::new(self.throttle), context(self.store, self.clock, self.wake))
    }
}

pub(crate) fn context(store: MockUnitOfWork, clock: Arc<FixedClock>, wake: WakeSignal) -> ServiceContext {
    ServiceContext {
        store: Arc::new(store),
        clock,
        ids: Arc::new(CountingIds::default()),
        wake,
        engine: EngineStatus::default(),
        terms: Terms::default(),
        entropy: Arc::new(CountingEntropy::default()),
        replica: OwnReplica::default(),
        homes: Homes::default(),
    }
}

/// Returns the id of the attempt that a use case records first.
pub(crate) fn attempt_id() -> LoginAttemptId {
    CountingIds::nth(1).into()
}

/// Returns the error of an unreachable database.
pub(crate) fn unavailable() -> StoreError {
    StoreError::Unavailable("connection refused".into())
}
