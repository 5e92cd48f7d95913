//! The records of an embedding service: applies the writes of deployments to plain values, in memory.
//!
//! A [`Store`](crate::Store) decides where they are durable. [`Records::begin`] returns what a transaction
//! changed as rows of text, which any key-value store, table or file can hold, and [`Records::load`] reads
//! them back.

mod applications;
mod deployments;
mod history;
mod jobs;
mod retention;
mod rows;
mod table;

use std::collections::BTreeMap;

use launchway_domain::{
    applications::{Application, ApplicationState, ApplicationSummary, ImageRef},
    audit,
    auth::Actor,
    clock::Timestamp,
    deployments::{Deployment, DeploymentDetail},
    idempotency::{self, IdempotencyKey},
    ids::{ApplicationId, DeploymentId, JobId, OrganizationId, UserId},
    logs::{self, LogLine},
    organizations::{MembershipDetail, Organization, Scope},
    quotas,
    store::{StoreError, Unique, Write, are_audited},
    users::User,
};

use self::{jobs::KeptJob, table::Table};
pub use self::{
    retention::Retention,
    rows::{FORMAT, Row, UnreadableRow},
};

/// Applications with their deployments, jobs and logs, and the audit log.
///
/// Reads and writes cost the logarithm of the number of records, and what they touch.
///
/// ```
/// use launchway_embedding::{Records, fixtures::a_vouched_actor, Role};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (mut records, ada) = (Records::default(), a_vouched_actor(Role::Member));
/// let ((), rows) = records.begin(|records| Ok(records.know(&ada)))?;
/// // The rows are durable now.
/// records.keep();
/// assert!(Records::load(rows)?.is_known(&ada));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Records {
    organizations: Table<OrganizationId, Organization>,
    users: Table<UserId, User>,
    applications: Table<ApplicationId, Application>,
    deployments: Table<DeploymentId, Deployment>,
    /// The image of each deployment, for rollbacks.
    artifacts: Table<DeploymentId, ImageRef>,
    jobs: Table<JobId, KeptJob>,
    /// The number of the last claim of each organization.
    turns: Table<OrganizationId, u64>,
    lines: Table<(ApplicationId, i64), LogLine>,
    audit_log: Table<u64, audit::Entry>,
    requests: Table<String, Timestamp>,
    /// The version of the stored form; absent until something is stored.
    format: Table<(), u32>,
    index: Index,
}

/// Orders of records beside their keys. They follow from the records and are not stored.
#[derive(Debug, Clone, Default)]
struct Index {
    /// The deployments of each application, oldest first.
    by_application: Table<(ApplicationId, Timestamp, DeploymentId), ()>,
    /// The deployments that are not over.
    open_deployments: Table<DeploymentId, ()>,
    /// The deployed versions whose container is not recorded as removed.
    standing: Table<DeploymentId, ()>,
    /// The jobs that are not over.
    open_jobs: Table<JobId, ()>,
}

/// Applies a statement to each stored table, or to all tables.
macro_rules! for_tables {
    ($records:expr, $table:ident => $do:expr) => {{
        let records = $records;
        for_tables!(@each $table => $do; records.organizations, records.users, records.applications,
            records.deployments, records.artifacts, records.jobs, records.turns, records.lines,
            records.audit_log, records.requests, records.format);
    }};
    (indexes $records:expr, $table:ident => $do:expr) => {{
        let index = &mut $records.index;
        for_tables!(@each $table => $do; index.by_application, index.open_deployments, index.standing,
            index.open_jobs);
    }};
    (@each $table:ident => $do:expr; $($field:expr),+) => { $({ let $table = &mut $field; $do; })+ };
}

impl Records {
    /// Runs a transaction, and returns the rows that it changed. [Keep](Self::keep) it when they are stored,
    /// or [undo](Self::undo) it. A transaction that was neither kept nor undone is undone first.
    ///
    /// # Errors
    /// The error of `change`; then nothing was changed.
    pub fn begin<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<(T, Vec<Row>), StoreError> {
        self.undo();
        match change(self) {
            Ok(value) => Ok((value, self.changed_rows())),
            Err(error) => {
                self.undo();
                Err(error)
            }
        }
    }

    /// Keeps the changes of the last transaction.
    pub fn keep(&mut self) {
        for_tables!(&mut *self, table => table.keep());
        for_tables!(indexes self, table => table.keep());
    }

    /// Takes the changes of the last transaction back, unless it was kept.
    pub fn undo(&mut self) {
        for_tables!(&mut *self, table => table.undo());
        for_tables!(indexes self, table => table.undo());
    }

    /// Runs a transaction that is kept only if `store` has stored the rows that it changed. `store` is not
    /// called if there are none.
    ///
    /// # Errors
    /// The error of `change` or of `store`; then nothing was changed.
    pub fn transaction<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, StoreError>,
        store: impl FnOnce(&[Row]) -> Result<(), StoreError>,
    ) -> Result<T, StoreError> {
        let (value, rows) = self.begin(change)?;
        if !rows.is_empty()
            && let Err(error) = store(&rows)
        {
            self.undo();
            return Err(error);
        }
        self.keep();
        Ok(value)
    }

    /// Records the current user and organizations of an actor.
    pub fn know(&mut self, actor: &Actor) {
        let profile = actor.profile();
        self.users.insert(profile.user.id, profile.user.clone());
        for MembershipDetail { organization, .. } in &profile.memberships {
            self.organizations.insert(organization.id, organization.clone());
        }
    }

    /// Returns whether the records have the user and the organizations of an actor as they are.
    #[must_use]
    pub fn is_known(&self, actor: &Actor) -> bool {
        let profile = actor.profile();
        let mut organizations = profile.memberships.iter().map(|detail| &detail.organization);
        self.users.get(&profile.user.id) == Some(&profile.user)
            && organizations
                .all(|organization| self.organizations.get(&organization.id) == Some(organization))
    }

    /// Carries out `writes` as one unit, as [`UnitOfWork::commit`](launchway_domain::store::UnitOfWork::commit)
    /// promises.
    ///
    /// # Errors
    /// As there, and [`StoreError::Internal`] for a write about something else than applications,
    /// deployments, jobs, logs, requests and the audit log. The transaction has to be undone then.
    pub(crate) fn commit(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        if !are_audited(writes) {
            return Err(StoreError::Unaudited);
        }
        writes.iter().try_for_each(|write| self.apply(write))
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
                let number = self.audit_log.keys().next_back().map_or(1, |last| last + 1);
                self.audit_log.insert(number, entry.clone());
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
            other => Err(StoreError::Internal(format!("there is no record of {other:?}").into())),
        }
    }

    /// Records a request. The same request within its retention is a duplicate.
    fn claim_request(
        &mut self,
        key: &IdempotencyKey,
        since: Timestamp,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let key = key.associated_data();
        if self.requests.get(&key).is_some_and(|recorded_at| *recorded_at > since) {
            return Err(StoreError::Taken(Unique::IdempotencyKey));
        }
        self.requests.insert(key, at);
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

    /// Returns one deployment; `None` if the organization has none with that id.
    #[must_use]
    pub fn deployment(&self, scope: Scope, id: DeploymentId) -> Option<&Deployment> {
        let found = self.deployments.get(&id).filter(|found| found.organization_id == scope.id());
        found.filter(|found| self.applications.contains(&found.application_id))
    }

    /// Returns one deployment with its details.
    #[must_use]
    pub fn deployment_detail(&self, scope: Scope, id: DeploymentId) -> Option<DeploymentDetail> {
        let deployment = self.deployment(scope, id)?.clone();
        let application = self.application(scope, deployment.application_id)?;
        let logs = self
            .newest_lines(deployment.application_id, DeploymentDetail::LOGS, |line| line.deployment_id == id);
        Some(DeploymentDetail { deployment, application, logs })
    }

    /// Returns the number of records of each kind.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("applications", self.applications.len()),
            ("deployments", self.deployments.len()),
            ("jobs", self.jobs.len()),
            ("log lines", self.lines.len()),
            ("audit entries", self.audit_log.len()),
        ])
    }
}

#[cfg(test)]
mod tests;
