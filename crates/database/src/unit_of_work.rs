//! Applies the writes of a use case in one transaction.
//!
//! **Invariant:** a commit of writes that are not audited fails with `StoreError::Unaudited` before it
//! reaches the database.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    audit,
    auth::{self, TokenHash},
    logs,
    store::{self, StoreError, UnitOfWork, Write},
};

use super::{
    Database, applications, audit as audit_log, auth as auth_tables, certificates,
    connection::AnyConnection,
    deployments::{self, Requests},
    error::QueryError,
    extensions,
    group_commit::only_chain,
    idempotency, jobs, logs as log_tables, notifications, organizations, previews, quotas, replicas, users,
    webhooks,
};

/// The number of attempts of a transaction on PostgreSQL when others conflict with it.
const ATTEMPTS: u32 = 3;

#[async_trait]
impl UnitOfWork for Database {
    async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        if !store::are_audited(&writes) {
            return Err(StoreError::Unaudited);
        }
        let writes: Arc<[Write]> = writes.into();
        match only_chain(&writes) {
            // On SQLite the one writer groups all changes.
            Some(chain) if self.shared.writer.is_none() => self.commit_in_group(chain, writes).await,
            _ => self.commit_alone(&writes).await,
        }
    }
}

impl Database {
    /// Commits a unit in a transaction that it shares with no other, except on SQLite.
    pub(super) async fn commit_alone(&self, writes: &Arc<[Write]>) -> Result<(), StoreError> {
        let mut attempt = 1;
        let extended = loop {
            let unit = [Arc::clone(writes)];
            match self.try_write(1, move |connection| apply(connection, &unit)).await? {
                // Writes are values, so that a unit can be retried from the start.
                Err(error) if attempt < ATTEMPTS && error.may_pass() => attempt += 1,
                outcome => break outcome?,
            }
        };
        self.forget_identities(&extended);
        Ok(())
    }

    pub(super) fn forget_identities(&self, extended: &[TokenHash]) {
        for hash in extended {
            self.shared.identities.forget(hash);
        }
    }
}

/// Applies the writes of `units` in order, and then appends their log lines and their audit entries together. Returns the token hashes
/// of extended sessions, whose change the identity epoch does not show.
pub(super) fn apply(
    connection: &mut AnyConnection,
    units: &[Arc<[Write]>],
) -> Result<Vec<TokenHash>, QueryError> {
    let (mut extended, mut lines, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    let mut requests = Requests::default();
    for write in units.iter().flat_map(|unit| unit.iter()) {
        if requests.take(write) {
            continue;
        }
        // Log lines and audit entries are appended at the end. Any other write comes after those of the requests before it.
        if !matches!(write, Write::Log(_) | Write::Audit(_)) {
            lines.extend(requests.apply(connection)?);
        }
        match write {
            Write::Auth(write) => {
                auth_tables::apply(connection, write)?;
                if let auth::Write::ExtendSession { id, .. } = write {
                    extended.push(auth_tables::token_hash_of(connection, *id)?);
                }
            }
            Write::User(write) => users::apply(connection, write)?,
            Write::Organization(write) => organizations::apply(connection, write)?,
            Write::Audit(audit::Write::Append(entry)) => entries.push(entry),
            Write::Job(write) => jobs::apply(connection, write)?,
            Write::Application(write) => applications::apply(connection, write)?,
            Write::Deployment(write) => lines.extend(deployments::apply(connection, write)?),
            Write::Extension(write) => extensions::apply(connection, write)?,
            Write::Log(logs::Write::Append(appended)) => {
                let others = appended.iter().filter(|line| !requests.are_about(line.application_id));
                log_tables::hold(connection, others)?;
                lines.extend_from_slice(appended);
            }
            Write::Idempotency(write) => idempotency::apply(connection, write)?,
            Write::Webhook(write) => webhooks::apply(connection, write)?,
            Write::Preview(write) => previews::apply(connection, write)?,
            Write::Notification(write) => notifications::apply(connection, write)?,
            Write::Quota(write) => quotas::apply(connection, write)?,
            Write::Certificate(write) => certificates::apply(connection, write)?,
            Write::Replica(write) => replicas::apply(connection, write)?,
        }
    }
    lines.extend(requests.apply(connection)?);
    log_tables::append(connection, &lines)?;
    audit_log::append(connection, &entries)?;
    Ok(extended)
}
