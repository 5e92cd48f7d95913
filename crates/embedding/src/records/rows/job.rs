//! The stored form of jobs and their leases.

use launchway_domain::{
    ids::OrganizationId,
    jobs::{Job, Lease, WorkerId},
    organizations::Scope,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{super::jobs::KeptJob, Invalid, Value, id, micros, text, timestamp, timestamps};

#[derive(Serialize, Deserialize)]
pub(super) struct JobValue {
    id: String,
    kind: String,
    organization_id: String,
    subject: String,
    replaceable: bool,
    payload: String,
    pool: String,
    state: String,
    attempt: i32,
    excused: i32,
    run_at: i64,
    enqueued_at: i64,
    started_at: Option<i64>,
    finished_at: Option<i64>,
    cancel_requested_at: Option<i64>,
    superseded_by: Option<String>,
    reason: Option<String>,
    lease: Option<LeaseValue>,
}

#[derive(Serialize, Deserialize)]
struct LeaseValue {
    attempt: i32,
    instance: Uuid,
    boot: Uuid,
    worker: i32,
    until: i64,
}

impl From<&KeptJob> for JobValue {
    fn from(kept: &KeptJob) -> Self {
        let job = &kept.job;
        let lease = kept.held.map(|(lease, until)| LeaseValue {
            attempt: lease.attempt,
            instance: lease.worker.instance.into(),
            boot: lease.worker.boot.into(),
            worker: lease.worker.worker,
            until: micros(until),
        });
        Self {
            id: job.id.to_string(),
            kind: job.kind.as_str().to_owned(),
            organization_id: job.scope.id().to_string(),
            subject: job.subject.to_string(),
            replaceable: job.replaceable,
            payload: job.payload.clone(),
            pool: job.pool.as_str().to_owned(),
            state: job.state.as_str().to_owned(),
            attempt: job.attempt,
            excused: job.excused,
            run_at: micros(job.run_at),
            enqueued_at: micros(job.enqueued_at),
            started_at: job.started_at.map(micros),
            finished_at: job.finished_at.map(micros),
            cancel_requested_at: job.cancel_requested_at.map(micros),
            superseded_by: job.superseded_by.as_ref().map(ToString::to_string),
            reason: job.reason.clone(),
            lease,
        }
    }
}

impl Value<KeptJob> for JobValue {
    fn into_record(self) -> Result<KeptJob, Invalid> {
        let job = Job {
            id: id(&self.id)?,
            kind: text(self.kind)?,
            scope: Scope::of_record(id(&self.organization_id)?),
            subject: id(&self.subject)?,
            replaceable: self.replaceable,
            payload: self.payload,
            pool: text(self.pool)?,
            state: text(self.state)?,
            attempt: self.attempt,
            excused: self.excused,
            run_at: timestamp(self.run_at)?,
            enqueued_at: timestamp(self.enqueued_at)?,
            started_at: timestamps(self.started_at)?,
            finished_at: timestamps(self.finished_at)?,
            cancel_requested_at: timestamps(self.cancel_requested_at)?,
            superseded_by: self.superseded_by.as_deref().map(id).transpose()?,
            reason: self.reason,
        };
        let held = self.lease.map(|lease| {
            let LeaseValue { attempt, instance, boot, worker, until } = lease;
            let worker = WorkerId { instance: instance.into(), boot: boot.into(), worker };
            Ok::<_, Invalid>((Lease { job: job.id, attempt, worker }, timestamp(until)?))
        });
        Ok(KeptJob { held: held.transpose()?, job })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct TurnValue {
    organization: String,
    turn: u64,
}

impl TurnValue {
    pub(super) fn of(organization: OrganizationId, turn: u64) -> Self {
        Self { organization: organization.to_string(), turn }
    }
}

impl Value<(OrganizationId, u64)> for TurnValue {
    fn into_record(self) -> Result<(OrganizationId, u64), Invalid> {
        Ok((id(&self.organization)?, self.turn))
    }
}
