//! All services, put together over a set of ports.

use std::sync::Arc;

use launchway_domain::{
    audit::{AuditRepository, Author, Entry, Event, Write as AuditWrite},
    auth::{CredentialRepository, IdentityRepository, LoginThrottle, PasswordHasher, TokenHash},
    clock::Clock,
    ids::Ids,
    organizations::OrganizationRepository,
    secret::{Entropy, SecretBox},
    store::{UnitOfWork, Write},
    users::UserRepository,
};

use crate::{
    audit::AuditTrail,
    auth::{ApiTokens, Authentication, Guesses, Logins, Passwords, Registration, TwoFactorLogin},
    organizations::Organizations,
    users::Users,
};

/// What nearly every use case works with.
#[derive(Clone)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Tools {
    pub store: Arc<dyn UnitOfWork>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub entropy: Arc<dyn Entropy>,
}

impl Tools {
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
    pub throttle: Arc<dyn LoginThrottle>,
    pub hasher: Arc<dyn PasswordHasher>,
    pub secrets: Arc<dyn SecretBox>,
    /// What recognises the token that the first administrator needs from elsewhere.
    pub setup_token: TokenHash,
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
            throttle,
            hasher,
            secrets,
            setup_token,
        } = ports;
        let guesses = Guesses::new(throttle, tools.clone());
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
            two_factor: TwoFactorLogin::new(credentials, secrets, guesses, tools.clone()),
            users: Users::new(users, tools.clone()),
            organizations: Organizations::new(organizations, tools),
            audit: AuditTrail::new(audit),
        }
    }
}
