//! The homes of stateful applications and of extensions in the database.

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    extensions::ExecutionState,
    homes::{Home, HomeRepository, Machine},
    ids::{ApplicationId, DeploymentId, ExecutionId, InstanceId, OrganizationId, SubjectId},
    jobs::JobKind,
    nodes::NodeId,
    store::StoreError,
};

use super::{
    Database,
    columns::DbId,
    connection::AnyConnection,
    dialect::{each_backend, hold_one},
    error::QueryError,
    schema::{compositions, extension_executions, extension_installations, homes, jobs},
    statement::literal,
};

type HomeRow = (DbId, DbId, String, String, String);

fn home((subject, server, engine, node, hostname): HomeRow) -> Result<Home, QueryError> {
    let machine = Machine { engine, node: node.parse().map_err(QueryError::unreadable)?, hostname };
    Ok(Home { subject: subject.into(), server: server.into(), machine })
}

#[async_trait]
impl HomeRepository for Database {
    async fn homes(&self) -> Result<Vec<Home>, StoreError> {
        self.read_point(|connection| {
            let rows: Vec<HomeRow> = homes::table.load(connection)?;
            rows.into_iter().map(home).collect()
        })
        .await
    }

    async fn assign(&self, new: &Home) -> Result<Home, StoreError> {
        let new = new.clone();
        self.write(move |connection| assign(connection, &new)).await
    }

    async fn renew(
        &self,
        server: InstanceId,
        machine: &Machine,
        alive: &[InstanceId],
    ) -> Result<usize, StoreError> {
        let (server, machine) = (DbId::from(server), machine.clone());
        let others: Vec<DbId> = alive.iter().copied().map(DbId::from).filter(|id| *id != server).collect();
        self.write(move |connection| {
            let (node, hostname) = (machine.node.as_str(), machine.hostname.as_str());
            let joined_again = homes::server
                .eq(server)
                .and(homes::engine.eq(&machine.engine))
                .and(homes::machine.eq(hostname))
                .and(homes::node.ne(node));
            let is_other = homes::server.ne(server).or(homes::machine.ne(hostname));
            let outdated = homes::table.filter(joined_again.or(homes::node.eq(node).and(is_other)));
            let outdated: Vec<(DbId, DbId)> =
                outdated.select((homes::subject, homes::server)).load(connection)?;
            let free = outdated.into_iter().filter(|(_, server)| !others.contains(server));
            let free: Vec<DbId> = free.map(|(subject, _)| subject).collect();
            let renewed = diesel::update(homes::table.filter(homes::subject.eq_any(free))).set((
                homes::server.eq(server),
                homes::node.eq(node),
                homes::machine.eq(hostname),
            ));
            Ok(renewed.execute(connection)?)
        })
        .await
    }

    async fn forget_node(&self, node: &NodeId) -> Result<Vec<Home>, StoreError> {
        let node = node.clone();
        self.write(move |connection| {
            let there = homes::table.filter(homes::node.eq(node.as_str()));
            let rows: Vec<HomeRow> = there.load(connection)?;
            diesel::delete(there).execute(connection)?;
            rows.into_iter().map(home).collect()
        })
        .await
    }

    async fn forget(&self, subject: SubjectId) -> Result<(), StoreError> {
        self.write(move |connection| {
            diesel::delete(homes::table.find(DbId::from(subject))).execute(connection)?;
            Ok(())
        })
        .await
    }

    async fn waiting_for(
        &self,
        server: InstanceId,
    ) -> Result<Vec<(ApplicationId, DeploymentId)>, StoreError> {
        self.read_point(move |connection| {
            let queued = queued_for(connection, server, JobKind::Deploy)?.into_iter();
            let queued =
                queued.filter_map(|(subject, payload)| Some((subject.into(), payload.parse().ok()?)));
            Ok(queued.collect())
        })
        .await
    }

    async fn runs_waiting_for(
        &self,
        server: InstanceId,
    ) -> Result<Vec<(SubjectId, ExecutionId)>, StoreError> {
        self.read_point(move |connection| {
            let queued = queued_for(connection, server, JobKind::RunExtension)?.into_iter();
            Ok(queued.filter_map(|(subject, payload)| Some((subject, payload.parse().ok()?))).collect())
        })
        .await
    }
}

impl Database {
    /// Returns the applications of which a composition is stored that have no home, in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn compositions_without_home(&self) -> Result<Vec<ApplicationId>, StoreError> {
        self.read(|connection| {
            let all = compositions::table.select(compositions::application_id).distinct();
            let mut found: Vec<DbId> = all.load(connection)?;
            let homes: Vec<DbId> = homes::table.select(homes::subject).load(connection)?;
            found.retain(|application| !homes.contains(application));
            Ok(found.into_iter().map(ApplicationId::from).collect())
        })
        .await
    }

    /// Returns the organizations with extensions that have no home, although one of them was run to its end, in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn extensions_without_home(&self) -> Result<Vec<OrganizationId>, StoreError> {
        self.read(|connection| {
            let mut found: Vec<DbId> = extension_installations::table
                .select(extension_installations::organization_id)
                .distinct()
                .load(connection)?;
            let completed: Vec<DbId> = extension_executions::table
                .filter(extension_executions::status.eq(ExecutionState::Completed.as_str()))
                .select(extension_executions::organization_id)
                .distinct()
                .load(connection)?;
            let homes: Vec<DbId> = homes::table.select(homes::subject).load(connection)?;
            found.retain(|organization| completed.contains(organization) && !homes.contains(organization));
            Ok(found.into_iter().map(OrganizationId::from).collect())
        })
        .await
    }
}

/// Stores a home unless its subject has one. Returns the home that the subject has.
fn assign(connection: &mut AnyConnection, new: &Home) -> Result<Home, QueryError> {
    let subject = DbId::from(new.subject);
    let row = (
        homes::subject.eq(subject),
        homes::server.eq(DbId::from(new.server)),
        homes::engine.eq(new.machine.engine.as_str()),
        homes::node.eq(new.machine.node.as_str()),
        homes::machine.eq(new.machine.hostname.as_str()),
    );
    each_backend!(connection, backend => diesel::insert_into(homes::table)
        .values(row)
        .on_conflict(homes::subject)
        .do_nothing()
        .execute(backend))?;
    home(homes::table.find(subject).first(connection)?)
}

/// Binds the jobs of an extension to the home of the extensions of its organization, which is `new` unless they have one.
pub(crate) fn bind_extension(
    connection: &mut AnyConnection,
    new: &Home,
    extension: SubjectId,
) -> Result<(), QueryError> {
    // The last extension may be uninstalled meanwhile, which deletes both homes.
    hold_one(connection, new.subject.into())?;
    let home = assign(connection, new)?;
    assign(connection, &Home { subject: extension, ..home }).map(drop)
}

/// Returns the subjects and payloads of the jobs of a kind that are queued for the homes on `server`.
fn queued_for(
    connection: &mut AnyConnection,
    server: InstanceId,
    kind: JobKind,
) -> Result<Vec<(SubjectId, String)>, QueryError> {
    let there = homes::table.filter(homes::server.eq(DbId::from(server))).select(homes::subject);
    let queued: Vec<(DbId, String)> = jobs::table
        .filter(literal::<diesel::sql_types::Bool>("jobs.state = 'queued'"))
        .filter(jobs::kind.eq(kind.as_str()))
        .filter(jobs::subject.eq_any(there))
        .select((jobs::subject, jobs::payload))
        .load(connection)?;
    Ok(queued.into_iter().map(|(subject, payload)| (subject.into(), payload)).collect())
}
