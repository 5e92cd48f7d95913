//! All services, put together over a set of ports.

use std::sync::Arc;

use launchway_domain::{
    applications::ApplicationRepository,
    audit::{AuditRepository, Author, Entry, Event, Write as AuditWrite},
    auth::{CredentialRepository, IdentityRepository, LoginThrottle, PasswordHasher, TokenHash},
    clock::Clock,
    deployments::DeploymentRepository,
    extensions::{ExecutionRepository, ExtensionRepository},
    idempotency::{IdempotencyKey, IdempotencyStore, Write as IdempotencyWrite},
    ids::Ids,
    logs::LogReader,
    notifications::{
        Event as Announced, EventKind, Mailer, NotificationRepository, OutboundGuard, WebhookSender,
    },
    organizations::{DeployKeyRepository, KeyMaker, OrganizationRepository, Scope},
    quotas::UsageRepository,
    secret::{Entropy, SecretBox},
    store::{UnitOfWork, Write},
    users::UserRepository,
    webhooks::WebhookRepository,
};
use uuid::Uuid;

use crate::{
    Bell, EngineStatus,
    applications::{ApplicationPolicy, ApplicationPorts, Applications},
    audit::AuditTrail,
    auth::{ApiTokens, Authentication, Guesses, Logins, Passwords, Registration, TwoFactorLogin},
    deployments::Deployments,
    extensions::{Catalog, ExtensionPorts, Extensions},
    idempotency::Idempotency,
    logs::{LogStreams, Logs},
    notifications::{Courier, CourierPorts, NotificationPorts, Notifications},
    organizations::{DeployKeys, Organizations},
    quotas::QuotaUsage,
    routes::Routes,
    runtime_logs::LogFreshness,
    users::Users,
    webhooks::{WebhookPorts, Webhooks},
};

/// What every use case works with.
#[derive(Clone)]
pub struct Basics {
    /// Makes changes durable.
    pub store: Arc<dyn UnitOfWork>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids for new records.
    pub ids: Arc<dyn Ids>,
    /// Wakes who waits for work.
    pub bell: Bell,
    /// True if the engine answers.
    pub engine: EngineStatus,
}

/// The [`Basics`], and chance for use cases that give out secrets.
#[derive(Clone)]
pub struct Tools {
    /// What every use case works with.
    pub basics: Basics,
    /// Gives what nobody can guess.
    pub entropy: Arc<dyn Entropy>,
}

impl std::ops::Deref for Tools {
    type Target = Basics;

    fn deref(&self) -> &Basics {
        &self.basics
    }
}

impl Basics {
    /// The write that says that a request was carried out, and made `resource`; none without a key.
    /// It comes first in its unit, so that of two twins the second one learns that it is one.
    pub(crate) fn claim(&self, key: Option<IdempotencyKey>, resource: Uuid) -> Option<Write> {
        let at = self.clock.now();
        let claim =
            |key| IdempotencyWrite::Claim { key, resource, since: at - IdempotencyKey::KEPT, at }.into();
        key.map(claim)
    }

    /// Something that happened now in an organization, and that people want to be told.
    pub(crate) fn event(&self, scope: Scope, kind: EventKind) -> Announced {
        Announced::new(self.ids.next().into(), scope.id(), kind, self.clock.now())
    }

    /// The write that tells the audit trail what `author` does.
    pub(crate) fn record(&self, author: Author, event: Event) -> Write {
        AuditWrite::Append(Entry::new(self.ids.next().into(), author, event, self.clock.now())).into()
    }
}

/// Everything that the services need from outside.
pub struct Ports {
    /// What use cases work with.
    pub tools: Tools,
    /// Recognises tokens.
    pub identities: Arc<dyn IdentityRepository>,
    /// What logins are checked against.
    pub credentials: Arc<dyn CredentialRepository>,
    /// Reads users.
    pub users: Arc<dyn UserRepository>,
    /// Reads organizations and their members.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Reads how much of each quota is in use.
    pub usage: Arc<dyn UsageRepository>,
    /// Reads the audit trail.
    pub audit: Arc<dyn AuditRepository>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Reads extensions.
    pub extensions: Arc<dyn ExtensionRepository>,
    /// Reads runs of extensions.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Reads logs.
    pub logs: Arc<dyn LogReader>,
    /// Remembers requests that are carried out once.
    pub idempotency: Arc<dyn IdempotencyStore>,
    /// Reads the keys that private repositories are fetched with.
    pub deploy_keys: Arc<dyn DeployKeyRepository>,
    /// Reads the secrets of repositories.
    pub webhooks: Arc<dyn WebhookRepository>,
    /// Reads where messages go.
    pub notifications: Arc<dyn NotificationRepository>,
    /// The ways out of the installation.
    pub outside: OutsidePorts,
    /// Makes ssh keys.
    pub key_maker: Arc<dyn KeyMaker>,
    /// Which addresses and names applications may use.
    pub policy: ApplicationPolicy,
    /// Leads traffic.
    pub routes: Arc<Routes>,
    /// Slows down who guesses passwords.
    pub throttle: Arc<dyn LoginThrottle>,
    /// Hashes passwords.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Seals what has to be read again later.
    pub secrets: Arc<dyn SecretBox>,
    /// What recognises the token that the first administrator needs from elsewhere.
    pub setup_token: TokenHash,
}

/// The ways out of the installation.
pub struct OutsidePorts {
    /// Tells which addresses may be connected to.
    pub guard: Arc<dyn OutboundGuard>,
    /// Sends messages by HTTP.
    pub webhooks: Arc<dyn WebhookSender>,
    /// Sends mail.
    pub mailer: Arc<dyn Mailer>,
    /// Where people find this installation, if that is known.
    pub public_url: Option<String>,
}

/// Every use case, by feature.
pub struct Services {
    /// Tells who holds a token.
    pub authentication: Authentication,
    /// Makes the first administrator.
    pub registration: Registration,
    /// Opens and ends sessions.
    pub logins: Logins,
    /// Sets, changes and resets passwords.
    pub passwords: Passwords,
    /// Makes, lists and revokes tokens for programs.
    pub api_tokens: ApiTokens,
    /// Sets up and removes the second factor of a login.
    pub two_factor: TwoFactorLogin,
    /// Shows users, and changes their names and settings.
    pub users: Users,
    /// Makes, shows, changes and deletes organizations, and their members.
    pub organizations: Organizations,
    /// Shows the audit trail, and checks it.
    pub audit: AuditTrail,
    /// Shows and replaces the key for private repositories.
    pub deploy_keys: DeployKeys,
    /// Makes, shows, changes and deletes applications, and starts and stops them.
    pub applications: Applications,
    /// Asks for deployments, shows them and cancels them.
    pub deployments: Deployments,
    /// Shows, forks, runs and removes extensions.
    pub extensions: Extensions,
    /// Takes in the definitions that come along.
    pub catalog: Catalog,
    /// Shows logs, also as they are written.
    pub logs: Logs,
    /// Opens streams of logs within the quotas.
    pub streams: Arc<LogStreams>,
    /// Shows what organizations use of their quotas.
    pub quotas: QuotaUsage,
    /// Tells what came of a request that was carried out already.
    pub idempotency: Idempotency,
    /// Takes what code hosts send, and shows and replaces secrets.
    pub webhooks: Webhooks,
    /// Says where messages go, and what became of them.
    pub notifications: Notifications,
    /// Who brings messages, for who does that in the background.
    pub courier: Arc<Courier>,
    /// True if the engine answers.
    pub engine: EngineStatus,
    /// The age of what was collected of each application's output.
    pub log_freshness: LogFreshness,
}

impl Services {
    /// Puts the services together.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        let Ports {
            tools,
            identities,
            credentials,
            users,
            organizations,
            usage,
            audit,
            applications,
            deployments,
            extensions,
            executions,
            logs,
            idempotency,
            deploy_keys,
            webhooks,
            notifications,
            outside,
            key_maker,
            policy,
            routes,
            throttle,
            hasher,
            secrets,
            setup_token,
        } = ports;
        let guesses = Guesses::new(throttle, tools.clone());
        let (kept_versions, quotas) = (policy.kept_versions, policy.quotas);
        let streams = Arc::new(LogStreams::new(quotas));
        let extension_ports = ExtensionPorts {
            extensions: extensions.clone(),
            executions: executions.clone(),
            secrets: secrets.clone(),
            public_host: policy.public_host.clone(),
            quotas,
        };
        let courier_ports = CourierPorts {
            organizations: organizations.clone(),
            logs: logs.clone(),
            executions: executions.clone(),
            secrets: secrets.clone(),
            webhooks: outside.webhooks,
            mailer: outside.mailer,
            clock: tools.clock.clone(),
        };
        let courier = Arc::new(Courier::new(courier_ports, outside.public_url));
        let notification_ports = NotificationPorts {
            notifications,
            secrets: secrets.clone(),
            guard: outside.guard,
            courier: courier.clone(),
        };
        let log_freshness = LogFreshness::default();
        Self {
            engine: tools.engine.clone(),
            log_freshness: log_freshness.clone(),
            authentication: Authentication::new(identities, tools.clone()),
            registration: Registration::new(credentials.clone(), hasher.clone(), setup_token, tools.clone()),
            logins: Logins::new(
                credentials.clone(),
                users.clone(),
                hasher.clone(),
                secrets.clone(),
                guesses.clone(),
                tools.clone(),
            ),
            passwords: Passwords::new(
                credentials.clone(),
                users.clone(),
                hasher,
                guesses.clone(),
                tools.clone(),
            ),
            api_tokens: ApiTokens::new(credentials.clone(), tools.clone()),
            two_factor: TwoFactorLogin::new(credentials, secrets.clone(), guesses, tools.clone()),
            users: Users::new(users, tools.clone()),
            organizations: Organizations::new(organizations, tools.clone()),
            deploy_keys: DeployKeys::new(deploy_keys, key_maker, secrets.clone(), tools.clone()),
            applications: Applications::new(
                ApplicationPorts { applications: applications.clone(), routes },
                secrets.clone(),
                policy,
                tools.basics.clone(),
            ),
            deployments: Deployments::new(
                applications.clone(),
                deployments.clone(),
                kept_versions,
                tools.basics.clone(),
            ),
            extensions: Extensions::new(extension_ports, tools.clone()),
            catalog: Catalog::new(extensions, tools.clone()),
            webhooks: Webhooks::new(
                WebhookPorts {
                    webhooks,
                    applications: applications.clone(),
                    deployments: deployments.clone(),
                    secrets: secrets.clone(),
                },
                tools.clone(),
            ),
            notifications: Notifications::new(notification_ports, tools.clone()),
            courier,
            quotas: QuotaUsage::new(usage, Arc::clone(&streams), quotas, tools.clock.clone()),
            streams,
            logs: Logs::new(applications, deployments, logs, log_freshness),
            idempotency: Idempotency::new(idempotency, secrets, tools),
            audit: AuditTrail::new(audit),
        }
    }
}
