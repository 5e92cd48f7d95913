//! Requests for deployments that are stored together.
//!
//! On PostgreSQL many requests of an organization share a transaction. Each would cost a dozen round trips, so the writes of
//! all of them are applied together.

use std::{collections::BTreeSet, mem};

use launchway_domain::{
    clock::Timestamp,
    deployments::{Deployment, Write as DeploymentWrite},
    ids::{ApplicationId, SubjectId},
    jobs::{NewJob, Write as JobWrite},
    logs::NewLine,
    store::Write,
};
use uuid::Uuid;

use super::{jobs::follow_jobs, writes::insert};
use crate::{connection::AnyConnection, error::QueryError, jobs};

/// The writes of requests that were not applied yet. No two requests are about the same application.
#[derive(Default)]
pub(crate) struct Requests<'a> {
    jobs: Vec<&'a NewJob>,
    deployments: Vec<&'a Deployment>,
    /// The applications whose deployments follow their jobs, and the time of the last request.
    follow: BTreeSet<Uuid>,
    at: Option<Timestamp>,
}

impl<'a> Requests<'a> {
    /// Takes a write that may be applied after the others and together with them: a replaceable job of an application, its
    /// deployment, and the end of the deployment that it replaces. Returns false for any other.
    pub(crate) fn take(&mut self, write: &'a Write) -> bool {
        match write {
            Write::Job(JobWrite::Enqueue(job)) if job.replaceable && !self.has_job_on(job.subject) => {
                self.jobs.push(job);
            }
            Write::Deployment(DeploymentWrite::Insert(deployment)) if self.expects(deployment) => {
                self.deployments.push(deployment);
            }
            Write::Deployment(DeploymentWrite::FollowJobs { application: Some(application), at })
                if self.are_about(*application) =>
            {
                self.follow.insert((*application).into());
                self.at = self.at.max(Some(*at));
            }
            _ => return false,
        }
        true
    }

    /// Returns whether a write about the application was taken.
    pub(crate) fn are_about(&self, application: ApplicationId) -> bool {
        self.has_job_on(application.into())
    }

    fn has_job_on(&self, subject: SubjectId) -> bool {
        self.jobs.iter().any(|job| job.subject == subject)
    }

    /// Returns whether the deployment belongs to the last job.
    fn expects(&self, deployment: &Deployment) -> bool {
        self.jobs.last().is_some_and(|job| {
            job.id == deployment.job_id
                && job.subject == deployment.application_id.into()
                && self.deployments.last().is_none_or(|last| last.job_id != job.id)
        })
    }

    /// Applies the writes that were taken. Returns the lines that have to be appended to logs.
    pub(crate) fn apply(&mut self, connection: &mut AnyConnection) -> Result<Vec<NewLine>, QueryError> {
        let Self { jobs, deployments, follow, at } = mem::take(self);
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        jobs::enqueue(connection, &jobs)?;
        if !deployments.is_empty() {
            insert(connection, &deployments)?;
        }
        match at {
            Some(at) => follow_jobs(connection, follow, at),
            None => Ok(Vec::new()),
        }
    }
}
