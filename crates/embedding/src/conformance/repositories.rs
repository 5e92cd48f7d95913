//! Tests of repositories and the queue, whatever they are made of: a [`Store`](crate::Store), or a database.

use std::{pin::Pin, sync::Arc};

use launchway_domain::{
    applications::{ApplicationRepository, ApplicationState, Write as ApplicationWrite},
    audit::{AuditRepository, Filter},
    auth::Actor,
    deployments::{
        DeploymentRepository, DeploymentState, KeptVersions, RetentionStatus, Write as DeploymentWrite,
    },
    idempotency::{BodyHash, IdempotencyKey, Write as IdempotencyWrite},
    jobs::{ClaimedJob, Heartbeat, JobQueue, JobState, Outcome as Ended, Write as JobWrite},
    logs::{LogFilter, LogReader, LogSink, Write as LogWrite},
    page::PageRequest,
    store::{StoreError, Unique, UnitOfWork, Write},
};
use uuid::Uuid;

use super::{
    Failures, Outcome, Test, equal,
    fixtures::{LIMITS, NOW, Tenant, advance, at, id, text, worker},
    require, run, said,
};

/// The ports of deployments to stored records.
pub struct Ports {
    /// Commits changes.
    pub store: Arc<dyn UnitOfWork>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// The queue of jobs.
    pub jobs: Arc<dyn JobQueue>,
    /// Appends log lines.
    pub log_sink: Arc<dyn LogSink>,
    /// Reads log lines.
    pub log_reader: Arc<dyn LogReader>,
    /// Reads the audit log.
    pub audit: Arc<dyn AuditRepository>,
}

/// The future of a record of an actor.
pub type Knowing<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
/// Records the user and the organization of an actor.
type Know<'a> = &'a (dyn Fn(Actor) -> Knowing<'a> + Send + Sync);

/// Tests repositories. `know` records the user and the organization of an actor.
///
/// # Errors
/// The tests that failed.
pub async fn check_repositories<'a>(ports: &'a Ports, know: Know<'a>) -> Result<(), Failures> {
    let all = Suite { ports, know };
    run(vec![
        ("a unit is carried out whole or not at all", Box::pin(all.unit()) as Test<'_>),
        ("a change needs an audit entry", Box::pin(all.audited())),
        ("organizations see only what is theirs", Box::pin(all.scoped())),
        ("names are unique in an organization", Box::pin(all.named())),
        ("a deployment goes live", Box::pin(all.goes_live())),
        ("a failed job fails its deployment", Box::pin(all.fails())),
        ("a newer deployment replaces a queued one", Box::pin(all.superseded())),
        ("a lease holds until it is lost", Box::pin(all.leased())),
        ("a cancelled job ends", Box::pin(all.cancelled())),
        ("attempts are counted", Box::pin(all.attempts())),
        ("a request is carried out once", Box::pin(all.idempotent())),
        ("log lines are numbered", Box::pin(all.logged())),
        ("the audit log is read newest first", Box::pin(all.audit_log())),
        ("versions are kept for rollbacks", Box::pin(all.kept())),
    ])
    .await
}

#[derive(Clone, Copy)]
struct Suite<'a> {
    ports: &'a Ports,
    know: Know<'a>,
}

impl Suite<'_> {
    async fn commit(&self, writes: Vec<Write>) -> Outcome {
        self.ports.store.commit(writes).await.map_err(said)
    }

    /// Records a new tenant with its application.
    async fn tenant(&self) -> Result<Tenant, String> {
        let tenant = Tenant::new();
        (self.know)(tenant.actor.clone()).await?;
        self.commit(tenant.insert()).await?;
        Ok(tenant)
    }

    /// Claims the job of a tenant. Other tests leave none.
    async fn claim(&self, tenant: &Tenant, seconds: i64) -> Result<ClaimedJob, String> {
        let claimed = self.ports.jobs.claim(&worker(1), LIMITS, at(seconds), at(seconds + 30)).await;
        let claimed = claimed.map_err(said)?.ok_or("a job that is due is not claimed")?;
        equal(claimed.job.scope, tenant.scope(), "the organization of the claimed job")?;
        Ok(claimed)
    }

    async fn settle(&self, tenant: &Tenant, claimed: &ClaimedJob, outcome: Ended) -> Outcome {
        let settle = JobWrite::Settle { lease: claimed.lease, outcome, at: NOW };
        self.commit(vec![settle.into(), tenant.follow()]).await
    }

    async fn state(
        &self,
        tenant: &Tenant,
        id: launchway_domain::ids::DeploymentId,
    ) -> Result<DeploymentState, String> {
        let found = self.ports.deployments.get(tenant.scope(), id).await.map_err(said)?;
        Ok(found.ok_or("the deployment is not found")?.status.state)
    }

    async fn unit(self) -> Outcome {
        let tenant = self.tenant().await?;
        let another = tenant.another("api");
        let application = another.id;
        let stale = DeploymentWrite::GoLive { id: id(), at: NOW };
        let writes = vec![ApplicationWrite::Insert(Box::new(another)).into(), stale.into(), tenant.entry()];
        let failed = self.ports.store.commit(writes).await;
        require(matches!(failed, Err(StoreError::Stale)), "a write on nothing is not stale")?;
        let found = self.ports.applications.get(tenant.scope(), application).await.map_err(said)?;
        require(found.is_none(), "the first write of a failed unit was kept")
    }

    async fn audited(self) -> Outcome {
        let tenant = self.tenant().await?;
        let insert = ApplicationWrite::Insert(Box::new(tenant.another("api")));
        let failed = self.ports.store.commit(vec![insert.into()]).await;
        require(matches!(failed, Err(StoreError::Unaudited)), "a change without an audit entry was made")
    }

    async fn scoped(self) -> Outcome {
        let (tenant, other) = (self.tenant().await?, self.tenant().await?);
        let (deployment, job, writes) = tenant.request();
        self.commit(writes).await?;
        let ports = self.ports;
        let application = ports.applications.get(other.scope(), tenant.id()).await.map_err(said)?;
        require(application.is_none(), "another organization sees the application")?;
        let found = ports.deployments.get(other.scope(), deployment).await.map_err(said)?;
        require(found.is_none(), "another organization sees the deployment")?;
        let found = ports.jobs.get(other.scope(), job).await.map_err(said)?;
        require(found.is_none(), "another organization sees the job")?;
        let delete = ApplicationWrite::Delete { scope: other.scope(), id: tenant.id(), at: NOW };
        let failed = ports.store.commit(vec![delete.into(), other.entry()]).await;
        require(matches!(failed, Err(StoreError::Stale)), "another organization deletes the application")?;
        let claimed = self.claim(&tenant, 0).await?;
        self.settle(&tenant, &claimed, Ended::Cancelled).await
    }

    async fn named(self) -> Outcome {
        let (tenant, other) = (self.tenant().await?, self.tenant().await?);
        let insert = |one| ApplicationWrite::Insert(Box::new(one)).into();
        let failed = self.ports.store.commit(vec![insert(tenant.another("web")), tenant.entry()]).await;
        let is_taken = matches!(failed, Err(StoreError::Taken(Unique::ApplicationName)));
        require(is_taken, "two applications of an organization have one name")?;
        let mut same_host = other.another("shop");
        same_host.automatic_host = tenant.application.automatic_host.clone();
        let id = same_host.id;
        self.commit(vec![insert(same_host), other.entry()]).await?;
        let found = self.ports.applications.get(other.scope(), id).await.map_err(said)?;
        let host = found.map(|found| found.automatic_host);
        require(host != Some(tenant.application.automatic_host), "two applications have one host name")
    }

    async fn goes_live(self) -> Outcome {
        let tenant = self.tenant().await?;
        let (deployment, _, writes) = tenant.request();
        self.commit(writes).await?;
        equal(self.state(&tenant, deployment).await?, DeploymentState::Queued, "a new deployment")?;
        let claimed = self.claim(&tenant, 0).await?;
        self.commit(vec![advance(deployment, DeploymentState::Deploying)]).await?;
        let back = self.ports.store.commit(vec![advance(deployment, DeploymentState::Cloning)]).await;
        require(matches!(back, Err(StoreError::Stale)), "a deployment goes backward")?;
        let live = DeploymentWrite::GoLive { id: deployment, at: NOW };
        self.commit(vec![live.into(), advance(deployment, DeploymentState::Deployed)]).await?;
        self.settle(&tenant, &claimed, Ended::Succeeded).await?;
        let found = self.ports.applications.get(tenant.scope(), tenant.id()).await.map_err(said)?;
        let shown = found.map(|found| (found.live, found.status.state));
        equal(shown, Some((Some(deployment), ApplicationState::Running)), "the application")?;
        let live = self.ports.deployments.live().await.map_err(said)?;
        require(live.iter().any(|one| one.deployment.id == deployment), "the live version is not listed")
    }

    async fn fails(self) -> Outcome {
        let tenant = self.tenant().await?;
        let (deployment, _, writes) = tenant.request();
        self.commit(writes).await?;
        let claimed = self.claim(&tenant, 0).await?;
        self.settle(&tenant, &claimed, Ended::Failed { reason: "no such image".to_owned() }).await?;
        equal(self.state(&tenant, deployment).await?, DeploymentState::Failed, "a failed deployment")?;
        let detail = self.ports.deployments.detail(tenant.scope(), deployment).await.map_err(said)?;
        let detail = detail.ok_or("the deployment is not found")?;
        let last = detail.logs.last().map(|line| line.text.as_str());
        equal(last, Some("Failed: no such image"), "the last line of its log")
    }

    async fn superseded(self) -> Outcome {
        let tenant = self.tenant().await?;
        let (older, _, writes) = tenant.request();
        self.commit(writes).await?;
        let (newer, _, writes) = tenant.request();
        self.commit(writes).await?;
        equal(self.state(&tenant, older).await?, DeploymentState::Cancelled, "the older one")?;
        let claimed = self.claim(&tenant, 0).await?;
        equal(claimed.job.payload.clone(), newer.to_string(), "the claimed deployment")?;
        let (_, waiting, writes) = tenant.request();
        self.commit(writes).await?;
        let second = self.ports.jobs.claim(&worker(1), LIMITS, NOW, at(30)).await.map_err(said)?;
        require(second.is_none(), "two jobs of one application run at once")?;
        self.settle(&tenant, &claimed, Ended::Succeeded).await?;
        let claimed = self.claim(&tenant, 0).await?;
        equal(claimed.job.id, waiting, "the next job")?;
        self.settle(&tenant, &claimed, Ended::Succeeded).await
    }

    async fn leased(self) -> Outcome {
        let tenant = self.tenant().await?;
        let (_, _, writes) = tenant.request();
        self.commit(writes).await?;
        let claimed = self.claim(&tenant, 0).await?;
        let jobs = &self.ports.jobs;
        let (instance, boot) = (Uuid::from_u128(1).into(), Uuid::from_u128(1).into());
        let rescued = jobs.rescue(instance, boot, at(29)).await.map_err(said)?;
        require(rescued.is_empty(), "a job is taken from a worker that holds its lease")?;
        let beat = jobs.heartbeat(&claimed.lease, at(60)).await.map_err(said)?;
        equal(beat, Heartbeat::Held, "a heartbeat")?;
        let rescued = jobs.rescue(instance, boot, at(59)).await.map_err(said)?;
        require(rescued.is_empty(), "a heartbeat does not extend the lease")?;
        let rescued = jobs.rescue(instance, boot, at(61)).await.map_err(said)?;
        equal(rescued.len(), 1, "the jobs of a lost worker")?;
        let beat = jobs.heartbeat(&claimed.lease, at(90)).await.map_err(said)?;
        equal(beat, Heartbeat::Lost, "a heartbeat after the job was taken")?;
        let proof = self.ports.store.commit(vec![JobWrite::Prove(claimed.lease).into()]).await;
        require(matches!(proof, Err(StoreError::Stale)), "a lost lease is proof")?;
        self.claim(&tenant, 61).await?;
        let rescued = jobs.rescue(instance, Uuid::from_u128(2).into(), at(62)).await.map_err(said)?;
        equal(rescued.len(), 1, "the jobs of an earlier run")?;
        let claimed = self.claim(&tenant, 62).await?;
        self.settle(&tenant, &claimed, Ended::Succeeded).await
    }

    async fn cancelled(self) -> Outcome {
        let tenant = self.tenant().await?;
        let cancel = |id| JobWrite::RequestCancel { scope: tenant.scope(), id, at: NOW }.into();
        let (deployment, job, writes) = tenant.request();
        self.commit(writes).await?;
        self.commit(vec![cancel(job), tenant.follow(), tenant.entry()]).await?;
        equal(self.state(&tenant, deployment).await?, DeploymentState::Cancelled, "a queued one")?;
        let (_, job, writes) = tenant.request();
        self.commit(writes).await?;
        let claimed = self.claim(&tenant, 0).await?;
        self.commit(vec![cancel(job), tenant.entry()]).await?;
        let beat = self.ports.jobs.heartbeat(&claimed.lease, at(30)).await.map_err(said)?;
        equal(beat, Heartbeat::CancelRequested, "the heartbeat of a running one")?;
        self.settle(&tenant, &claimed, Ended::Cancelled).await?;
        let again = self.ports.store.commit(vec![cancel(job), tenant.entry()]).await;
        require(matches!(again, Err(StoreError::Stale)), "a job that is over is cancelled")
    }

    async fn attempts(self) -> Outcome {
        let tenant = self.tenant().await?;
        let (_, _, writes) = tenant.request();
        self.commit(writes).await?;
        for expected in [JobState::Queued, JobState::Queued, JobState::Failed] {
            let claimed = self.claim(&tenant, 0).await?;
            let state = self.ports.jobs.retry(&claimed.lease, "no", NOW, NOW).await.map_err(said)?;
            equal(state, expected, "the job after a failed attempt")?;
        }
        self.commit(vec![tenant.follow()]).await
    }

    async fn idempotent(self) -> Outcome {
        let tenant = self.tenant().await?;
        let key = IdempotencyKey {
            scope: tenant.scope(),
            user_id: tenant.actor.user_id(),
            operation: "deploy".to_owned(),
            name: text("first"),
            body: BodyHash([0; 32]),
        };
        let claim = |at: launchway_domain::clock::Timestamp| {
            let since = at - IdempotencyKey::KEPT;
            vec![IdempotencyWrite::Claim { key: key.clone(), resource: id(), since, at }.into()]
        };
        self.commit(claim(NOW)).await?;
        let again = self.ports.store.commit(claim(at(1))).await;
        let is_taken = matches!(again, Err(StoreError::Taken(Unique::IdempotencyKey)));
        require(is_taken, "a repeated request is carried out again")
    }

    async fn logged(self) -> Outcome {
        let tenant = self.tenant().await?;
        let (deployment, _, writes) = tenant.request();
        self.commit(writes).await?;
        let claimed = self.claim(&tenant, 0).await?;
        let lines = ["one", "two", "three"].map(|text| tenant.line(deployment, text));
        let [one, two, three] = lines;
        self.commit(vec![LogWrite::Append(vec![one, two]).into()]).await?;
        self.ports.log_sink.append(vec![three]).await.map_err(said)?;
        let filter = LogFilter { deployment: Some(deployment), ..LogFilter::default() };
        let reader = &self.ports.log_reader;
        let after = |number| reader.after(tenant.scope(), tenant.id(), &filter, number, 10);
        let read = after(1).await.map_err(said)?.ok_or("the application is not found")?;
        let read: Vec<_> = read.iter().map(|line| (line.number, line.text.as_str())).collect();
        equal(read, vec![(2, "two"), (3, "three")], "the lines after the first")?;
        let other = self.tenant().await?;
        let read = reader.after(other.scope(), tenant.id(), &filter, 0, 10).await.map_err(said)?;
        require(read.is_none(), "another organization reads the log")?;
        self.settle(&tenant, &claimed, Ended::Succeeded).await
    }

    async fn audit_log(self) -> Outcome {
        let tenant = self.tenant().await?;
        let delete = ApplicationWrite::Delete { scope: tenant.scope(), id: tenant.id(), at: NOW };
        let newest = tenant.entry();
        self.commit(vec![delete.into(), newest.clone()]).await?;
        let page = PageRequest::new(1, 10, 10).map_err(said)?;
        let read = self.ports.audit.page(tenant.scope(), &Filter::default(), page).await.map_err(said)?;
        equal(read.total, 2, "the entries of the organization")?;
        let Write::Audit(launchway_domain::audit::Write::Append(newest)) = newest else { return Ok(()) };
        equal(read.items.first().map(|entry| entry.id), Some(newest.id), "the newest entry")
    }

    async fn kept(self) -> Outcome {
        let tenant = self.tenant().await?;
        let mut deployments = Vec::new();
        for _ in 0..3 {
            let (deployment, _, writes) = tenant.request();
            self.commit(writes).await?;
            let claimed = self.claim(&tenant, 0).await?;
            let live = DeploymentWrite::GoLive { id: deployment, at: NOW };
            self.commit(vec![advance(deployment, DeploymentState::Deploying), live.into()]).await?;
            self.commit(vec![advance(deployment, DeploymentState::Deployed)]).await?;
            self.settle(&tenant, &claimed, Ended::Succeeded).await?;
            deployments.push(deployment);
        }
        let status = self.ports.deployments.retention_status(&deployments, KeptVersions(2)).await;
        let status: Vec<RetentionStatus> = status.map_err(said)?;
        let is_kept = |id| status.iter().any(|one| one.deployment == id && one.is_worth_keeping);
        let kept: Vec<bool> = deployments.iter().map(|id| is_kept(*id)).collect();
        equal(kept, vec![false, true, true], "the versions that are kept of three")
    }
}
