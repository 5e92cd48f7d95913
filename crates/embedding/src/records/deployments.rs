//! Applies writes to deployments and their applications.

use launchway_domain::{
    applications::{Application, ApplicationState, ImageRef, Progress as Way},
    clock::Timestamp,
    deployments::{
        ContainerRecord, ContainerState, Deployment, DeploymentKind, DeploymentState, KeptVersions, Progress,
        RetentionStatus, Write,
    },
    ids::{ApplicationId, DeploymentId},
    jobs::{Job, JobState},
    logs::{Level, NewLine},
    store::StoreError,
};

use uuid::Uuid;

use super::{Records, applications::set_state, table::Table};

impl Records {
    /// Returns the deployments of an application, newest first; also of a deleted one.
    pub fn deployments_of(&self, application: ApplicationId) -> impl Iterator<Item = &Deployment> {
        let first = (application, Timestamp::MIN_UTC, Uuid::nil().into());
        let last = (application, Timestamp::MAX_UTC, Uuid::max().into());
        let found = self.index.by_application.range(first..=last).rev();
        found.filter_map(|((_, _, id), ())| self.deployments.get(id))
    }

    /// Returns the deployments of all organizations, in the order of their ids; also of deleted applications.
    pub fn deployments(&self) -> impl Iterator<Item = &Deployment> {
        self.deployments.values()
    }

    /// Returns one deployment of any organization; also of a deleted application.
    pub(crate) fn recorded_deployment(&self, id: DeploymentId) -> Option<&Deployment> {
        self.deployments.get(&id)
    }

    /// Returns the deployed versions that are not live, and whose container is not recorded as removed.
    pub(crate) fn unretired(&self) -> impl Iterator<Item = &Deployment> {
        let standing = self.index.standing.keys().filter_map(|id| self.deployments.get(id));
        standing.filter(|found| {
            let application = self.applications.get(&found.application_id);
            application.and_then(|application| application.live).is_some_and(|live| live != found.id)
        })
    }

    fn is_live(&self, deployment: &Deployment) -> bool {
        let application = self.applications.get(&deployment.application_id);
        application.is_some_and(|application| application.live == Some(deployment.id))
    }

    /// Returns the retention status of a deployment, if the newest `kept` of each application are kept;
    /// `None` if it is unknown.
    #[must_use]
    pub fn retention_status(&self, deployment: DeploymentId, kept: KeptVersions) -> Option<RetentionStatus> {
        let found = self.deployments.get(&deployment)?;
        let application = self.applications.get(&found.application_id);
        let live = application.and_then(|application| application.live);
        let deployed = self
            .deployments_of(found.application_id)
            .filter(|one| one.status.state == DeploymentState::Deployed)
            .take(kept.0.into());
        let live_one = live.and_then(|live| self.deployments.get(&live));
        let goes_back = |one: &Deployment| one.kind == DeploymentKind::Rollback { to: deployment };
        let open = self.index.open_deployments.keys().filter_map(|id| self.deployments.get(id));
        let is_wanted = deployed.chain(live_one).any(|one| one.id == deployment || goes_back(one))
            || open.filter(|one| one.application_id == found.application_id).any(goes_back);
        Some(RetentionStatus {
            deployment,
            is_live: live == Some(deployment),
            is_open: !found.status.state.is_final(),
            is_worth_keeping: application.is_some() && is_wanted,
        })
    }

    /// Returns the image of a deployment, if its version was made.
    #[must_use]
    pub fn artifact(&self, deployment: DeploymentId) -> Option<&ImageRef> {
        self.artifacts.get(&deployment)
    }

    /// Records the image of a deployment.
    pub(crate) fn record_artifact(&mut self, deployment: DeploymentId, image: ImageRef) {
        self.artifacts.insert(deployment, image);
    }

    /// Stores a deployment, and its place in every index.
    pub(super) fn put_deployment(&mut self, deployment: Deployment) {
        let Deployment { id, application_id, created_at, .. } = deployment;
        let index = &mut self.index;
        index.by_application.insert((application_id, created_at, id), ());
        set(&mut index.open_deployments, id, !deployment.status.state.is_final());
        let is_removed = |container: &ContainerRecord| container.state == ContainerState::Removed;
        let is_standing = deployment.status.state == DeploymentState::Deployed
            && deployment.container.as_ref().is_some_and(|container| !is_removed(container));
        set(&mut index.standing, id, is_standing);
        self.deployments.insert(id, deployment);
    }

    /// Changes a deployment, if it exists.
    pub(super) fn edit_deployment(&mut self, id: DeploymentId, edit: impl FnOnce(&mut Deployment)) {
        let Some(mut deployment) = self.deployments.get(&id).cloned() else { return };
        edit(&mut deployment);
        self.put_deployment(deployment);
    }

    pub(super) fn remove_deployment(&mut self, id: DeploymentId) {
        let Some(deployment) = self.deployments.remove(&id) else { return };
        self.index.by_application.remove(&(deployment.application_id, deployment.created_at, id));
        self.index.open_deployments.remove(&id);
        self.index.standing.remove(&id);
        self.artifacts.remove(&id);
    }

    pub(super) fn apply_deployment(&mut self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Insert(deployment) => self.insert(deployment),
            Write::Advance { id, progress, at } => self.advance(*id, progress, *at),
            Write::GoLive { id, at } => self.go_live(*id, *at),
            Write::RecordContainer { id, container, at } => {
                self.edit_deployment(*id, |deployment| {
                    let mut copies = deployment.container.iter_mut().chain(&mut deployment.further_copies);
                    if let Some(recorded) = copies.find(|recorded| recorded.id == container.id) {
                        recorded.clone_from(container);
                        deployment.updated_at = *at;
                    }
                });
                Ok(())
            }
            Write::ReplaceContainer { id, container, further_copies, at } => {
                if !self.deployments.get(id).is_some_and(|found| self.is_live(found)) {
                    return Err(StoreError::Stale);
                }
                self.edit_deployment(*id, |deployment| {
                    deployment.container = Some(container.clone());
                    deployment.further_copies.clone_from(further_copies);
                    deployment.updated_at = *at;
                });
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
            set_state(application, ApplicationState::InProgress(Way::Queued), deployment.created_at);
        }
        self.put_deployment(deployment.clone());
        Ok(())
    }

    fn advance(&mut self, id: DeploymentId, progress: &Progress, at: Timestamp) -> Result<(), StoreError> {
        let from = self.deployments.get(&id).ok_or(StoreError::Stale)?.status.state;
        let may_move = match progress.state {
            Some(to) => from.advance(to).is_ok(),
            None => !from.is_final(),
        };
        if !may_move {
            return Err(StoreError::Stale);
        }
        self.edit_deployment(id, |deployment| {
            deployment.commit = progress.commit.clone().or(deployment.commit.take());
            deployment.image = progress.image.clone().or(deployment.image.take());
            if let Some(container) = &progress.container {
                deployment.container = Some(container.clone());
                deployment.further_copies.clone_from(&progress.further_copies);
            }
            deployment.updated_at = at;
        });
        if let Some(to) = progress.state {
            self.enter(id, to, at);
        }
        Ok(())
    }

    /// Moves a deployment to a state; its application follows unless a version of it runs.
    fn enter(&mut self, id: DeploymentId, to: DeploymentState, at: Timestamp) {
        self.edit_deployment(id, |deployment| {
            deployment.status.state = to;
            deployment.status.updated_at = at;
            deployment.updated_at = at;
        });
        let owner = self.deployments.get(&id).map(|deployment| deployment.application_id);
        if let Some(application) = owner.and_then(|owner| self.applications.get_mut(&owner))
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
        let mismatches = self.index.open_deployments.keys().filter_map(|id| self.deployments.get(id));
        let mismatches = mismatches.filter(|open| application.is_none_or(|only| only == open.application_id));
        let moves: Vec<(DeploymentId, DeploymentState, Option<NewLine>)> =
            mismatches.filter_map(|open| self.move_after_job(open, at)).collect();
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
        let is_live = self.is_live(open);
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
        let newer = job.superseded_by.and_then(|by| self.jobs.get(&by));
        let successor = newer.and_then(|newer| newer.job.payload.parse::<DeploymentId>().ok());
        match (to, successor, &job.reason) {
            (DeploymentState::Deployed, ..) => (Level::Info, "Deployed".to_owned()),
            (DeploymentState::Cancelled, Some(newer), _) => {
                (Level::Info, format!("Cancelled: replaced by deployment {newer}"))
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

/// Sets whether an index has a key.
fn set<K: Ord + Clone>(index: &mut Table<K, ()>, key: K, is_there: bool) {
    if is_there {
        index.insert(key, ());
    } else {
        index.remove(&key);
    }
}
