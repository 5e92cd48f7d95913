//! In-memory records: applies the writes of deployments to plain values, without a database.
//!
//! For a service that embeds Launchway and stores its records itself: it decides where the value is stored
//! and when it is durable, and need not know the semantics of a write. With a database, implement the ports
//! instead.

mod applications;
mod deployments;
mod jobs;

use std::collections::BTreeMap;

use self::jobs::KeptJob;
use crate::{
    applications::{Application, ApplicationState, ApplicationSummary},
    audit,
    auth::Actor,
    clock::Timestamp,
    deployments::{Deployment, DeploymentDetail},
    idempotency::{self, IdempotencyKey},
    ids::{ApplicationId, DeploymentId, JobId, OrganizationId, UserId},
    logs::{self, LogLine, NewLine},
    organizations::{MembershipDetail, Organization, Scope},
    quotas,
    store::{StoreError, Unique, Write, are_audited},
    users::User,
};

/// Applications with their deployments, jobs and logs, and the audit log.
///
/// The cost of each call is linear in the number of records: this is for hundreds of deployments, not for
/// millions.
#[derive(Debug, Clone, Default)]
pub struct Records {
    organizations: BTreeMap<OrganizationId, Organization>,
    users: BTreeMap<UserId, User>,
    applications: BTreeMap<ApplicationId, Application>,
    deployments: BTreeMap<DeploymentId, Deployment>,
    jobs: BTreeMap<JobId, KeptJob>,
    /// The number of the last claim of each organization.
    turns: BTreeMap<OrganizationId, u64>,
    lines: Vec<LogLine>,
    audit_log: Vec<audit::Entry>,
    requests: Vec<(IdempotencyKey, Timestamp)>,
}

impl Records {
    /// Creates records that contain only these actors.
    #[must_use]
    pub fn of(actors: &[&Actor]) -> Self {
        let mut records = Self::default();
        actors.iter().for_each(|actor| records.know(actor));
        records
    }

    /// Stores the current user and organizations of an actor.
    pub fn know(&mut self, actor: &Actor) {
        let profile = actor.profile();
        self.users.insert(profile.user.id, profile.user.clone());
        for MembershipDetail { organization, .. } in &profile.memberships {
            self.organizations.insert(organization.id, organization.clone());
        }
    }

    /// Carries out `writes` as one unit, as [`UnitOfWork::commit`](crate::store::UnitOfWork::commit)
    /// promises.
    ///
    /// # Errors
    /// As there, and [`StoreError::Internal`] for a write about something else than applications,
    /// deployments, jobs, logs, requests and the audit log; then nothing was changed.
    pub fn commit(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        if !are_audited(writes) {
            return Err(StoreError::Unaudited);
        }
        let mut next = self.clone();
        for write in writes {
            next.apply(write)?;
        }
        *self = next;
        Ok(())
    }

    fn apply(&mut self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Application(write) => self.apply_application(write),
            Write::Deployment(write) => self.apply_deployment(write),
            Write::Job(write) => self.apply_job(write),
            Write::Log(logs::Write::Append(lines)) => {
                self.append(lines);
                Ok(())
            }
            Write::Audit(audit::Write::Append(entry)) => {
                self.audit_log.push(entry.clone());
                Ok(())
            }
            Write::Idempotency(idempotency::Write::Claim { key, since, at, .. }) => {
                self.claim_request(key, *since, *at)
            }
            Write::Quota(quotas::Write::Require { scope, quota, wanted, .. })
                if quota.resource == quotas::Resource::Applications =>
            {
                let theirs = self.applications.values().filter(|one| one.organization_id == scope.id());
                quota.check(theirs.count() as u64, *wanted).map_err(StoreError::QuotaExceeded)
            }
            other => Err(StoreError::Internal(format!("no place is kept for {other:?}").into())),
        }
    }

    /// Appends lines to the logs of their applications. Those of an unknown application are dropped.
    pub fn append(&mut self, lines: &[NewLine]) {
        for line in lines.iter().filter(|line| self.applications.contains_key(&line.application_id)) {
            let newest = self.lines.iter().rev().find(|kept| kept.application_id == line.application_id);
            let number = newest.map_or(1, |newest| newest.number + 1);
            self.lines.push(LogLine {
                number,
                application_id: line.application_id,
                deployment_id: line.deployment_id,
                level: line.level,
                text: line.text.clone(),
                at: line.at,
            });
        }
    }

    /// Records a request. The same request within its retention is a duplicate.
    fn claim_request(
        &mut self,
        key: &IdempotencyKey,
        since: Timestamp,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let place = key.associated_data();
        if self.requests.iter().any(|(kept, kept_at)| *kept_at > since && kept.associated_data() == place) {
            return Err(StoreError::Taken(Unique::IdempotencyKey));
        }
        self.requests.retain(|(_, kept_at)| *kept_at > since);
        self.requests.push((key.clone(), at));
        Ok(())
    }

    /// Returns one application with its organization and creator; `None` if the organization has none with
    /// that id.
    #[must_use]
    pub fn application(&self, scope: Scope, id: ApplicationId) -> Option<ApplicationSummary> {
        let application = self.applications.get(&id).filter(|found| found.organization_id == scope.id())?;
        let organization = self.organizations.get(&application.organization_id)?.clone();
        let user = self.users.get(&application.user_id)?.clone();
        let live = application.live.and_then(|live| self.deployments.get(&live));
        let is_failed = application.status.state == ApplicationState::Failed;
        let breakdown = live.filter(|_| is_failed).and_then(|live| live.breakdown.clone());
        Some(ApplicationSummary { application: application.clone(), organization, user, breakdown })
    }

    /// Returns the applications of all organizations.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.applications.values()
    }

    /// Returns the deployments of all organizations, newest first; also of deleted applications.
    pub fn deployments(&self) -> impl Iterator<Item = &Deployment> {
        let mut newest_first: Vec<&Deployment> = self.deployments.values().collect();
        newest_first.sort_by_key(|deployment| std::cmp::Reverse((deployment.created_at, deployment.id)));
        newest_first.into_iter()
    }

    /// Returns one deployment; `None` if the organization has none with that id.
    #[must_use]
    pub fn deployment(&self, scope: Scope, id: DeploymentId) -> Option<&Deployment> {
        let found = self.deployments.get(&id).filter(|found| found.organization_id == scope.id());
        found.filter(|found| self.applications.contains_key(&found.application_id))
    }

    /// Returns one deployment with its details.
    #[must_use]
    pub fn deployment_detail(&self, scope: Scope, id: DeploymentId) -> Option<DeploymentDetail> {
        let deployment = self.deployment(scope, id)?.clone();
        let application = self.application(scope, deployment.application_id)?;
        let mut logs: Vec<LogLine> =
            self.lines.iter().filter(|line| line.deployment_id == id).cloned().collect();
        let most = usize::try_from(DeploymentDetail::LOGS).unwrap_or(usize::MAX);
        logs.drain(..logs.len().saturating_sub(most));
        Some(DeploymentDetail { deployment, application, logs })
    }

    /// Returns every line of every log, in the order in which they were appended.
    #[must_use]
    pub fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// Deletes the oldest lines of every application, so that each keeps the newest `keep`; returns their
    /// number.
    pub fn trim(&mut self, keep: i64) -> usize {
        let mut newest = BTreeMap::new();
        for line in &self.lines {
            newest.insert(line.application_id, line.number);
        }
        let before = self.lines.len();
        self.lines
            .retain(|line| newest.get(&line.application_id).is_some_and(|last| line.number + keep > *last));
        before - self.lines.len()
    }

    /// Returns the entries of the audit log, in order.
    #[must_use]
    pub fn audit_log(&self) -> &[audit::Entry] {
        &self.audit_log
    }
}

#[cfg(test)]
mod tests;
