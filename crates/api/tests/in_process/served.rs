//! The API over mocks without expectations, served to real clients.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use actix_web::{
    App, HttpServer,
    dev::ServerHandle,
    middleware::from_fn,
    rt::System,
    web::{self, Data},
};
use launchway_api::{Api, ApiOptions, Metrics};
use launchway_application::{
    EngineStatus, Homes, OutboundPorts, OwnReplica, Ports, ServiceContext, Services, Terms, WakeSignal,
    applications::ApplicationPolicy,
    installation::InstallationPorts,
    routes::{RoutePorts, Routes},
};
use launchway_domain::{
    applications::MockApplicationRepository,
    audit::MockAuditRepository,
    auth::{
        MockCredentialRepository, MockIdentityRepository, MockLoginThrottle, MockPasswordHasher, TokenHash,
    },
    certificates::{MockCertificateParser, MockCertificateRepository},
    deployments::{MockDeploymentRepository, MockSiteStore},
    diagnostics::{MockDiagnostics, MockStorageStatistics},
    extensions::{MockExecutionRepository, MockExtensionRepository, MockPortCheck},
    idempotency::MockIdempotencyStore,
    jobs::MockQueueStatistics,
    logs::MockLogReader,
    notifications::{MockMailer, MockNotificationRepository, MockOutboundGuard, MockWebhookSender},
    organizations::{MockDeployKeyRepository, MockKeyMaker, MockOrganizationRepository},
    previews::MockPreviewRepository,
    quotas::MockUsageRepository,
    routes::MockTrafficRouter,
    secret::MockSecretBox,
    sources::{MockChangeDetector, MockSourceRepositories},
    store::MockUnitOfWork,
    users::MockUserRepository,
    webhooks::MockWebhookRepository,
};
use launchway_testkit::{CountingEntropy, CountingIds, FixedClock, client::Client};

/// A server in this process.
pub(crate) struct Served {
    pub(crate) api: Data<Api>,
    address: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves every route of the API, and one more that panics.
    pub(crate) fn with_a_route_that_panics() -> Self {
        let (sender, channel) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            System::new().block_on(async move {
                let api = Data::new(api());
                let app_data = api.clone();
                let server = HttpServer::new(move || {
                    App::new()
                        .app_data(app_data.clone())
                        .wrap(from_fn(launchway_api::middleware))
                        .route("/panics", web::get().to(panics))
                        .configure(launchway_api::configure)
                })
                .workers(1)
                .disable_signals()
                .bind(("127.0.0.1", 0))
                .unwrap();
                let address = server.addrs()[0];
                let server = server.run();
                sender.send((api, address, server.handle())).unwrap();
                server.await.unwrap();
            });
        });
        let (api, address, handle) = channel.recv().unwrap();
        Self { api, address, handle, thread: Some(thread) }
    }

    /// Returns a client without a token.
    pub(crate) fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.address))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        System::new().block_on(self.handle.stop(false));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn panics() -> &'static str {
    panic!("the canary of the cause");
}

fn api() -> Api {
    let context = ServiceContext {
        store: Arc::new(MockUnitOfWork::new()),
        clock: Arc::new(FixedClock::default()),
        ids: Arc::new(CountingIds::default()),
        wake: WakeSignal::default(),
        engine: EngineStatus::default(),
        terms: Terms::default(),
        entropy: Arc::new(CountingEntropy::default()),
        replica: OwnReplica::default(),
        homes: Homes::default(),
    };
    let routes = RoutePorts {
        applications: Arc::new(MockApplicationRepository::new()),
        deployments: Arc::new(MockDeploymentRepository::new()),
        sites: Arc::new(MockSiteStore::new()),
        router: Arc::new(MockTrafficRouter::new()),
    };
    let services = Services::new(Ports {
        context,
        identities: Arc::new(MockIdentityRepository::new()),
        credentials: Arc::new(MockCredentialRepository::new()),
        users: Arc::new(MockUserRepository::new()),
        organizations: Arc::new(MockOrganizationRepository::new()),
        audit: Arc::new(MockAuditRepository::new()),
        applications: Arc::new(MockApplicationRepository::new()),
        changes: Arc::new(MockChangeDetector::new()),
        repositories: Arc::new(MockSourceRepositories::new()),
        has_shared_repositories: false,
        certificates: Arc::new(MockCertificateRepository::new()),
        certificate_parser: Arc::new(MockCertificateParser::new()),
        deployments: Arc::new(MockDeploymentRepository::new()),
        extensions: Arc::new(MockExtensionRepository::new()),
        executions: Arc::new(MockExecutionRepository::new()),
        logs: Arc::new(MockLogReader::new()),
        nodes: None,
        statistics: None,
        installation: InstallationPorts {
            queue: Arc::new(MockQueueStatistics::new()),
            storage: Arc::new(MockStorageStatistics::new()),
            diagnostics: Arc::new(MockDiagnostics::new()),
        },
        usage: Arc::new(MockUsageRepository::new()),
        port_check: Arc::new(MockPortCheck::new()),
        idempotency: Arc::new(MockIdempotencyStore::new()),
        deploy_keys: Arc::new(MockDeployKeyRepository::new()),
        webhooks: Arc::new(MockWebhookRepository::new()),
        previews: Arc::new(MockPreviewRepository::new()),
        notifications: Arc::new(MockNotificationRepository::new()),
        outbound: OutboundPorts {
            guard: Arc::new(MockOutboundGuard::new()),
            webhooks: Arc::new(MockWebhookSender::new()),
            mailer: Arc::new(MockMailer::new()),
            public_url: None,
        },
        key_maker: Arc::new(MockKeyMaker::new()),
        policy: ApplicationPolicy::default(),
        routes: Arc::new(Routes::new(routes, None)),
        throttle: Arc::new(MockLoginThrottle::new()),
        hasher: Arc::new(MockPasswordHasher::new()),
        secrets: Arc::new(MockSecretBox::new()),
        setup_token: TokenHash::of("lwi_setup"),
    });
    let options = ApiOptions {
        trusted_proxies: Vec::new(),
        public_origin: None,
        body_limit: 1024,
        body_timeout: Duration::from_secs(1),
    };
    Api::new(services, options, Metrics::default())
}
