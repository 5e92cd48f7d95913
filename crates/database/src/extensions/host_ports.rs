//! Host ports that containers of extensions publish, each held by one extension of one organization.

use std::collections::BTreeSet;

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    applications::Port,
    extensions::{
        ExtensionKey, HeldPorts, HostPort, HostPorts, PortError, PortKey, PortPolicy, PortRecord, PortRequest,
    },
    ids::{ExecutionId, OrganizationId},
    store::StoreError,
};

use crate::{
    Database,
    columns::DbId,
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::QueryError,
    organizations,
    schema::{extension_installations, extension_ports},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = extension_ports)]
struct PortRow {
    #[diesel(deserialize_as = i64)]
    port: Port,
    protocol: String,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = String)]
    extension_key: ExtensionKey,
    #[diesel(deserialize_as = DbId)]
    execution_id: ExecutionId,
    container: String,
    #[diesel(deserialize_as = i64)]
    container_port: Port,
}

impl From<PortRow> for PortRecord {
    fn from(row: PortRow) -> Self {
        Self {
            organization: row.organization_id,
            extension: row.extension_key,
            execution: row.execution_id,
            container: row.container,
            port: HostPort {
                host: row.port,
                container: row.container_port,
                is_udp: row.protocol == protocol(true),
            },
        }
    }
}

fn protocol(is_udp: bool) -> &'static str {
    if is_udp { "udp" } else { "tcp" }
}

#[async_trait]
impl HostPorts for Database {
    async fn allocate(&self, policy: PortPolicy, request: PortRequest) -> Result<Vec<HostPort>, PortError> {
        // A rejection is a result: nothing was written that would have to be rolled back.
        let given = self.write(move |connection| allocate(connection, policy, &request)).await?;
        Ok(given?)
    }

    async fn held(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
    ) -> Result<HeldPorts, StoreError> {
        let extension = extension.clone();
        self.read(move |connection| {
            let records = held(connection)?;
            let holds = records
                .iter()
                .any(|record| record.organization == organization && record.extension == extension);
            let installation = extension_installations::table
                .find((DbId::from(organization), extension.as_str()))
                .count()
                .get_result::<i64>(connection)?;
            Ok(HeldPorts { records, is_installed: holds || installation > 0 })
        })
        .await
    }

    async fn retain(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        published: BTreeSet<PortKey>,
    ) -> Result<(), StoreError> {
        let extension = extension.clone();
        self.write(move |connection| {
            hold(connection, Lock::HostPorts)?;
            for record in held(connection)? {
                let is_own = record.organization == organization && record.extension == extension;
                if is_own && !published.contains(&record.port.key()) {
                    remove(connection, record.port.key())?;
                }
            }
            Ok(())
        })
        .await
    }
}

fn allocate(
    connection: &mut AnyConnection,
    policy: PortPolicy,
    request: &PortRequest,
) -> Result<Result<Vec<HostPort>, launchway_domain::extensions::PortRefusal>, QueryError> {
    hold(connection, Lock::HostPorts)?;
    organizations::require(connection, request.organization)?;
    let records = match policy.allocate(request, &held(connection)?) {
        Ok(records) => records,
        Err(refusal) => return Ok(Err(refusal)),
    };
    for record in &records {
        remove(connection, record.port.key())?;
        diesel::insert_into(extension_ports::table)
            .values((
                extension_ports::port.eq(i64::from(record.port.host.get())),
                extension_ports::protocol.eq(protocol(record.port.is_udp)),
                extension_ports::organization_id.eq(DbId::from(record.organization)),
                extension_ports::extension_key.eq(record.extension.as_str()),
                extension_ports::execution_id.eq(DbId::from(record.execution)),
                extension_ports::container.eq(&record.container),
                extension_ports::container_port.eq(i64::from(record.port.container.get())),
            ))
            .execute(connection)?;
    }
    Ok(Ok(records.into_iter().map(|record| record.port).collect()))
}

/// Returns every record, sorted by port. There are at most as many as the range has ports.
fn held(connection: &mut AnyConnection) -> Result<Vec<PortRecord>, QueryError> {
    let rows: Vec<PortRow> = extension_ports::table
        .order((extension_ports::port.asc(), extension_ports::protocol.asc()))
        .select(PortRow::as_select())
        .load(connection)?;
    Ok(rows.into_iter().map(PortRecord::from).collect())
}

fn remove(connection: &mut AnyConnection, (port, is_udp): PortKey) -> Result<(), QueryError> {
    diesel::delete(extension_ports::table)
        .filter(extension_ports::port.eq(i64::from(port)))
        .filter(extension_ports::protocol.eq(protocol(is_udp)))
        .execute(connection)?;
    Ok(())
}
