//! All services, assembled over a set of ports.

use std::sync::Arc;

use launchway_domain::{
    applications::ApplicationRepository,
    audit::AuditRepository,
    auth::{CredentialRepository, IdentityRepository, LoginThrottle, PasswordHasher, TokenHash},
    certificates::{CertificateParser, CertificateRepository},
    deployments::DeploymentRepository,
    extensions::{ExecutionRepository, ExtensionRepository, PortCheck},
    idempotency::IdempotencyStore,
    logs::LogReader,
    metrics::ContainerStatistics,
    nodes::NodeInventory,
    notifications::{Mailer, NotificationRepository, OutboundGuard, WebhookSender},
    organizations::{DeployKeyRepository, KeyMaker, OrganizationRepository},
    previews::PreviewRepository,
    quotas::UsageRepository,
    secret::SecretBox,
    sources::{ChangeDetector, SourceRepositories},
    users::UserRepository,
    webhooks::WebhookRepository,
};

use crate::{
    EngineStatus, OwnReplica, ServiceContext,
    applications::{ApplicationPolicy, ApplicationPorts, Applications},
    audit::AuditLog,
    auth::{ApiTokens, Authentication, LoginAttempts, Logins, Passwords, Registration, TwoFactorLogin},
    certificates::{CertificatePorts, Certificates},
    deployments::Deployments,
    extensions::{Catalog, ExtensionPorts, Extensions},
    idempotency::Idempotency,
    installation::{Installation, InstallationPorts},
    logs::{LogStreams, Logs},
    metrics::Metrics,
    nodes::Nodes,
    notifications::{NotificationPorts, Notifications, Notifier, NotifierPorts},
    organizations::{DeployKeys, Organizations},
    previews::{PreviewPorts, Previews},
    quotas::QuotaUsage,
    routes::Routes,
    runtime_logs::LogFreshness,
    snapshots::{SnapshotPorts, Snapshots},
    sources::{SourcePorts, Sources},
    users::Users,
    webhooks::{PathWatcher, PathWatcherPorts, WebhookPorts, Webhooks},
};

/// All ports of the services.
pub struct Ports {
    /// The context of every use case.
    pub context: ServiceContext,
    /// Authenticates tokens.
    pub identities: Arc<dyn IdentityRepository>,
    /// Reads the credentials of logins.
    pub credentials: Arc<dyn CredentialRepository>,
    /// Reads users.
    pub users: Arc<dyn UserRepository>,
    /// Reads organizations and their members.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Reads the usage of quotas.
    pub usage: Arc<dyn UsageRepository>,
    /// Decides about host ports of extensions before a run exists.
    pub port_check: Arc<dyn PortCheck>,
    /// Reads the audit log.
    pub audit: Arc<dyn AuditRepository>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Compares commits.
    pub changes: Arc<dyn ChangeDetector>,
    /// Stores source that users push or upload.
    pub repositories: Arc<dyn SourceRepositories>,
    /// True if all servers of the installation have the same repositories.
    pub has_shared_repositories: bool,
    /// Reads certificates.
    pub certificates: Arc<dyn CertificateRepository>,
    /// Checks uploaded certificates.
    pub certificate_parser: Arc<dyn CertificateParser>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Reads extensions.
    pub extensions: Arc<dyn ExtensionRepository>,
    /// Reads runs of extensions.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Reads logs.
    pub logs: Arc<dyn LogReader>,
    /// Lists the nodes of the cluster; `None` if there is one machine.
    pub nodes: Option<Arc<dyn NodeInventory>>,
    /// Reads what containers use; `None` if the engine does not report it.
    pub statistics: Option<Arc<dyn ContainerStatistics>>,
    /// Reads the state of the installation.
    pub installation: InstallationPorts,
    /// Stores processed requests by their idempotency keys.
    pub idempotency: Arc<dyn IdempotencyStore>,
    /// Reads the deploy keys of private repositories.
    pub deploy_keys: Arc<dyn DeployKeyRepository>,
    /// Reads the webhook secrets of repositories.
    pub webhooks: Arc<dyn WebhookRepository>,
    /// Reads previews and their settings.
    pub previews: Arc<dyn PreviewRepository>,
    /// Reads notification channels and deliveries.
    pub notifications: Arc<dyn NotificationRepository>,
    /// The ports for egress.
    pub outbound: OutboundPorts,
    /// Creates SSH keys.
    pub key_maker: Arc<dyn KeyMaker>,
    /// The rules of the installation for applications.
    pub policy: ApplicationPolicy,
    /// Routes traffic.
    pub routes: Arc<Routes>,
    /// Limits login attempts.
    pub throttle: Arc<dyn LoginThrottle>,
    /// Hashes passwords.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Encrypts secrets that have to be read again.
    pub secrets: Arc<dyn SecretBox>,
    /// The hash of the setup token, which the first administrator needs for a remote registration.
    pub setup_token: TokenHash,
}

/// The ports for egress: connections to servers outside of the installation.
pub struct OutboundPorts {
    /// Checks that an address may be connected to.
    pub guard: Arc<dyn OutboundGuard>,
    /// Sends messages over HTTP.
    pub webhooks: Arc<dyn WebhookSender>,
    /// Sends mail.
    pub mailer: Arc<dyn Mailer>,
    /// The public URL of this installation, if it is known.
    pub public_url: Option<String>,
}

/// Every use case, by feature.
pub struct Services {
    /// Authenticates callers by their tokens.
    pub authentication: Authentication,
    /// Registers the first administrator.
    pub registration: Registration,
    /// Opens and ends sessions.
    pub logins: Logins,
    /// Sets, changes and resets passwords.
    pub passwords: Passwords,
    /// Creates, lists and revokes API tokens.
    pub api_tokens: ApiTokens,
    /// Enables and disables two-factor login.
    pub two_factor: TwoFactorLogin,
    /// Reads users, and updates their names and settings.
    pub users: Users,
    /// Creates, reads, updates and deletes organizations, and manages their members.
    pub organizations: Organizations,
    /// Reads and verifies the audit log.
    pub audit: AuditLog,
    /// Reads and rotates the deploy keys of private repositories.
    pub deploy_keys: DeployKeys,
    /// Creates, reads, updates and deletes applications, and starts and stops them.
    pub applications: Arc<Applications>,
    /// Receives pushes and uploads.
    pub sources: Arc<Sources>,
    /// Reads, uploads and deletes certificates.
    pub certificates: Certificates,
    /// Requests, reads and cancels deployments.
    pub deployments: Deployments,
    /// Reads, forks, runs and removes extensions.
    pub extensions: Extensions,
    /// Loads the definitions that are part of Launchway.
    pub catalog: Catalog,
    /// Reads and follows logs.
    pub logs: Logs,
    /// Reads what live pages show, once for all viewers.
    pub snapshots: Snapshots,
    /// Opens log streams within the quotas.
    pub streams: Arc<LogStreams>,
    /// Reads the quota usage of organizations.
    pub quotas: QuotaUsage,
    /// Returns the results of repeated requests.
    pub idempotency: Idempotency,
    /// Receives webhooks of code hosts, and reads and rotates their secrets.
    pub webhooks: Webhooks,
    /// Changes preview settings, and makes, updates and removes previews.
    pub previews: Arc<Previews>,
    /// Configures channels, and reads deliveries.
    pub notifications: Notifications,
    /// Sends messages, for the background sender.
    pub notifier: Arc<Notifier>,
    /// The availability of the engine.
    pub engine: EngineStatus,
    /// Reads the nodes.
    pub nodes: Nodes,
    /// Keeps the recent metrics of applications.
    pub metrics: Metrics,
    /// Reads the queue and the space of the installation, and checks it.
    pub installation: Installation,
    /// This server as one of the replicas.
    pub replica: OwnReplica,
    /// The age of the collected output of each application.
    pub log_freshness: LogFreshness,
}

impl Services {
    /// Assembles the services.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        let Ports {
            context,
            identities,
            credentials,
            users,
            organizations,
            usage,
            port_check,
            audit,
            applications,
            changes,
            repositories,
            has_shared_repositories,
            certificates,
            certificate_parser,
            deployments,
            extensions,
            executions,
            logs,
            nodes,
            statistics,
            installation,
            idempotency,
            deploy_keys,
            webhooks,
            previews,
            notifications,
            outbound,
            key_maker,
            policy,
            routes,
            throttle,
            hasher,
            secrets,
            setup_token,
        } = ports;
        let login_attempts = LoginAttempts::new(throttle, context.clone());
        let (kept_versions, quotas) = (policy.kept_versions, policy.quotas);
        let streams = Arc::new(LogStreams::new(quotas));
        let extension_ports = ExtensionPorts {
            extensions: extensions.clone(),
            executions: executions.clone(),
            secrets: secrets.clone(),
            public_host: policy.public_host.clone(),
            quotas,
            port_check,
        };
        let courier_ports = NotifierPorts {
            organizations: organizations.clone(),
            logs: logs.clone(),
            executions: executions.clone(),
            secrets: secrets.clone(),
            webhooks: outbound.webhooks.clone(),
            mailer: outbound.mailer,
            clock: context.clock.clone(),
        };
        let notifier = Arc::new(Notifier::new(courier_ports, outbound.public_url));
        let notification_ports = NotificationPorts {
            notifications,
            secrets: secrets.clone(),
            guard: outbound.guard,
            notifier: notifier.clone(),
        };
        let log_freshness = LogFreshness::default();
        let certificate_ports = CertificatePorts {
            applications: applications.clone(),
            certificates,
            parser: certificate_parser,
            secrets: secrets.clone(),
            routes: routes.clone(),
        };
        let snapshots = Snapshots::new(SnapshotPorts {
            applications: applications.clone(),
            deployments: deployments.clone(),
            routes: routes.clone(),
        });
        let application_ports =
            ApplicationPorts { applications: applications.clone(), routes: routes.clone() };
        let created = Applications::new(application_ports, secrets.clone(), policy, context.clone());
        let created = Arc::new(created.with_previews(previews.clone()));
        let watcher = PathWatcher::new(PathWatcherPorts {
            deployments: deployments.clone(),
            deploy_keys: deploy_keys.clone(),
            secrets: secrets.clone(),
            changes,
        });
        let preview_ports = PreviewPorts {
            previews,
            applications: applications.clone(),
            webhooks: webhooks.clone(),
            secrets: secrets.clone(),
            watcher: watcher.clone(),
            routes,
            sender: outbound.webhooks,
        };
        let previews = Arc::new(Previews::new(preview_ports, quotas, context.clone()));
        let source_ports = SourcePorts {
            applications: applications.clone(),
            deployments: deployments.clone(),
            repositories,
            watcher: watcher.clone(),
            is_shared: has_shared_repositories,
        };
        Self {
            sources: Arc::new(Sources::new(source_ports, created.clone(), quotas, context.clone())),
            applications: created,
            engine: context.engine.clone(),
            replica: context.replica.clone(),
            nodes: Nodes::new(nodes),
            metrics: Metrics::new(statistics),
            installation: Installation::new(installation, context.clock.clone()),
            snapshots,
            log_freshness: log_freshness.clone(),
            authentication: Authentication::new(identities, context.clone()),
            registration: Registration::new(
                credentials.clone(),
                hasher.clone(),
                setup_token,
                context.clone(),
            ),
            logins: Logins::new(
                credentials.clone(),
                users.clone(),
                hasher.clone(),
                secrets.clone(),
                login_attempts.clone(),
                context.clone(),
            ),
            passwords: Passwords::new(
                credentials.clone(),
                users.clone(),
                hasher,
                login_attempts.clone(),
                context.clone(),
            ),
            api_tokens: ApiTokens::new(credentials.clone(), context.clone()),
            two_factor: TwoFactorLogin::new(credentials, secrets.clone(), login_attempts, context.clone()),
            users: Users::new(users, context.clone()),
            organizations: Organizations::new(organizations, context.clone()),
            deploy_keys: DeployKeys::new(deploy_keys, key_maker, secrets.clone(), context.clone()),
            certificates: Certificates::new(certificate_ports, context.clone()),
            deployments: Deployments::new(
                applications.clone(),
                deployments.clone(),
                kept_versions,
                context.clone(),
            )
            .within(quotas),
            extensions: Extensions::new(extension_ports, context.clone()),
            catalog: Catalog::new(extensions, context.clone()),
            webhooks: Webhooks::new(
                WebhookPorts {
                    webhooks,
                    applications: applications.clone(),
                    deployments: deployments.clone(),
                    secrets: secrets.clone(),
                    watcher,
                    previews: previews.clone(),
                },
                context.clone(),
            ),
            previews,
            notifications: Notifications::new(notification_ports, context.clone()),
            notifier,
            quotas: QuotaUsage::new(usage, Arc::clone(&streams), quotas, context.clock.clone()),
            streams,
            logs: Logs::new(applications, deployments, logs, log_freshness),
            idempotency: Idempotency::new(idempotency, secrets, context),
            audit: AuditLog::new(audit),
        }
    }
}
