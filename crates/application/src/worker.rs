//! The worker: claims jobs from the queue, executes them under a lease, and settles them.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use launchway_domain::{
    clock::Timestamp,
    deployments::Write as DeploymentWrite,
    jobs::{
        ClaimLimits, ClaimedJob, Heartbeat, Job, JobKind, JobQueue, JobState, Lease, Outcome, WorkerId,
        Write as JobWrite,
    },
    store::{self, StoreError},
};
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tracing::Instrument as _;

use crate::{
    ServiceContext,
    deployments::{Pipeline, Retired},
    job_control::{JobControl, JobError, StopRequest},
};

/// The timeouts of a worker.
#[derive(Debug, Clone, Copy)]
pub struct WorkerTimings {
    /// The duration of a lease without a heartbeat.
    pub lease: Duration,
    /// The interval of heartbeats.
    pub heartbeat: Duration,
    /// The interval at which the queue is polled without a notification.
    pub look: Duration,
    /// The timeout of one attempt.
    pub job: Duration,
    /// The time that running jobs get at shutdown.
    pub grace: Duration,
    /// The longest that a job waits for an unavailable engine.
    pub engine: Duration,
}

impl Default for WorkerTimings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            heartbeat: Duration::from_secs(10),
            look: Duration::from_secs(1),
            job: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(5),
            engine: Duration::from_secs(60 * 60),
        }
    }
}

/// The pause before a job that waits for the engine is retried.
const ENGINE_PAUSE: TimeDelta = TimeDelta::seconds(3);

/// The shortest time between two claims that found nothing.
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

/// The shortest time between two looks whether a running job is to be cancelled.
const CANCEL_PAUSE: Duration = Duration::from_millis(200);

/// The time that an attempt without a lease gets to end, if it has settled its job.
const SETTLED: Duration = Duration::from_secs(5);

/// Returns the delay before the n-th retry.
fn backoff(attempt: i32) -> TimeDelta {
    let doublings = u32::try_from(attempt.clamp(1, 6) - 1).unwrap_or_default();
    TimeDelta::seconds(5 * 2_i64.pow(doublings))
}

/// The handlers of jobs.
pub struct JobHandlers {
    pipeline: Arc<Pipeline>,
    /// Executes runs of extensions; there are none if absent.
    #[cfg(feature = "extensions")]
    runs: Option<Arc<crate::extensions::Runs>>,
}

impl JobHandlers {
    /// Returns the handlers of the jobs of applications.
    #[must_use]
    pub fn new(pipeline: Arc<Pipeline>) -> Self {
        Self {
            pipeline,
            #[cfg(feature = "extensions")]
            runs: None,
        }
    }

    /// Adds the handler of runs of extensions.
    #[cfg(feature = "extensions")]
    #[must_use]
    pub fn with_runs(self, runs: Arc<crate::extensions::Runs>) -> Self {
        Self { runs: Some(runs), ..self }
    }

    #[cfg(feature = "extensions")]
    fn runs(&self) -> Result<&crate::extensions::Runs, JobError> {
        self.runs.as_deref().ok_or_else(no_extensions)
    }
}

fn no_extensions() -> JobError {
    JobError::Permanent("no extensions are run here".to_owned())
}

/// Claims jobs and executes them concurrently.
pub struct Worker {
    queue: Arc<dyn JobQueue>,
    handlers: JobHandlers,
    identity: WorkerId,
    limits: ClaimLimits,
    timings: WorkerTimings,
    context: ServiceContext,
}

/// The reason why a job is interrupted.
enum Interruption {
    Cancelled,
    /// The lease is that of another worker, or the job is settled.
    Lost,
    /// The lease could not be renewed in time.
    Expired,
    /// The worker is shutting down.
    Stopping,
    /// The attempt exceeded its timeout.
    TookTooLong,
}

impl Worker {
    /// Returns a worker that claims jobs from `queue` as `identity`.
    pub fn new(
        queue: Arc<dyn JobQueue>,
        handlers: JobHandlers,
        identity: WorkerId,
        limits: ClaimLimits,
        timings: WorkerTimings,
        context: ServiceContext,
    ) -> Self {
        Self { queue, handlers, identity, limits, timings, context }
    }

    /// Works until `stop` is true, and then returns unfinished jobs to the queue.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let (mut wake, mut jobs) = (self.context.wake.listen_every(CLAIM_PAUSE), JoinSet::new());
        // Versions that lost the traffic are retired concurrently: no job waits for it.
        let mut retirements = JoinSet::new();
        while !*stop.borrow() {
            while let Some(ended) = jobs.try_join_next() {
                self.retire_beside(&mut retirements, ended);
            }
            while retirements.try_join_next().is_some() {}
            let claimed = if jobs.len() < self.limits.total() { self.claim().await } else { None };
            if let Some(claimed) = claimed {
                let (worker, stop) = (Arc::clone(&self), stop.clone());
                jobs.spawn(async move { worker.work(&claimed, stop).await });
                continue;
            }
            tokio::select! {
                () = wake.wait_timeout(self.timings.look) => {}
                Ok(()) = stop.changed() => {}
                Some(ended) = jobs.join_next() => self.retire_beside(&mut retirements, ended),
            }
        }
        // The reconciler of the next server retires the rest.
        while jobs.join_next().await.is_some() {}
    }

    /// Starts the retirement of the versions that a finished job replaced.
    fn retire_beside(
        self: &Arc<Self>,
        retirements: &mut JoinSet<()>,
        ended: Result<Vec<Retired>, tokio::task::JoinError>,
    ) {
        let retired = ended.unwrap_or_else(|error| {
            tracing::error!(%error, "job panicked");
            Vec::new()
        });
        for retired in retired {
            let pipeline = Arc::clone(&self.handlers.pipeline);
            retirements.spawn(async move { pipeline.retire(&retired).await });
        }
    }

    /// Executes every job that is due, one after the other, until there is none. For tests.
    pub async fn drain(&self) {
        let (_keep, stop) = watch::channel(false);
        while let Some(claimed) = self.claim().await {
            for retired in self.work(&claimed, stop.clone()).await {
                self.handlers.pipeline.retire(&retired).await;
            }
        }
    }

    async fn claim(&self) -> Option<ClaimedJob> {
        let now = self.context.clock.now();
        match self.queue.claim(&self.identity, self.limits, now, now + self.timings.lease).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "job could not be claimed");
                None
            }
        }
    }

    async fn work(&self, claimed: &ClaimedJob, stop: watch::Receiver<bool>) -> Vec<Retired> {
        let kind = claimed.job.kind.as_str();
        let span = tracing::info_span!("work", job.id = %claimed.job.id, job.kind = kind, job.attempt = claimed.lease.attempt);
        self.attempt(claimed, stop).instrument(span).await
    }

    async fn attempt(&self, claimed: &ClaimedJob, stop: watch::Receiver<bool>) -> Vec<Retired> {
        let job_control = JobControl::default();
        let outage = self.context.engine.outage().filter(|_| claimed.job.pool.needs_engine());
        let ended = match outage {
            Some(outage) => Ok(Err(JobError::Unavailable(outage.reason))),
            None => {
                let mut work = Box::pin(self.carry_out(claimed, &job_control));
                tokio::select! {
                    ended = &mut work => Ok(ended),
                    why = self.interruption(&claimed.lease, &job_control, stop) => match why {
                        // The work itself may have settled the job just now, which ends the lease too.
                        Interruption::Lost => timeout(SETTLED, work).await.map_err(|_elapsed| why),
                        _ => Err(why),
                    },
                }
            }
        };
        let mut retired = Vec::new();
        let settled = match ended {
            Ok(Ok(lost)) => {
                retired = lost;
                Ok(())
            }
            Ok(Err(JobError::Unavailable(reason))) => self.wait_for_engine(claimed, &reason).await,
            Ok(Err(JobError::Permanent(reason))) => self.end(claimed, Outcome::Failed { reason }).await,
            Ok(Err(JobError::Retryable(reason))) => self.retry(claimed, &reason).await,
            Ok(Err(JobError::LeaseLost)) | Err(Interruption::Lost | Interruption::Expired) => {
                tracing::warn!("lease was lost");
                Ok(())
            }
            Err(Interruption::Cancelled) => self.end(claimed, Outcome::Cancelled).await,
            Err(Interruption::TookTooLong) => {
                let minutes = self.timings.job.as_secs() / 60;
                self.end(claimed, Outcome::Failed { reason: format!("timed out after {minutes} minutes") })
                    .await
            }
            Err(Interruption::Stopping) => self.release(claimed).await,
        };
        if let Err(stop) = settled {
            // The lease expires, and then the job is rescued.
            tracing::warn!(reason = %stop, "job could not be settled");
        }
        self.context.wake.notify();
        retired
    }

    /// Executes a job; returns the versions that lost the traffic.
    async fn carry_out(
        &self,
        claimed: &ClaimedJob,
        job_control: &JobControl,
    ) -> Result<Vec<Retired>, JobError> {
        match claimed.job.kind {
            JobKind::Deploy => return self.handlers.pipeline.deploy(claimed, job_control).await,
            JobKind::Restart => return self.handlers.pipeline.lifecycle().restart(claimed).await,
            JobKind::Reconcile => return self.handlers.pipeline.lifecycle().reconcile(claimed).await,
            JobKind::Stop => self.handlers.pipeline.lifecycle().stop(claimed).await?,
            JobKind::Remove => self.handlers.pipeline.lifecycle().remove(claimed).await?,
            #[cfg(feature = "extensions")]
            JobKind::RunExtension => self.handlers.runs()?.run(claimed, job_control).await?,
            #[cfg(feature = "extensions")]
            JobKind::UninstallExtension => self.handlers.runs()?.uninstall(claimed).await?,
            #[cfg(not(feature = "extensions"))]
            JobKind::RunExtension | JobKind::UninstallExtension => return Err(no_extensions()),
        }
        Ok(Vec::new())
    }

    /// Returns a job to the queue until the engine responds again; fails it when that takes too long.
    async fn wait_for_engine(&self, claimed: &ClaimedJob, reason: &str) -> Result<(), JobError> {
        let (now, engine) = (self.context.clock.now(), self.context.terms.engine);
        let waiting = format!("waiting for the {engine}");
        // An earlier attempt was returned to the queue because the engine did not respond.
        let is_waiting = claimed.job.reason.as_ref().is_some_and(|reason| reason.starts_with(&waiting));
        let since = self.context.engine.outage().map(|outage| outage.since);
        let since = since.or(claimed.job.started_at.filter(|_| is_waiting));
        if since.is_some_and(|since| (now - since).to_std().is_ok_and(|waited| waited >= self.timings.engine))
        {
            let limit = describe(self.timings.engine);
            let reason = format!("the {engine} did not answer for {limit}: {reason}");
            return self.end(claimed, Outcome::Failed { reason }).await;
        }
        if !is_waiting {
            tracing::info!(reason, "job waits for the engine");
            self.handlers.pipeline.log_waiting(claimed, reason).await;
        }
        let reason = format!("{waiting}: {reason}");
        let state = self.queue.postpone(&claimed.lease, &reason, now, now + ENGINE_PAUSE).await?;
        self.follow(claimed, state).await
    }

    /// Renews the lease, and returns when the work has to end early.
    async fn interruption(
        &self,
        lease: &Lease,
        job_control: &JobControl,
        mut stop: watch::Receiver<bool>,
    ) -> Interruption {
        let (mut wake, mut is_closed) = (self.context.wake.listen_every(CANCEL_PAUSE), false);
        let started = tokio::time::Instant::now();
        let mut last_sign = started;
        loop {
            tokio::select! {
                () = wake.wait_timeout(self.timings.heartbeat) => {}
                is_told = wait_for_stop(&mut stop), if !is_closed => {
                    is_closed = true;
                    if is_told {
                        tokio::time::sleep(self.timings.grace).await;
                        return Interruption::Stopping;
                    }
                }
            }
            let until = self.context.clock.now() + self.timings.lease;
            let answer = self.queue.heartbeat(lease, until).await;
            // Checked only now: the work continued during the query.
            let may_end = !job_control.is_committed();
            match answer {
                Ok(Heartbeat::Lost) => return Interruption::Lost,
                Ok(Heartbeat::CancelRequested)
                    if may_end && !job_control.request_stop(StopRequest::Cancel) =>
                {
                    return Interruption::Cancelled;
                }
                Ok(Heartbeat::Held | Heartbeat::CancelRequested) => last_sign = tokio::time::Instant::now(),
                Err(error) if last_sign.elapsed() >= self.timings.lease => {
                    tracing::warn!(%error, "lease renewal failed until the lease expired");
                    return Interruption::Expired;
                }
                Err(error) => tracing::warn!(%error, "lease renewal failed"),
            }
            if started.elapsed() >= self.timings.job
                && may_end
                && !job_control.request_stop(StopRequest::Timeout)
            {
                return Interruption::TookTooLong;
            }
        }
    }

    /// Settles a job that was interrupted or cannot succeed, and removes what it left.
    async fn end(&self, claimed: &ClaimedJob, outcome: Outcome) -> Result<(), JobError> {
        self.clear_away(claimed).await;
        let at = self.context.clock.now();
        let settle = JobWrite::Settle { lease: claimed.lease, outcome, at }.into();
        Ok(self.context.store.commit(vec![settle, followed(&claimed.job, at)]).await?)
    }

    async fn retry(&self, claimed: &ClaimedJob, reason: &str) -> Result<(), JobError> {
        self.clear_away(claimed).await;
        let now = self.context.clock.now();
        let run_at = now + backoff(claimed.lease.attempt);
        let state = self.queue.retry(&claimed.lease, reason, now, run_at).await?;
        self.follow(claimed, state).await
    }

    async fn release(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        self.clear_away(claimed).await;
        let state = self.queue.release(&claimed.lease, self.context.clock.now()).await?;
        self.follow(claimed, state).await
    }

    async fn follow(&self, claimed: &ClaimedJob, state: JobState) -> Result<(), JobError> {
        tracing::debug!(state = state.as_str(), "job returned to the queue");
        let followed = followed(&claimed.job, self.context.clock.now());
        match self.context.store.commit(vec![followed]).await {
            Err(StoreError::Stale) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the resources that an attempt left. Those that cannot be removed now are removed before the
    /// next attempt, or as orphans.
    async fn clear_away(&self, claimed: &ClaimedJob) {
        if claimed.job.kind != JobKind::Deploy {
            return;
        }
        let cleared =
            timeout(self.timings.lease / 2, self.handlers.pipeline.remove_leftovers_of(claimed)).await;
        match cleared {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "leftovers of an attempt could not be removed"),
            Err(_elapsed) => tracing::warn!("removal of leftovers timed out"),
        }
    }
}

/// Formats a time limit in whole minutes, or else in seconds.
fn describe(limit: Duration) -> String {
    match limit.as_secs() {
        seconds if seconds >= 120 && seconds.is_multiple_of(60) => format!("{} minutes", seconds / 60),
        _ => format!("{} s", limit.as_secs_f64()),
    }
}

/// Returns the write that updates the subject of a job to its state.
fn followed(job: &Job, at: Timestamp) -> store::Write {
    match job.kind {
        #[cfg(feature = "extensions")]
        JobKind::RunExtension | JobKind::UninstallExtension => {
            launchway_domain::extensions::Write::FollowJobs { at }.into()
        }
        _ => DeploymentWrite::FollowJobs { application: Some(job.subject.into()), at }.into(),
    }
}

/// Returns when the worker has to stop, or the sender of the signal was dropped.
async fn wait_for_stop(stop: &mut watch::Receiver<bool>) -> bool {
    stop.wait_for(|stop| *stop).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_new_attempt_waits_twice_as_long() {
        let seconds: Vec<i64> = (1..=4).map(|attempt| backoff(attempt).num_seconds()).collect();
        assert_eq!(seconds, [5, 10, 20, 40]);
        assert_eq!(backoff(i32::MAX), backoff(6));
    }

    #[test]
    fn a_limit_is_reported_as_it_was_set() {
        let told = [500, 1_000, 60_000, 90_000, 3_600_000].map(|ms| describe(Duration::from_millis(ms)));
        assert_eq!(told, ["0.5 s", "1 s", "60 s", "90 s", "60 minutes"]);
    }
}
