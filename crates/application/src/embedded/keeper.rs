//! The records of an embedding service, adapted to the ports of deployments.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationFilter, ApplicationRepository, ApplicationSummary,
        NamedApplication,
    },
    clock::Timestamp,
    deployments::{
        ContainerState, Deployment, DeploymentDetail, DeploymentRepository, DeploymentState, KeptVersions,
        LiveVersion, RetentionStatus,
    },
    ids::{ApplicationId, BootId, DeploymentId, InstanceId, JobId, SubjectId},
    jobs::{ClaimLimits, ClaimedJob, Heartbeat, Job, JobQueue, JobState, Lease, Rescued, WorkerId},
    logs::{LogSink, NewLine},
    organizations::Scope,
    page::{Page, PageRequest},
    records::Records,
    store::{StoreError, UnitOfWork, Write},
};

/// A transaction on the records.
pub type Visit<'a> = Box<dyn FnOnce(&mut Records) -> Result<(), StoreError> + Send + 'a>;

/// Stores records.
///
/// Implementations guarantee that transactions are serial and see the changes of earlier ones. When the
/// call returns `Ok`, the changes are as durable as the service requires. A transaction that returns an
/// error has changed nothing.
#[async_trait]
pub trait RecordKeeper: Send + Sync {
    /// Runs a transaction and returns its result.
    ///
    /// # Errors
    /// The error of the transaction; [`StoreError::Unavailable`] or [`StoreError::Internal`] when it cannot
    /// run or its changes cannot be stored.
    async fn visit(&self, visit: Visit<'_>) -> Result<(), StoreError>;
}

/// Implements the ports over a keeper.
#[derive(Clone)]
pub(super) struct Kept(pub(super) Arc<dyn RecordKeeper>);

impl Kept {
    async fn change<T: Send>(
        &self,
        change: impl FnOnce(&mut Records) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        let mut found = None;
        let into = &mut found;
        let visit: Visit<'_> = Box::new(move |records| {
            *into = Some(change(records)?);
            Ok(())
        });
        self.0.visit(visit).await?;
        found.ok_or_else(|| StoreError::Internal("the keeper of records let nobody in".into()))
    }

    /// Returns the deployments whose container is not recorded as removed, including those of deleted
    /// applications.
    pub(super) async fn not_removed(&self) -> Result<Vec<Deployment>, StoreError> {
        let is_removed = |found: &&Deployment| {
            found.container.as_ref().is_some_and(|container| container.state == ContainerState::Removed)
        };
        self.read(|records| records.deployments().filter(|found| !is_removed(found)).cloned().collect()).await
    }

    async fn read<T: Send>(&self, look: impl FnOnce(&Records) -> T + Send) -> Result<T, StoreError> {
        self.change(|records| Ok(look(records))).await
    }
}

#[async_trait]
impl UnitOfWork for Kept {
    async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.change(|records| records.commit(&writes)).await
    }
}

#[async_trait]
impl ApplicationRepository for Kept {
    async fn page(
        &self,
        scope: Scope,
        filter: &ApplicationFilter,
        page: PageRequest,
    ) -> Result<Page<ApplicationSummary>, StoreError> {
        self.read(|records| {
            let mut wanted: Vec<&Application> = records
                .applications()
                .filter(|found| found.organization_id == scope.id() && is_wanted(found, filter))
                .collect();
            wanted.sort_by_key(|found| std::cmp::Reverse((found.created_at, found.id)));
            let summaries = wanted.into_iter().filter_map(|found| records.application(scope, found.id));
            paged(summaries.collect(), page)
        })
        .await
    }

    async fn get(&self, scope: Scope, id: ApplicationId) -> Result<Option<Application>, StoreError> {
        self.read(|records| records.application(scope, id).map(|summary| summary.application)).await
    }

    async fn detail(&self, scope: Scope, id: ApplicationId) -> Result<Option<ApplicationDetail>, StoreError> {
        self.read(|records| {
            let summary = records.application(scope, id)?;
            let deployments = records.deployments().filter(|found| found.application_id == id);
            let deployments = deployments.take(usize_of(ApplicationDetail::DEPLOYMENTS)).cloned().collect();
            let newest = records.lines().iter().rev().filter(|line| line.application_id == id);
            let mut logs: Vec<_> = newest.take(usize_of(ApplicationDetail::LOGS)).cloned().collect();
            logs.reverse();
            Some(ApplicationDetail { summary, deployments, logs })
        })
        .await
    }

    async fn named(&self) -> Result<Vec<NamedApplication>, StoreError> {
        self.read(|records| {
            let named = records.applications().map(|found| NamedApplication {
                id: found.id,
                hosts: found.hosts().map(str::to_owned).collect(),
            });
            named.collect()
        })
        .await
    }

    async fn is_named(&self, host: &str) -> Result<bool, StoreError> {
        self.read(|records| records.is_named(host)).await
    }
}

fn is_wanted(found: &Application, filter: &ApplicationFilter) -> bool {
    let blueprint = &found.blueprint;
    let is_found = |text: &str| {
        let text = text.to_lowercase();
        let contains = |value: &str| value.to_lowercase().contains(&text);
        contains(blueprint.name.as_str())
            || contains(blueprint.repository.as_str())
            || blueprint.domain.iter().chain(&found.further_domains).any(|domain| contains(domain.as_str()))
    };
    filter.search.as_deref().is_none_or(is_found)
        && filter.environment.as_ref().is_none_or(|wanted| *wanted == blueprint.environment)
        && filter.state.is_none_or(|wanted| wanted == found.status.state)
}

fn paged<T>(all: Vec<T>, request: PageRequest) -> Page<T> {
    let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let items = all.into_iter().skip(usize_of(request.offset())).take(usize_of(request.size())).collect();
    Page { items, request, total }
}

/// Converts a number that is never negative.
fn usize_of(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[async_trait]
impl DeploymentRepository for Kept {
    async fn page(
        &self,
        scope: Scope,
        application: ApplicationId,
        page: PageRequest,
    ) -> Result<Page<Deployment>, StoreError> {
        self.read(|records| {
            let is_of = |found: &&Deployment| found.application_id == application;
            let is_there = records.application(scope, application).is_some();
            paged(records.deployments().filter(is_of).filter(|_| is_there).cloned().collect(), page)
        })
        .await
    }

    async fn get(&self, scope: Scope, id: DeploymentId) -> Result<Option<Deployment>, StoreError> {
        self.read(|records| records.deployment(scope, id).cloned()).await
    }

    async fn many(&self, scope: Scope, ids: &[DeploymentId]) -> Result<Vec<Deployment>, StoreError> {
        self.read(|records| ids.iter().filter_map(|id| records.deployment(scope, *id)).cloned().collect())
            .await
    }

    async fn detail(&self, scope: Scope, id: DeploymentId) -> Result<Option<DeploymentDetail>, StoreError> {
        self.read(|records| records.deployment_detail(scope, id)).await
    }

    async fn live(&self) -> Result<Vec<LiveVersion>, StoreError> {
        self.read(|records| {
            let live = records.applications().filter_map(|application| {
                let scope = Scope::of_record(application.organization_id);
                let deployment = records.deployment(scope, application.live?)?.clone();
                Some(LiveVersion { application: application.clone(), deployment })
            });
            live.collect()
        })
        .await
    }

    async fn unretired(&self) -> Result<Vec<Deployment>, StoreError> {
        let live: Vec<DeploymentId> =
            self.live().await?.iter().map(|version| version.deployment.id).collect();
        let not_removed = self.not_removed().await?;
        let is_unretired =
            |found: &Deployment| found.status.state == DeploymentState::Deployed && !live.contains(&found.id);
        Ok(not_removed.into_iter().filter(is_unretired).collect())
    }

    async fn live_addresses(&self) -> Result<Vec<IpAddr>, StoreError> {
        let live = self.live().await?;
        Ok(live.into_iter().filter_map(|version| version.deployment.container?.address).collect())
    }

    async fn retention_status(
        &self,
        deployments: &[DeploymentId],
        kept: KeptVersions,
    ) -> Result<Vec<RetentionStatus>, StoreError> {
        self.read(|records| deployments.iter().filter_map(|id| records.retention_status(*id, kept)).collect())
            .await
    }
}

#[async_trait]
impl LogSink for Kept {
    async fn append(&self, lines: Vec<NewLine>) -> Result<(), StoreError> {
        self.change(|records| {
            records.append(&lines);
            Ok(())
        })
        .await
    }

    async fn trim(&self, keep: i64) -> Result<usize, StoreError> {
        self.change(|records| Ok(records.trim(keep))).await
    }
}

#[async_trait]
impl JobQueue for Kept {
    async fn claim(
        &self,
        worker: &WorkerId,
        limits: ClaimLimits,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        self.change(|records| Ok(records.claim(*worker, limits, now, lease_until))).await
    }

    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<Heartbeat, StoreError> {
        self.change(|records| Ok(records.heartbeat(lease, until))).await
    }

    async fn release(&self, lease: &Lease, now: Timestamp) -> Result<JobState, StoreError> {
        self.change(|records| records.give_back(lease, "the worker had to stop", false, (now, now))).await
    }

    async fn retry(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError> {
        self.change(|records| records.give_back(lease, reason, true, (now, run_at))).await
    }

    async fn postpone(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError> {
        self.change(|records| records.give_back(lease, reason, false, (now, run_at))).await
    }

    async fn rescue(
        &self,
        instance: InstanceId,
        boot: BootId,
        now: Timestamp,
    ) -> Result<Vec<Rescued>, StoreError> {
        self.change(|records| Ok(records.rescue(instance, boot, now))).await
    }

    async fn forget(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.change(|records| Ok(records.forget_jobs(before))).await
    }

    async fn running(&self) -> Result<Vec<SubjectId>, StoreError> {
        self.read(|records| records.running().map(|job| job.subject).collect()).await
    }

    async fn get(&self, scope: Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        self.read(|records| records.job(scope, id).cloned()).await
    }
}
