//! Applies writes to deployments and their applications.

use super::{Records, applications::set_state};
use crate::{
    applications::{Application, ApplicationState, Progress as Way},
    clock::Timestamp,
    deployments::{
        Deployment, DeploymentKind, DeploymentState, KeptVersions, Progress, RetentionStatus, Write,
    },
    ids::{ApplicationId, DeploymentId},
    jobs::{Job, JobState},
    logs::{Level, NewLine},
    store_error::StoreError,
};

impl Records {
    /// Returns the retention status of a deployment, if the newest `kept` of each application are kept;
    /// `None` if it is unknown.
    #[must_use]
    pub fn retention_status(&self, deployment: DeploymentId, kept: KeptVersions) -> Option<RetentionStatus> {
        let found = self.deployments.get(&deployment)?;
        let application = self.applications.get(&found.application_id);
        let live = application.and_then(|application| application.live);
        let siblings = || self.deployments.values().filter(|one| one.application_id == found.application_id);
        // Ids are ordered by time.
        let newest =
            siblings().rev().filter(|one| one.status.state == DeploymentState::Deployed).take(kept.0.into());
        let mut stay = newest.chain(siblings().filter(|one| live == Some(one.id)));
        let goes_back = |one: &Deployment| one.kind == DeploymentKind::Rollback { to: deployment };
        let is_wanted = stay.any(|one| one.id == deployment || goes_back(one))
            || siblings().any(|one| !one.status.state.is_over() && goes_back(one));
        Some(RetentionStatus {
            deployment,
            is_live: live == Some(deployment),
            is_open: !found.status.state.is_over(),
            is_worth_keeping: application.is_some() && is_wanted,
        })
    }

    pub(super) fn apply_deployment(&mut self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Insert(deployment) => self.insert(deployment),
            Write::Advance { id, progress, at } => self.advance(*id, progress, *at),
            Write::GoLive { id, at } => self.go_live(*id, *at),
            Write::RecordContainer { id, container, at } => {
                let found = self.deployments.get_mut(id);
                if let Some(deployment) = found
                    && deployment.container.as_ref().is_some_and(|recorded| recorded.id == container.id)
                {
                    deployment.container = Some(container.clone());
                    deployment.updated_at = *at;
                }
                Ok(())
            }
            Write::ReplaceContainer { id, container, at } => {
                let is_live = self.applications.values().any(|application| application.live == Some(*id));
                let deployment = self.deployments.get_mut(id).filter(|_| is_live).ok_or(StoreError::Stale)?;
                deployment.container = Some(container.clone());
                deployment.updated_at = *at;
                Ok(())
            }
            Write::FollowJobs { application, at } => {
                self.follow_jobs(*application, *at);
                Ok(())
            }
        }
    }

    fn insert(&mut self, deployment: &Deployment) -> Result<(), StoreError> {
        let application = self.applications.get_mut(&deployment.application_id);
        let application = application.filter(|found| found.organization_id == deployment.organization_id);
        let application = application.ok_or(StoreError::Stale)?;
        if !runs(application) {
            set_state(application, ApplicationState::UnderWay(Way::Queued), deployment.created_at);
        }
        self.deployments.insert(deployment.id, deployment.clone());
        Ok(())
    }

    fn advance(&mut self, id: DeploymentId, progress: &Progress, at: Timestamp) -> Result<(), StoreError> {
        let deployment = self.deployments.get_mut(&id).ok_or(StoreError::Stale)?;
        let from = deployment.status.state;
        let may_move = match progress.state {
            Some(to) => from.advance(to).is_ok(),
            None => !from.is_over(),
        };
        if !may_move {
            return Err(StoreError::Stale);
        }
        deployment.commit = progress.commit.clone().or(deployment.commit.take());
        deployment.image = progress.image.clone().or(deployment.image.take());
        deployment.container = progress.container.clone().or(deployment.container.take());
        deployment.updated_at = at;
        if let Some(to) = progress.state {
            self.enter(id, to, at);
        }
        Ok(())
    }

    /// Moves a deployment to a state; its application follows unless a version of it runs.
    fn enter(&mut self, id: DeploymentId, to: DeploymentState, at: Timestamp) {
        let Some(deployment) = self.deployments.get_mut(&id) else { return };
        deployment.status.state = to;
        deployment.status.updated_at = at;
        deployment.updated_at = at;
        if let Some(application) = self.applications.get_mut(&deployment.application_id)
            && !runs(application)
            && let Some(state) = ApplicationState::without_a_running_version(to, application.is_stopped)
        {
            set_state(application, state, at);
        }
    }

    fn go_live(&mut self, id: DeploymentId, at: Timestamp) -> Result<(), StoreError> {
        let deploying = self.deployments.get(&id);
        let deploying = deploying.filter(|found| found.status.state == DeploymentState::Deploying);
        let application = deploying.and_then(|found| self.applications.get_mut(&found.application_id));
        let application = application.ok_or(StoreError::Stale)?;
        application.live = Some(id);
        application.is_stopped = false;
        application.updated_at = at;
        set_state(application, ApplicationState::Running, at);
        Ok(())
    }

    fn follow_jobs(&mut self, application: Option<ApplicationId>, at: Timestamp) {
        let strays = self.deployments.values().filter(|open| !open.status.state.is_over());
        let strays = strays.filter(|open| application.is_none_or(|only| only == open.application_id));
        let moves: Vec<(DeploymentId, DeploymentState, Option<NewLine>)> =
            strays.filter_map(|open| self.move_after_job(open, at)).collect();
        for (id, to, line) in moves {
            self.append(line.as_slice());
            self.enter(id, to, at);
        }
    }

    /// Returns the new state of a deployment whose job is queued again or has finished, with the line for
    /// its log.
    fn move_after_job(
        &self,
        open: &Deployment,
        at: Timestamp,
    ) -> Option<(DeploymentId, DeploymentState, Option<NewLine>)> {
        let job = self.jobs.get(&open.job_id).map(|kept| &kept.job)?;
        let is_live = self.applications.get(&open.application_id)?.live == Some(open.id);
        let to = match job.state {
            JobState::Running => return None,
            JobState::Queued if is_live || open.status.state == DeploymentState::Queued => return None,
            JobState::Queued => return Some((open.id, DeploymentState::Queued, None)),
            job => DeploymentState::after_job(job, is_live),
        };
        let (level, text) = self.last_word(job, to);
        let (application_id, deployment_id) = (open.application_id, open.id);
        Some((open.id, to, Some(NewLine { application_id, deployment_id, level, text, at })))
    }

    fn last_word(&self, job: &Job, to: DeploymentState) -> (Level, String) {
        let successor =
            job.superseded_by.and_then(|by| self.deployments.values().find(|one| one.job_id == by));
        match (to, successor, &job.reason) {
            (DeploymentState::Deployed, ..) => (Level::Info, "Deployed".to_owned()),
            (DeploymentState::Cancelled, Some(newer), _) => {
                (Level::Info, format!("Cancelled: replaced by deployment {}", newer.id))
            }
            (DeploymentState::Cancelled, ..) => (Level::Info, "Cancelled".to_owned()),
            (_, _, Some(reason)) => (Level::Error, format!("Failed: {reason}")),
            _ => (Level::Error, "Failed".to_owned()),
        }
    }
}

/// Returns whether a version of it serves.
fn runs(application: &Application) -> bool {
    application.live.is_some() && !application.is_stopped
}
