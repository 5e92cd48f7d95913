//! Implements the repositories and the queue over a store of records.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use async_trait::async_trait;
use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationFilter, ApplicationRepository, ApplicationSummary,
        ImageRef, NamedApplication,
    },
    audit::{AuditRepository, Chain, ChainHead, Entry, Filter, Link},
    auth::Actor,
    clock::Timestamp,
    deployments::{
        Deployment, DeploymentDetail, DeploymentRepository, KeptVersions, LiveVersion, RetentionStatus,
    },
    ids::{ApplicationId, BootId, DeploymentId, InstanceId, JobId, SubjectId},
    jobs::{ClaimLimits, ClaimedJob, Heartbeat, Job, JobQueue, JobState, Lease, Rescued, WorkerId},
    logs::{LogFilter, LogLine, LogReader, LogSink, NewLine},
    organizations::Scope,
    page::{Page, PageRequest},
    store::{StoreError, UnitOfWork, Write},
};

use crate::{
    records::{Records, Retention},
    store::{Change, Store},
};

/// Implements the ports over a store.
#[derive(Clone)]
pub(crate) struct Repositories(pub(crate) Arc<dyn Store>);

impl Repositories {
    async fn change<T: Send>(
        &self,
        change: impl FnOnce(&mut Records) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        let mut result = None;
        let into = &mut result;
        let transaction: Change<'_> = Box::new(move |records| {
            *into = Some(change(records)?);
            Ok(())
        });
        self.0.change(transaction).await?;
        result.ok_or_else(ignored)
    }

    async fn read<T: Send>(&self, query: impl FnOnce(&Records) -> T + Send) -> Result<T, StoreError> {
        let mut result = None;
        let into = &mut result;
        self.0.read(Box::new(move |records| *into = Some(query(records)))).await?;
        result.ok_or_else(ignored)
    }

    /// Records the user and the organizations of an actor, unless they are recorded as they are.
    pub(crate) async fn know(&self, actor: &Actor) -> Result<(), StoreError> {
        if self.read(|records| records.is_known(actor)).await? {
            return Ok(());
        }
        self.change(|records| {
            records.know(actor);
            Ok(())
        })
        .await
    }

    pub(crate) async fn artifact(&self, deployment: DeploymentId) -> Result<Option<ImageRef>, StoreError> {
        self.read(|records| records.artifact(deployment).cloned()).await
    }

    pub(crate) async fn record_artifact(
        &self,
        deployment: DeploymentId,
        image: ImageRef,
    ) -> Result<(), StoreError> {
        self.change(|records| {
            records.record_artifact(deployment, image);
            Ok(())
        })
        .await
    }

    /// Returns those of the deployments that are recorded, including those of deleted applications.
    pub(crate) async fn recorded(
        &self,
        ids: Vec<DeploymentId>,
    ) -> Result<HashMap<DeploymentId, Deployment>, StoreError> {
        self.read(move |records| {
            let found = ids.into_iter().filter_map(|id| Some((id, records.recorded_deployment(id)?.clone())));
            found.collect()
        })
        .await
    }

    pub(crate) async fn counts(&self) -> Result<BTreeMap<&'static str, usize>, StoreError> {
        self.read(Records::counts).await
    }

    /// Deletes what is older than its retention.
    pub(crate) async fn retain(
        &self,
        retention: Retention,
        kept: KeptVersions,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        self.change(|records| Ok(records.trim(retention, kept, now))).await
    }
}

fn ignored() -> StoreError {
    StoreError::Internal("the store did not run the transaction".into())
}

#[async_trait]
impl UnitOfWork for Repositories {
    async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.change(|records| records.commit(&writes)).await
    }
}

#[async_trait]
impl ApplicationRepository for Repositories {
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
            paged(summaries, page, |summary| summary)
        })
        .await
    }

    async fn get(&self, scope: Scope, id: ApplicationId) -> Result<Option<Application>, StoreError> {
        self.read(|records| records.application(scope, id).map(|summary| summary.application)).await
    }

    async fn detail(&self, scope: Scope, id: ApplicationId) -> Result<Option<ApplicationDetail>, StoreError> {
        self.read(|records| {
            let summary = records.application(scope, id)?;
            let deployments = records.deployments_of(id).take(usize_of(ApplicationDetail::DEPLOYMENTS));
            let deployments = deployments.cloned().collect();
            let logs = records.newest_lines(id, ApplicationDetail::LOGS, |_| true);
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

/// Returns a page of `all`. Only the items of the page are converted.
fn paged<T, U>(all: impl Iterator<Item = T>, request: PageRequest, convert: impl Fn(T) -> U) -> Page<U> {
    let (offset, size) = (usize_of(request.offset()), usize_of(request.size()));
    let (mut items, mut total) = (Vec::new(), 0);
    for (number, item) in all.enumerate() {
        total += 1;
        if (offset..offset.saturating_add(size)).contains(&number) {
            items.push(convert(item));
        }
    }
    Page { items, request, total }
}

/// Converts a number that is never negative.
fn usize_of(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[async_trait]
impl DeploymentRepository for Repositories {
    async fn page(
        &self,
        scope: Scope,
        application: ApplicationId,
        page: PageRequest,
    ) -> Result<Page<Deployment>, StoreError> {
        self.read(|records| {
            let is_there = records.application(scope, application).is_some();
            paged(records.deployments_of(application).filter(|_| is_there), page, Deployment::clone)
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

    async fn newest(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<Deployment>, StoreError> {
        self.read(|records| {
            let known = applications.iter().filter(|id| records.application(scope, **id).is_some());
            known.filter_map(|id| records.deployments_of(*id).next()).cloned().collect()
        })
        .await
    }

    async fn detail(&self, scope: Scope, id: DeploymentId) -> Result<Option<DeploymentDetail>, StoreError> {
        self.read(|records| records.deployment_detail(scope, id)).await
    }

    async fn live(&self) -> Result<Arc<[LiveVersion]>, StoreError> {
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
        self.read(|records| records.unretired().cloned().collect()).await
    }

    async fn live_addresses(&self) -> Result<Vec<IpAddr>, StoreError> {
        let live = self.live().await?;
        let containers = live.iter().flat_map(|version| version.deployment.copies());
        Ok(containers.filter_map(|container| container.address).collect())
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
impl LogSink for Repositories {
    async fn append(&self, lines: Vec<NewLine>) -> Result<(), StoreError> {
        self.change(|records| {
            records.append(&lines);
            Ok(())
        })
        .await
    }

    async fn trim(&self, keep: i64) -> Result<usize, StoreError> {
        self.change(|records| Ok(records.trim_lines(keep))).await
    }
}

#[async_trait]
impl LogReader for Repositories {
    async fn page(
        &self,
        scope: Scope,
        application: ApplicationId,
        filter: &LogFilter,
        page: PageRequest,
    ) -> Result<Option<Page<LogLine>>, StoreError> {
        self.read(|records| {
            records.application(scope, application)?;
            Some(paged(records.lines_after(application, filter, 0).rev(), page, LogLine::clone))
        })
        .await
    }

    async fn after(
        &self,
        scope: Scope,
        application: ApplicationId,
        filter: &LogFilter,
        after: i64,
        limit: i64,
    ) -> Result<Option<Vec<LogLine>>, StoreError> {
        self.read(|records| {
            records.application(scope, application)?;
            let lines = records.lines_after(application, filter, after).take(usize_of(limit));
            Some(lines.cloned().collect())
        })
        .await
    }

    async fn last_printed(&self, deployment: DeploymentId) -> Result<Option<Timestamp>, StoreError> {
        self.read(|records| records.last_printed(deployment)).await
    }
}

#[async_trait]
impl AuditRepository for Repositories {
    async fn page(
        &self,
        scope: Scope,
        filter: &Filter,
        page: PageRequest,
    ) -> Result<Page<Entry>, StoreError> {
        self.read(|records| paged(records.audit_log(scope, filter), page, Entry::clone)).await
    }

    /// There are no hash chains: whoever can change the store could change them too.
    async fn heads(&self) -> Result<Vec<ChainHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn links(&self, _: Chain, _: i64, _: i64) -> Result<Vec<Link>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl JobQueue for Repositories {
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
