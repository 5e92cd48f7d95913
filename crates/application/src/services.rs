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
    secret::{Entropy, SecretBox},
    store::{UnitOfWork, Write},
    users::UserRepository,
    webhooks::WebhookRepository,
};
use uuid::Uuid;

use crate::{
    Bell,
    applications::{ApplicationPolicy, ApplicationPorts, Applications},
    audit::AuditTrail,
    auth::{ApiTokens, Authentication, Guesses, Logins, Passwords, Registration, TwoFactorLogin},
    deployments::Deployments,
    extensions::{Catalog, ExtensionPorts, Extensions},
    idempotency::Idempotency,
    logs::Logs,
    notifications::{Courier, CourierPorts, NotificationPorts, Notifications},
    organizations::{DeployKeys, Organizations},
    routes::Routes,
    users::Users,
    webhooks::{WebhookPorts, Webhooks},
};

/// What nearly every use case works with.
#[derive(Clone)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Tools {
    pub store: Arc<dyn UnitOfWork>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub entropy: Arc<dyn Entropy>,
    pub bell: Bell,
}

impl Tools {
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
#[expect(missing_docs, reason = "the types say it")]
pub struct Ports {
    pub tools: Tools,
    pub identities: Arc<dyn IdentityRepository>,
    pub credentials: Arc<dyn CredentialRepository>,
    pub users: Arc<dyn UserRepository>,
    pub organizations: Arc<dyn OrganizationRepository>,
    pub audit: Arc<dyn AuditRepository>,
    pub applications: Arc<dyn ApplicationRepository>,
    pub deployments: Arc<dyn DeploymentRepository>,
    pub extensions: Arc<dyn ExtensionRepository>,
    pub executions: Arc<dyn ExecutionRepository>,
    pub logs: Arc<dyn LogReader>,
    pub idempotency: Arc<dyn IdempotencyStore>,
    pub deploy_keys: Arc<dyn DeployKeyRepository>,
    pub webhooks: Arc<dyn WebhookRepository>,
    pub notifications: Arc<dyn NotificationRepository>,
    pub outside: OutsidePorts,
    pub key_maker: Arc<dyn KeyMaker>,
    pub policy: ApplicationPolicy,
    pub routes: Arc<Routes>,
    pub throttle: Arc<dyn LoginThrottle>,
    pub hasher: Arc<dyn PasswordHasher>,
    pub secrets: Arc<dyn SecretBox>,
    /// What recognises the token that the first administrator needs from elsewhere.
    pub setup_token: TokenHash,
}

/// The ways out of the installation.
#[expect(missing_docs, reason = "the types say it")]
pub struct OutsidePorts {
    pub guard: Arc<dyn OutboundGuard>,
    pub webhooks: Arc<dyn WebhookSender>,
    pub mailer: Arc<dyn Mailer>,
    /// Where people find this installation, if that is known.
    pub public_url: Option<String>,
}

/// Every use case, by feature.
#[expect(missing_docs, reason = "the types say it")]
pub struct Services {
    pub authentication: Authentication,
    pub registration: Registration,
    pub logins: Logins,
    pub passwords: Passwords,
    pub api_tokens: ApiTokens,
    pub two_factor: TwoFactorLogin,
    pub users: Users,
    pub organizations: Organizations,
    pub audit: AuditTrail,
    pub deploy_keys: DeployKeys,
    pub applications: Applications,
    pub deployments: Deployments,
    pub extensions: Extensions,
    pub catalog: Catalog,
    pub logs: Logs,
    pub idempotency: Idempotency,
    pub webhooks: Webhooks,
    pub notifications: Notifications,
    /// Who brings messages, for who does that in the background.
    pub courier: Arc<Courier>,
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
        let kept_versions = policy.kept_versions;
        let extension_ports = ExtensionPorts {
            extensions: extensions.clone(),
            executions: executions.clone(),
            secrets: secrets.clone(),
            public_host: policy.public_host.clone(),
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
        Self {
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
                tools.clone(),
            ),
            deployments: Deployments::new(
                applications.clone(),
                deployments.clone(),
                kept_versions,
                tools.clone(),
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
            logs: Logs::new(applications, deployments, logs),
            idempotency: Idempotency::new(idempotency, secrets, tools),
            audit: AuditTrail::new(audit),
        }
    }
}
