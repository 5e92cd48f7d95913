//! Units of work: the only way to change stored records.
//!
//! **Invariant:** a unit of work that changes records has an entry in the audit log, which `are_audited`
//! checks. `needs_audit` lists the few writes that need none: those that keep a login or a job going, guard
//! a change, or change nothing (decision 12).
//!
//! **Invariant:** no feature imports this module, which imports all of them; they import `store_error`.

use async_trait::async_trait;

#[cfg(feature = "certificates")]
use crate::certificates;
#[cfg(feature = "extensions")]
use crate::extensions;
#[cfg(feature = "notifications")]
use crate::notifications;
pub use crate::store_error::{Rule, StoreError, Unique};
use crate::{
    applications, audit, auth, deployments, idempotency, jobs, logs, organizations, quotas, replicas, users,
};
#[cfg(feature = "webhooks")]
use crate::{previews, webhooks};

/// A change to stored records. Each feature owns its own writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sessions, tokens, passwords, two-factor login.
    Auth(auth::Write),
    /// Users and their settings.
    User(users::Write),
    /// Organizations and memberships.
    Organization(organizations::Write),
    /// The audit log.
    Audit(audit::Write),
    /// The queue of jobs.
    Job(jobs::Write),
    /// Applications and their domains.
    Application(applications::Write),
    /// Deployments and their containers.
    Deployment(deployments::Write),
    /// Extensions and their runs.
    #[cfg(feature = "extensions")]
    Extension(extensions::Write),
    /// Log lines.
    Log(logs::Write),
    /// Idempotency keys.
    Idempotency(idempotency::Write),
    /// Inbound webhooks.
    #[cfg(feature = "webhooks")]
    Webhook(webhooks::Write),
    /// Previews and their settings.
    #[cfg(feature = "webhooks")]
    Preview(previews::Write),
    /// Notification channels, events and deliveries.
    #[cfg(feature = "notifications")]
    Notification(notifications::Write),
    /// Certificates of domains.
    #[cfg(feature = "certificates")]
    Certificate(certificates::Write),
    /// Quota checks.
    Quota(quotas::Write),
    /// Proofs of leadership.
    Replica(replicas::Write),
}

impl Write {
    /// Returns whether the change requires an entry in the audit log.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        match self {
            Self::Auth(write) => write.needs_audit(),
            Self::User(write) => write.needs_audit(),
            Self::Organization(_) => true,
            Self::Audit(_) | Self::Log(_) | Self::Idempotency(_) | Self::Quota(_) | Self::Replica(_) => false,
            Self::Job(write) => write.needs_audit(),
            Self::Application(write) => write.needs_audit(),
            Self::Deployment(write) => write.needs_audit(),
            #[cfg(feature = "certificates")]
            Self::Certificate(write) => write.needs_audit(),
            #[cfg(feature = "extensions")]
            Self::Extension(write) => write.needs_audit(),
            #[cfg(feature = "webhooks")]
            Self::Webhook(write) => write.needs_audit(),
            #[cfg(feature = "webhooks")]
            Self::Preview(write) => write.needs_audit(),
            #[cfg(feature = "notifications")]
            Self::Notification(write) => write.needs_audit(),
        }
    }
}

macro_rules! variants {
    ($($(#[$gate:meta])? $feature:ident => $variant:ident,)+) => {
        $($(#[$gate])? impl From<$feature::Write> for Write {
            fn from(write: $feature::Write) -> Self {
                Self::$variant(write)
            }
        })+
    };
}

variants! {
    auth => Auth,
    users => User,
    organizations => Organization,
    audit => Audit,
    jobs => Job,
    applications => Application,
    deployments => Deployment,
    #[cfg(feature = "extensions")]
    extensions => Extension,
    logs => Log,
    idempotency => Idempotency,
    #[cfg(feature = "webhooks")]
    webhooks => Webhook,
    #[cfg(feature = "webhooks")]
    previews => Preview,
    #[cfg(feature = "notifications")]
    notifications => Notification,
    #[cfg(feature = "certificates")]
    certificates => Certificate,
    quotas => Quota,
    replicas => Replica,
}

/// Returns whether `writes` include an audit entry for what they change. A unit of work refuses all others,
/// so that a use case which forgets its entry fails every test that reaches it.
#[must_use]
pub fn are_audited(writes: &[Write]) -> bool {
    let tell = writes.iter().any(|write| matches!(write, Write::Audit(_)));
    tell || !writes.iter().any(Write::needs_audit)
}

/// Makes changes durable.
///
/// Promises: all writes of one call take effect together, in their order, or none does; when the call
/// returns `Ok` they survive a power failure; every repository sees them from then on. Writes that are not
/// [audited](are_audited) are not carried out.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UnitOfWork: Send + Sync {
    /// Carries out `writes` as one unit.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if a write would repeat something unique, [`StoreError::Stale`] if a write's
    /// guard no longer holds, [`StoreError::Refused`] if a rule about the stored state forbids it,
    /// [`StoreError::QuotaExceeded`] if a quota does, [`StoreError::Unaudited`] if there is no audit entry;
    /// then nothing was changed.
    async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError>;
}

/// The health of the store.
#[async_trait]
pub trait StoreHealth: Send + Sync {
    /// Returns `Ok` unless the last change that failed did so because the disk was full. Then it tries a small change,
    /// and returns `Ok` once one succeeds.
    ///
    /// # Errors
    /// [`StoreError::StorageFull`] while the disk is full, and the errors of a change.
    async fn check_writes(&self) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uuid::Uuid;

    use super::*;
    use crate::{
        auth::{Client, PasswordHash, PasswordSetup, Permissions, Session, TokenHash},
        clock::Timestamp,
        organizations::{Description, Invitation, Membership, Organization, Role, Scope},
        secret::Sealed,
        users::{SettingsChange, User, UserKind},
    };

    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn shop() -> applications::Hostname {
        "shop.example.com".parse().unwrap()
    }

    fn entry() -> Write {
        let entry = audit::Entry {
            id: Uuid::nil().into(),
            chain: audit::Chain::Installation,
            actor: "ada".to_owned(),
            actor_id: None,
            action: audit::Action::Update,
            resource: audit::Resource::User,
            resource_id: String::new(),
            message: String::new(),
            metadata: BTreeMap::new(),
            request_id: String::new(),
            address: None,
            at: AT,
        };
        audit::Write::Append(entry).into()
    }

    /// Returns writes that only keep a login or a deployment going, guard it, go with another, or change
    /// nothing.
    fn silent_writes() -> Vec<Write> {
        let (id, user_id) = (Uuid::nil().into(), Uuid::nil().into());
        let code = TokenHash::of("code");
        vec![
            auth::Write::ConfirmPassword { user_id, hash: PasswordHash(String::new()) }.into(),
            auth::Write::ExtendSession { id, at: AT, expires_at: AT }.into(),
            auth::Write::UseTotpStep { user_id, step: 1 }.into(),
            auth::Write::UseRecoveryCode { user_id, code, at: AT }.into(),
            change_settings(vec![]),
            jobs::Write::Enqueue(a_job()).into(),
            jobs::Write::Prove(a_lease()).into(),
            replicas::Write::Prove(replicas::Term {
                replica: Uuid::nil().into(),
                boot: Uuid::nil().into(),
                epoch: 1,
            })
            .into(),
            applications::Write::SetHealth {
                deployment: Uuid::nil().into(),
                health: applications::Health::Healthy,
                at: AT,
            }
            .into(),
            deployments::Write::Advance { id: Uuid::nil().into(), progress: Default::default(), at: AT }
                .into(),
            deployments::Write::GoLive { id: Uuid::nil().into(), at: AT }.into(),
            deployments::Write::ReplaceContainer {
                id: Uuid::nil().into(),
                container: a_container(),
                further_copies: vec![],
                at: AT,
            }
            .into(),
            deployments::Write::FollowJobs { application: None, at: AT }.into(),
            logs::Write::Append(vec![]).into(),
            jobs::Write::Settle { lease: a_lease(), outcome: jobs::Outcome::Succeeded, at: AT }.into(),
            webhooks::Write::Confirm { scope: a_job().scope, repository: a_secret().repository, at: AT }
                .into(),
            previews::Write::Remove { parent: Uuid::nil().into(), number: 1.try_into().unwrap(), seen: AT }
                .into(),
            certificates::Write::DeleteUnused { api_domain: None }.into(),
            certificates::Write::Request { domain: shop(), application_id: None, at: AT }.into(),
            notifications::Write::Announce(an_event()).into(),
            quotas::Write::Require {
                scope: a_job().scope,
                quota: quotas::Quota { resource: quotas::Resource::Applications, limit: 1 },
                wanted: 1,
                at: AT,
            }
            .into(),
        ]
    }

    fn a_container() -> deployments::ContainerRecord {
        deployments::ContainerRecord {
            id: "0".repeat(64).parse().unwrap(),
            name: "web".to_owned(),
            state: deployments::ContainerState::Running,
            address: None,
            port: applications::Port::try_from(80).unwrap(),
        }
    }

    fn an_event() -> notifications::Event {
        let kind = notifications::EventKind::MemberAdded;
        notifications::Event::new(Uuid::nil().into(), Uuid::nil().into(), kind, AT)
    }

    fn a_job() -> jobs::NewJob {
        jobs::NewJob {
            id: Uuid::nil().into(),
            kind: jobs::JobKind::Deploy,
            scope: Scope::of_record(Uuid::nil().into()),
            subject: Uuid::nil().into(),
            replaceable: true,
            payload: String::new(),
            pool: jobs::Pool::Builds,
            run_at: AT,
            enqueued_at: AT,
        }
    }

    fn a_deployment() -> deployments::Deployment {
        let (ids, whose) =
            ((Uuid::nil().into(), Uuid::nil().into()), (Uuid::nil().into(), Uuid::nil().into()));
        deployments::Deployment::new(ids, whose, deployments::DeploymentKind::Fresh, Uuid::nil().into(), AT)
    }

    fn a_secret() -> webhooks::KeptSecret {
        webhooks::KeptSecret {
            id: Uuid::nil().into(),
            organization_id: Uuid::nil().into(),
            repository: "example.com/ada/engine".parse().unwrap(),
            secret: Sealed(String::new()),
            created_at: AT,
            confirmed_at: None,
        }
    }

    fn preview_settings() -> previews::PreviewSettings {
        previews::PreviewSettings {
            application: Uuid::nil().into(),
            is_enabled: true,
            limit: Default::default(),
            lifetime: Default::default(),
            shared: Default::default(),
            runs_commands: false,
            build_variables: Sealed(String::new()),
            environment_variables: Sealed(String::new()),
            updated_at: AT,
        }
    }

    fn a_preview() -> previews::Preview {
        previews::Preview {
            parent: Uuid::nil().into(),
            number: 1.try_into().unwrap(),
            code_host: webhooks::CodeHost::GitHub,
            application: None,
            state: previews::PreviewState::Waiting,
            branch: "next".to_owned(),
            head: None,
            is_from_fork: true,
            approved: None,
            expires_at: AT,
            created_at: AT,
            updated_at: AT,
        }
    }

    fn a_lease() -> jobs::Lease {
        let worker = jobs::WorkerId { instance: Uuid::nil().into(), boot: Uuid::nil().into(), worker: 1 };
        jobs::Lease { job: Uuid::nil().into(), attempt: 1, worker }
    }

    fn change_settings(changes: Vec<SettingsChange>) -> Write {
        let (user_id, new_id) = (Uuid::nil().into(), Uuid::nil().into());
        users::Write::ChangeSettings { user_id, new_id, changes, at: AT }.into()
    }

    fn login_writes() -> Vec<auth::Write> {
        let (id, user_id) = (Uuid::nil().into(), Uuid::nil().into());
        let token = TokenHash::of("token");
        let client = Client { address: [127, 0, 0, 1].into(), user_agent: String::new() };
        let api_token = auth::ApiToken {
            id: Uuid::nil().into(),
            organization_id: Uuid::nil().into(),
            user_id,
            name: "ci".parse().unwrap(),
            token_hash: token,
            permissions: Permissions::default(),
            expires_at: None,
            created_at: AT,
        };
        vec![
            auth::Write::ClaimInstallation { admin: user_id, at: AT },
            auth::Write::SetPassword { user_id, hash: PasswordHash(String::new()), at: AT },
            auth::Write::OfferPasswordSetup(PasswordSetup { user_id, token, expires_at: AT }),
            auth::Write::RedeemPasswordSetup { user_id, token, at: AT },
            auth::Write::OpenSession(Session::open(id, user_id, token, client, AT)),
            auth::Write::EndSession { id, at: AT },
            auth::Write::EndSessions { user_id, keep: None, at: AT },
            auth::Write::RevokeApiToken {
                id: api_token.id,
                organization_id: api_token.organization_id,
                user_id,
                at: AT,
            },
            auth::Write::IssueApiToken(api_token),
            auth::Write::BeginTwoFactor { user_id, secret: Sealed(String::new()), at: AT },
            auth::Write::EnableTwoFactor {
                user_id,
                secret: Sealed(String::new()),
                step: 1,
                recovery_codes: vec![],
                at: AT,
            },
            auth::Write::DisableTwoFactor { user_id, at: AT },
        ]
    }

    fn organization_writes() -> Vec<organizations::Write> {
        let (id, user_id) = (Uuid::nil().into(), Uuid::nil().into());
        let scope = Scope::of_record(id);
        let organization = Organization::new(id, "Engines".parse().unwrap(), Description::default(), AT);
        let membership = Membership::new(Uuid::nil().into(), id, user_id, Role::Admin, AT);
        let invitation = Invitation {
            id: Uuid::nil().into(),
            organization_id: id,
            user_id,
            role: Role::Admin,
            invited_by: user_id,
            token: None,
            created_at: AT,
            expires_at: AT,
        };
        vec![
            organizations::Write::Insert(organization),
            organizations::Write::Update { scope, name: None, description: None, at: AT },
            organizations::Write::Delete { scope, at: AT },
            organizations::Write::InsertMembership(membership),
            organizations::Write::ChangeRole { scope, user_id, role: Role::Admin, at: AT },
            organizations::Write::RemoveMember { scope, user_id, at: AT },
            organizations::Write::AcceptInvitation {
                id: invitation.id,
                user_id,
                token: None,
                membership: Uuid::nil().into(),
                at: AT,
            },
            organizations::Write::DeclineInvitation { id: invitation.id, user_id, at: AT },
            organizations::Write::WithdrawInvitation { scope, user_id, at: AT },
            organizations::Write::Invite(invitation),
        ]
    }

    /// Returns writes that require an entry in the audit log.
    fn telling_writes() -> Vec<Write> {
        let id = Uuid::nil().into();
        let [email, username] = ["ada@example.com", "ada"];
        let user = User::new(id, username.parse().unwrap(), email.parse().unwrap(), UserKind::AppUser, AT);
        let application_id = Uuid::nil().into();
        let mut writes = vec![
            users::Write::Insert(user).into(),
            users::Write::Rename { id, username: username.parse().unwrap(), at: AT }.into(),
            change_settings(vec![SettingsChange::AutoUpdate(true)]),
            jobs::Write::RequestCancel { scope: a_job().scope, id: a_job().id, at: AT }.into(),
            jobs::Write::RequestCancelAll { scope: a_job().scope, subject: a_job().subject, at: AT }.into(),
            applications::Write::Delete { scope: a_job().scope, id: Uuid::nil().into(), at: AT }.into(),
            applications::Write::SetStopped {
                scope: a_job().scope,
                id: Uuid::nil().into(),
                is_stopped: true,
                at: AT,
            }
            .into(),
            certificates::Write::Delete { scope: a_job().scope, application_id, domain: shop() }.into(),
            certificates::Write::SetHsts {
                scope: a_job().scope,
                application_id,
                domain: shop(),
                max_age: None,
            }
            .into(),
            deployments::Write::Insert(a_deployment()).into(),
            webhooks::Write::FirstSecret(a_secret()).into(),
            webhooks::Write::ReplaceSecret { secret: a_secret(), until: AT }.into(),
            previews::Write::SetSettings { scope: a_job().scope, settings: preview_settings(), seen: None }
                .into(),
            previews::Write::Put { scope: a_job().scope, preview: a_preview(), seen: None, most: 1 }.into(),
            notifications::Write::DeleteSmtp { scope: a_job().scope, id: Uuid::nil().into(), at: AT }.into(),
            notifications::Write::Replay { scope: a_job().scope, id: Uuid::nil().into(), at: AT }.into(),
        ];
        writes.extend(login_writes().into_iter().map(Write::from));
        writes.extend(organization_writes().into_iter().map(Write::from));
        writes
    }

    #[test]
    fn changes_are_audited_only_with_an_audit_entry() {
        for write in telling_writes() {
            assert!(write.needs_audit(), "{write:?}");
            assert!(!are_audited(std::slice::from_ref(&write)), "{write:?}");
            assert!(are_audited(&[write.clone(), entry()]), "{write:?}");
            assert!(are_audited(&[entry(), write.clone()]), "{write:?}");
        }
    }

    #[test]
    fn what_keeps_a_login_going_or_changes_nothing_needs_no_entry() {
        for write in silent_writes() {
            assert!(!write.needs_audit(), "{write:?}");
        }
        assert!(are_audited(&silent_writes()));
    }

    #[test]
    fn one_audited_change_among_others_needs_an_entry() {
        for write in telling_writes() {
            let mut writes = silent_writes();
            writes.insert(2, write);
            assert!(!are_audited(&writes), "{writes:?}");
            writes.push(entry());
            assert!(are_audited(&writes), "{writes:?}");
        }
    }

    #[test]
    fn an_entry_needs_no_other_and_nothing_needs_none() {
        assert!(!entry().needs_audit());
        assert!(are_audited(&[entry()]));
        assert!(are_audited(&[]));
    }
}
