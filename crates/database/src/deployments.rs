//! Reads deployments from the database.

mod announcements;
mod copies;
mod jobs;
mod read_cache;
mod requests;
mod rows;
mod writes;

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use async_trait::async_trait;
use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    applications::Application,
    deployments::{
        ContainerState, Deployment, DeploymentDetail, DeploymentRepository, DeploymentState, KeptVersions,
        LiveVersion, RetentionStatus,
    },
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    page::{Page, PageRequest},
    store::StoreError,
};
use uuid::Uuid;

pub(super) use self::{
    read_cache::ReadCache,
    requests::Requests,
    rows::is_open,
    writes::{apply, held_application_of},
};
use self::{
    read_cache::Retention,
    rows::{DeploymentRow, has_application},
};
use super::{
    Database,
    applications::{ApplicationRow, SummaryRow, summary_from},
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    logs,
    schema::{applications, deployment_log_heads, deployments, extension_routes, organizations, users},
    statement::ListComparison as _,
};

/// The most deployments that one query asks for. Databases limit the parameters of a query.
pub(super) const AT_ONCE: usize = 1000;

#[async_trait]
impl DeploymentRepository for Database {
    async fn page(
        &self,
        scope: Scope,
        application: ApplicationId,
        page: PageRequest,
    ) -> Result<Page<Deployment>, StoreError> {
        self.read(move |connection| page_of(connection, scope, application, page)).await
    }

    async fn get(&self, scope: Scope, id: DeploymentId) -> Result<Option<Deployment>, StoreError> {
        self.read_point(move |connection| visible(connection, scope, id)).await
    }

    async fn many(&self, scope: Scope, ids: &[DeploymentId]) -> Result<Vec<Deployment>, StoreError> {
        let ids: Vec<DbId> = ids.iter().copied().map(DbId::from).collect();
        self.read(move |connection| {
            let mut found = Vec::with_capacity(ids.len());
            for some in ids.chunks(AT_ONCE) {
                found.extend(visible_of(connection, scope, some)?);
            }
            Ok(found)
        })
        .await
    }

    async fn newest(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<Deployment>, StoreError> {
        let ids = applications.to_vec();
        self.read(move |connection| {
            let mut found = Vec::with_capacity(ids.len());
            // One query by the index for each: the newest row of many groups has no portable fast query.
            for id in &ids {
                found.extend(newest_of(connection, scope, *id)?);
            }
            Ok(found)
        })
        .await
    }

    async fn detail(&self, scope: Scope, id: DeploymentId) -> Result<Option<DeploymentDetail>, StoreError> {
        self.read(move |connection| {
            let of_deployment = || {
                let is_its = deployment_log_heads::deployment_id.eq(deployments::id);
                is_its.and(deployment_log_heads::application_id.eq(deployments::application_id))
            };
            let row: Option<(DeploymentRow, SummaryRow, Option<i64>)> =
                each_backend!(connection, backend => deployments::table
                    .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
                    .inner_join(organizations::table.on(organizations::id.eq(applications::organization_id)))
                    .inner_join(users::table.on(users::id.eq(applications::user_id)))
                    .left_join(deployment_log_heads::table.on(of_deployment()))
                    .filter(deployments::id.eq(DbId::from(id)))
                    .filter(applications::organization_id.eq(DbId::from(scope.id())))
                    .filter(applications::deleted_at.is_null())
                    .select((
                        DeploymentRow::as_select(),
                        <SummaryRow>::as_select(),
                        deployment_log_heads::last_number.nullable(),
                    ))
                    .first(backend))
                .optional()?;
            let Some((deployment, application, last_line)) = row else { return Ok(None) };
            let deployment = Deployment::try_from(deployment)?;
            let application = summary_from(connection, application)?;
            let logs = match last_line {
                None => Vec::new(),
                Some(last) => {
                    let of = deployment.application_id;
                    logs::newest_of_deployment(connection, of, id, last, DeploymentDetail::LOGS)?
                }
            };
            Ok(Some(DeploymentDetail { deployment, application, logs }))
        })
        .await
    }

    async fn live(&self) -> Result<Arc<[LiveVersion]>, StoreError> {
        let (version, kept) = self.shared.read_cache.live();
        if let Some(kept) = kept.filter(|_| !self.shared.permits.is_closed()) {
            return Ok(kept);
        }
        let read = self.read(|connection| {
            let rows: Vec<(ApplicationRow, DeploymentRow)> = applications::table
                .inner_join(
                    deployments::table.on(applications::live_deployment_id.eq(deployments::id.nullable())),
                )
                // The join implies it, but PostgreSQL uses the index of live versions only with this
                // condition.
                .filter(applications::live_deployment_id.is_not_null())
                .filter(applications::deleted_at.is_null())
                .order(applications::id.asc())
                .select((ApplicationRow::as_select(), DeploymentRow::as_select()))
                .load(connection)?;
            let version = |(application, deployment): (ApplicationRow, DeploymentRow)| {
                let application = Application::try_from(application)?;
                Ok(LiveVersion { application, deployment: deployment.try_into()? })
            };
            rows.into_iter().map(version).collect::<Result<Arc<[_]>, QueryError>>()
        });
        let live = read.await?;
        if let Some(version) = version {
            self.shared.read_cache.cache_live(version, &live);
        }
        Ok(live)
    }

    async fn unretired(&self) -> Result<Vec<Deployment>, StoreError> {
        self.read(|connection| {
            let is_live = applications::live_deployment_id.eq(deployments::id.nullable());
            let rows: Vec<DeploymentRow> = deployments::table
                .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
                .filter(applications::deleted_at.is_null())
                .filter(applications::live_deployment_id.is_not_null())
                .filter(diesel::dsl::not(is_live.assume_not_null()))
                .filter(deployments::status.eq(DeploymentState::Deployed.as_str()))
                .filter(deployments::container_state.ne(ContainerState::Removed.as_str()))
                .order(deployments::id.asc())
                .select(DeploymentRow::as_select())
                .load(connection)?;
            rows.into_iter().map(Deployment::try_from).collect()
        })
        .await
    }

    async fn live_addresses(&self) -> Result<Vec<IpAddr>, StoreError> {
        self.read(|connection| {
            let stored: Vec<(Option<String>, Option<String>)> = applications::table
                .inner_join(
                    deployments::table.on(applications::live_deployment_id.eq(deployments::id.nullable())),
                )
                .filter(applications::live_deployment_id.is_not_null())
                .filter(applications::deleted_at.is_null())
                .filter(
                    deployments::container_address
                        .is_not_null()
                        .or(deployments::further_copies.is_not_null()),
                )
                .select((deployments::container_address, deployments::further_copies))
                .load(connection)?;
            let mut of_copies = Vec::new();
            for (_, further_copies) in &stored {
                of_copies.extend(
                    copies::read(further_copies.as_deref())?.into_iter().filter_map(|copy| copy.address),
                );
            }
            let of_extensions: Vec<String> =
                extension_routes::table.select(extension_routes::address).load(connection)?;
            let stored = stored.into_iter().filter_map(|(address, _)| address).chain(of_extensions);
            let addresses = stored.map(|address| address.parse()).collect::<Result<Vec<IpAddr>, _>>();
            Ok(addresses.map_err(QueryError::unreadable)?.into_iter().chain(of_copies).collect())
        })
        .await
    }

    async fn retention_status(
        &self,
        deployments: &[DeploymentId],
        kept: KeptVersions,
    ) -> Result<Vec<RetentionStatus>, StoreError> {
        let mut ids: Vec<DbId> = deployments.iter().copied().map(DbId::from).collect();
        // The same question may come in another order.
        ids.sort_unstable_by_key(|id| id.0);
        let (version, known) = self.shared.read_cache.retention(&ids, kept);
        if let Some(known) = known.filter(|_| !self.shared.permits.is_closed()) {
            return Ok(known);
        }
        let asked = ids.clone();
        let read = self.read(move |connection| {
            let mut retention_status = Vec::with_capacity(asked.len());
            for some in asked.chunks(AT_ONCE) {
                retention_status.extend(standing_of(connection, some, kept)?);
            }
            Ok(retention_status)
        });
        let statuses = read.await?;
        if let Some(version) = version {
            self.shared
                .read_cache
                .cache_retention(version, Retention { ids, kept, statuses: statuses.clone() });
        }
        Ok(statuses)
    }
}

/// Returns the newest deployment of an application.
pub(super) fn newest_of(
    connection: &mut AnyConnection,
    scope: Scope,
    application: ApplicationId,
) -> Result<Option<Deployment>, QueryError> {
    let row: Option<DeploymentRow> = deployments::table
        .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
        .filter(deployments::application_id.eq(DbId::from(application)))
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::deleted_at.is_null())
        .order((deployments::created_at.desc(), deployments::id.desc()))
        .select(DeploymentRow::as_select())
        .first(connection)
        .optional()?;
    row.map(Deployment::try_from).transpose()
}

/// Returns one deployment of an application that is not deleted.
fn visible(
    connection: &mut AnyConnection,
    scope: Scope,
    id: DeploymentId,
) -> Result<Option<Deployment>, QueryError> {
    let row: Option<DeploymentRow> = deployments::table
        .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
        .filter(deployments::id.eq(DbId::from(id)))
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::deleted_at.is_null())
        .select(DeploymentRow::as_select())
        .first(connection)
        .optional()?;
    row.map(Deployment::try_from).transpose()
}

/// Returns those of several deployments whose application is not deleted. Without a join, because PostgreSQL would read
/// every deployment of the organization for it.
fn visible_of(
    connection: &mut AnyConnection,
    scope: Scope,
    ids: &[DbId],
) -> Result<Vec<Deployment>, QueryError> {
    let rows: Vec<(DeploymentRow, Option<bool>)> = each_backend!(connection, backend => deployments::table
        .filter(deployments::id.one_of(ids.to_vec()))
        .filter(deployments::organization_id.eq(DbId::from(scope.id())))
        .select((DeploymentRow::as_select(), has_application()))
        .load(backend))?;
    let there = rows.into_iter().filter(|(_, is_there)| *is_there == Some(true));
    there.map(|(row, _)| Deployment::try_from(row)).collect()
}

fn page_of(
    connection: &mut AnyConnection,
    scope: Scope,
    application: ApplicationId,
    page: PageRequest,
) -> Result<Page<Deployment>, QueryError> {
    let is_visible = applications::table
        .find(DbId::from(application))
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::deleted_at.is_null());
    if !diesel::select(exists(is_visible)).get_result(connection)? {
        return Ok(Page { items: Vec::new(), request: page, total: 0 });
    }
    // Without a join, so that the index alone has the number.
    let of_application = deployments::table.filter(deployments::application_id.eq(DbId::from(application)));
    let total = of_application.count().get_result(connection)?;
    let rows: Vec<DeploymentRow> = of_application
        .order((deployments::created_at.desc(), deployments::id.desc()))
        .limit(page.size())
        .offset(page.offset())
        .select(DeploymentRow::as_select())
        .load(connection)?;
    let items = rows.into_iter().map(Deployment::try_from).collect::<Result<_, _>>()?;
    Ok(Page { items, request: page, total })
}

/// The newest deployments of an application, at most `limit`, newest first.
pub(super) fn newest(
    connection: &mut AnyConnection,
    application: ApplicationId,
    limit: i64,
) -> Result<Vec<Deployment>, QueryError> {
    let rows: Vec<DeploymentRow> = deployments::table
        .filter(deployments::application_id.eq(DbId::from(application)))
        .order((deployments::created_at.desc(), deployments::id.desc()))
        .limit(limit)
        .select(DeploymentRow::as_select())
        .load(connection)?;
    rows.into_iter().map(Deployment::try_from).collect()
}

/// Returns the state of the newest open deployment of each of `applications` that has one.
pub(super) fn newest_open(
    connection: &mut AnyConnection,
    applications: Vec<DbId>,
) -> Result<HashMap<Uuid, DeploymentState>, QueryError> {
    if applications.is_empty() {
        return Ok(HashMap::new());
    }
    let open: Vec<(DbId, String)> = deployments::table
        .filter(is_open())
        .filter(deployments::application_id.one_of(applications))
        .order((deployments::created_at.asc(), deployments::id.asc()))
        .select((deployments::application_id, deployments::status))
        .load(connection)?;
    // The last one of each application wins.
    open.into_iter().map(|(application, status)| Ok((application.0, state(status)?))).collect()
}

fn state(stored: String) -> Result<DeploymentState, QueryError> {
    DeploymentState::try_from(stored).map_err(QueryError::unreadable)
}

type StandingRow = (DbId, DbId, String, Option<DbId>, Option<DbTs>);

fn standing_of(
    connection: &mut AnyConnection,
    ids: &[DbId],
    kept: KeptVersions,
) -> Result<Vec<RetentionStatus>, QueryError> {
    let rows: Vec<StandingRow> = deployments::table
        .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
        .filter(deployments::id.one_of(ids.to_vec()))
        .order(deployments::id.asc())
        .select((
            deployments::id,
            deployments::application_id,
            deployments::status,
            applications::live_deployment_id,
            applications::deleted_at,
        ))
        .load(connection)?;
    let mut wanted: HashMap<Uuid, Wanted> = HashMap::new();
    let mut retention_status = |(id, application, status, live, deleted_at): StandingRow| {
        let (state, is_there) = (state(status)?, deleted_at.is_none());
        let is_live = is_there && live == Some(id);
        // A live version is kept in any case, and most are live: the others are read only where there are some.
        let mut is_wanted = || {
            let wanted = match wanted.entry(application.0) {
                Entry::Occupied(wanted) => wanted.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(Wanted::newest(connection, application, kept)?),
            };
            wanted.contains(connection, (id, application), live)
        };
        Ok(RetentionStatus {
            deployment: id.into(),
            is_live,
            is_open: !state.is_final(),
            is_worth_keeping: is_there && state == DeploymentState::Deployed && (is_live || is_wanted()?),
        })
    };
    rows.into_iter().map(&mut retention_status).collect()
}

/// The deployments of an application whose versions are kept. Most are among the newest ones; the others are read only for
/// one that is not.
struct Wanted {
    newest: Vec<DbId>,
    all: Option<HashSet<Uuid>>,
}

impl Wanted {
    fn newest(
        connection: &mut AnyConnection,
        application: DbId,
        kept: KeptVersions,
    ) -> Result<Self, QueryError> {
        let newest = deployments::table
            .filter(deployments::application_id.eq(application))
            .filter(deployments::status.eq(DeploymentState::Deployed.as_str()))
            .order((deployments::created_at.desc(), deployments::id.desc()))
            .limit(kept.0.into())
            .select(deployments::id)
            .load(connection)?;
        Ok(Self { newest, all: None })
    }

    fn contains(
        &mut self,
        connection: &mut AnyConnection,
        (id, application): (DbId, DbId),
        live: Option<DbId>,
    ) -> Result<bool, QueryError> {
        if self.newest.contains(&id) {
            return Ok(true);
        }
        let all = match &mut self.all {
            Some(all) => all,
            unread => unread.insert(wanted_of(connection, application, &self.newest, live)?),
        };
        Ok(all.contains(&id.0))
    }
}

/// Returns the newest deployments of an application, the open ones and the live one, and those that they were rolled back
/// to, because they may share their files.
fn wanted_of(
    connection: &mut AnyConnection,
    application: DbId,
    newest: &[DbId],
    live: Option<DbId>,
) -> Result<HashSet<Uuid>, QueryError> {
    let about_to_be: Vec<DbId> = deployments::table
        .filter(deployments::application_id.eq(application))
        .filter(is_open())
        .select(deployments::id)
        .load(connection)?;
    let mut wanted = HashSet::new();
    let mut more: Vec<DbId> = newest.iter().copied().chain(about_to_be).chain(live).collect();
    while !more.is_empty() {
        let found: Vec<(DbId, Option<DbId>)> = deployments::table
            .filter(deployments::id.one_of(more))
            .select((deployments::id, deployments::rollback_to))
            .load(connection)?;
        wanted.extend(found.iter().map(|(id, _)| id.0));
        more = found.into_iter().filter_map(|(_, to)| to).filter(|to| !wanted.contains(&to.0)).collect();
    }
    Ok(wanted)
}
