//! Quotas in the database: the use of each resource by an organization.

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    extensions::{ExecutionState, WORKSPACE_RETENTION},
    jobs::Pool,
    organizations::Scope,
    quotas::{Resource, UsageRepository, Write},
    store::StoreError,
};

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::hold_quotas,
    error::QueryError,
    image_records, jobs,
    schema::{applications, extension_executions, extension_ports, extensions, jobs as job_rows, log_usage},
    statement::ListComparison as _,
};

#[async_trait]
impl UsageRepository for Database {
    async fn usage(&self, scope: Scope, at: Timestamp) -> Result<Vec<(Resource, u64)>, StoreError> {
        self.read(move |connection| {
            let organization = DbId::from(scope.id());
            let mut usage = Vec::new();
            for resource in Resource::ALL {
                if let Some(used) = used(connection, organization, *resource, at)? {
                    usage.push((*resource, used));
                }
            }
            Ok(usage)
        })
        .await
    }
}

/// Applies one guard.
pub(super) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    let Write::Require { scope, quota, wanted, at } = write;
    let organization = DbId::from(scope.id());
    // On PostgreSQL a later transaction waits, and counts what this one created.
    hold_quotas(connection, organization)?;
    let used = used(connection, organization, quota.resource, *at)?.ok_or_else(|| {
        QueryError::unreadable(format!("the use of `{}` is not stored", quota.resource.as_str()))
    })?;
    Ok(quota.check(used, *wanted).map_err(StoreError::QuotaExceeded)?)
}

/// Returns the used amount of a resource; `None` when it is not stored.
fn used(
    connection: &mut AnyConnection,
    organization: DbId,
    resource: Resource,
    at: Timestamp,
) -> Result<Option<u64>, QueryError> {
    let used: i64 = match resource {
        Resource::Applications => applications::table
            .filter(applications::organization_id.eq(organization))
            .filter(applications::deleted_at.is_null())
            .count()
            .get_result(connection)?,
        Resource::Builds => job_rows::table
            .filter(job_rows::organization_id.eq(organization))
            .filter(jobs::runs())
            .filter(job_rows::pool.eq(Pool::Builds.as_str()))
            .count()
            .get_result(connection)?,
        Resource::ExtensionForks => extensions::table
            .filter(extensions::organization_id.eq(organization))
            .filter(extensions::deleted_at.is_null())
            .count()
            .get_result(connection)?,
        Resource::ExtensionPorts => extension_ports::table
            .filter(extension_ports::organization_id.eq(organization))
            .count()
            .get_result(connection)?,
        Resource::ExtensionWorkspaces => {
            let is_open = extension_executions::status
                .one_of([ExecutionState::Pending.as_str(), ExecutionState::Running.as_str()]);
            let is_kept = extension_executions::status
                .eq(ExecutionState::Completed.as_str())
                .and(extension_executions::completed_at.gt(DbTs(at - WORKSPACE_RETENTION)));
            extension_executions::table
                .filter(extension_executions::organization_id.eq(organization))
                .filter(is_open.or(is_kept))
                .count()
                .get_result(connection)?
        }
        Resource::LogBytes => {
            // A sum in the database is a decimal number on PostgreSQL.
            let bytes: Vec<i64> = log_usage::table
                .inner_join(applications::table.on(applications::id.eq(log_usage::application_id)))
                .filter(applications::organization_id.eq(organization))
                .filter(applications::deleted_at.is_null())
                .select(log_usage::bytes)
                .load(connection)?;
            bytes.iter().sum()
        }
        Resource::ImageBytes => image_records::bytes_of(connection, organization)?,
        Resource::LogStreams | Resource::UserLogStreams | Resource::ServerLogStreams => return Ok(None),
    };
    Ok(Some(u64::try_from(used).unwrap_or_default()))
}
