//! Finishes what a killed server began, and removes repositories of deleted applications.

use std::{collections::HashSet, time::Duration};

use launchway_domain::{
    audit::{Author, Chain},
    deployments::BuildCache,
    organizations::Scope,
    sources::{PendingSource, branch_reference, upload_reference},
    store::StoreError,
};
use tokio::{sync::watch, time::sleep};

use super::{CommitOrigin, Sources, is_hosted, refused};
use crate::Error;

/// The interval at which repositories of deleted applications are removed.
const PAUSE: Duration = Duration::from_secs(600);

impl Sources {
    /// Deploys what was pushed or uploaded before this server was killed, or takes it back. Call this at the start, before
    /// requests are served.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database or the disk fails.
    pub async fn recover(&self) -> Result<(), Error> {
        for pending in self.ports.repositories.pending().await.map_err(refused)? {
            self.finish(&pending).await?;
            self.ports.repositories.end(&pending).await.map_err(refused)?;
        }
        Ok(())
    }

    async fn finish(&self, pending: &PendingSource) -> Result<(), Error> {
        let scope = Scope::of_record(pending.organization);
        if self.ports.deployments.get(scope, pending.deployment).await?.is_some() {
            return self.finish_recorded(pending).await;
        }
        if self.head(pending.application, &pending.reference).await? != Some(pending.new.clone()) {
            return Ok(());
        }
        let Some(application) = self.ports.applications.get(scope, pending.application).await? else {
            return Ok(());
        };
        let branch = application.blueprint.branch.clone().filter(|_| is_hosted(&application));
        let how = branch.as_ref().and_then(|branch| {
            if pending.reference == branch_reference(branch) {
                Some(CommitOrigin::push(branch))
            } else {
                let is_upload = pending.reference == upload_reference(branch);
                is_upload.then(|| CommitOrigin::upload(branch, pending.digest.clone(), BuildCache::Use))
            }
        });
        // The application has another branch or another source since.
        let Some(how) = how else { return Ok(()) };
        let is_push = pending.reference == branch_reference(&how.branch);
        if is_push && self.unchanged_since(&application, &pending.new).await?.is_some() {
            return self.forget_upload(application.id, &how.branch).await;
        }
        let author = Author::launchway(Chain::from(Some(pending.organization)));
        match self.deploy(&application, pending, author, &how).await {
            Ok(()) if is_push => self.forget_upload(application.id, &how.branch).await,
            Ok(()) => Ok(()),
            Err(error @ (StoreError::Unavailable(_) | StoreError::Internal(_))) => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, application.id = %pending.application, "push of an earlier run taken back");
                let (old, new) = (pending.old.clone(), Some(pending.new.clone()));
                let repositories = &self.ports.repositories;
                let moved = repositories.move_reference(application.id, &pending.reference, new, old).await;
                moved.map(drop).map_err(refused)
            }
        }
    }

    /// Makes a redeployment use the branch of a push whose deployment was recorded, unless something was deployed since.
    async fn finish_recorded(&self, pending: &PendingSource) -> Result<(), Error> {
        let branch = pending.reference.strip_prefix("refs/heads/").and_then(|name| name.parse().ok());
        let Some(branch) = branch else { return Ok(()) };
        let scope = Scope::of_record(pending.organization);
        let newest = self.ports.deployments.newest(scope, &[pending.application]).await?;
        match newest.iter().any(|deployment| deployment.id == pending.deployment) {
            true => self.forget_upload(pending.application, &branch).await,
            false => Ok(()),
        }
    }

    /// Removes repositories of deleted applications and unused blocks of uploads, until `stop` is true.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let work = async {
            loop {
                self.context.replica.wait_for_leadership().await;
                if let Err(error) = self.remove_orphans().await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "repositories of deleted applications could not be removed");
                }
                if let Err(error) = self.ports.repositories.remove_unused_blocks().await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "unused blocks of uploads could not be removed");
                }
                sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn remove_orphans(&self) -> Result<(), Error> {
        // In this order: an application that is created in between is not idle.
        let idle = self.ports.repositories.idle().await.map_err(refused)?;
        let named = self.ports.applications.named().await?;
        let known: HashSet<_> = named.into_iter().map(|application| application.id).collect();
        for id in idle.into_iter().filter(|id| !known.contains(id)) {
            self.ports.repositories.remove(id).await.map_err(refused)?;
            tracing::info!(application.id = %id, "repository of a deleted application removed");
        }
        Ok(())
    }
}
