//! Receives uploads.

use launchway_domain::{
    applications::{Application, Branch},
    auth::Actor,
    deployments::{BuildCache, CommitHash},
    ids::{ApplicationId, DeploymentId},
    sources::{PendingSource, Received, UploadCommit, upload_reference},
};

use super::{CREATE, Describe, How, SourceTarget, Sources, TargetName, is_hosted, refused};
use crate::{Error, applications::APPLICATION};

/// The branch that an application follows after its first upload.
const USUAL_BRANCH: &str = "main";

/// The result of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    /// The application.
    pub application: ApplicationId,
    /// Its deployment.
    pub deployment: DeploymentId,
    /// The SHA-256 of the archive.
    pub digest: String,
}

impl Sources {
    /// Stores an archive as a commit, and deploys it. Either the deployment exists and the upload is the newest one, or
    /// neither.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an archive that is damaged, unsafe or too large, and when it cannot be detected how a new
    /// application is built; [`Error::Conflict`] when the application has another source, or the servers of this
    /// installation do not share their repositories; [`Error::QuotaExceeded`] and others as for a new application;
    /// [`Error::Forbidden`] without the permission `deploy:create`.
    pub async fn upload(
        &self,
        actor: &Actor,
        target: &SourceTarget,
        archive: Received,
        cache: BuildCache,
        describe: &Describe,
    ) -> Result<Uploaded, Error> {
        let scope = actor.require(CREATE)?;
        self.require_one_place()?;
        let _turn = self.turns.wait(target.id()).await;
        let digest = archive.sha256.clone();
        let deployment = match target {
            SourceTarget::Existing(application) => {
                let found = self.ports.applications.get(scope, application.id).await?;
                self.upload_to(actor, &found.ok_or(APPLICATION)?, archive, cache).await?
            }
            SourceTarget::New { id, name } => {
                let created = self.create_by_upload(actor, (*id, name), archive, describe).await;
                if created.is_err() {
                    self.ports.repositories.remove(*id).await.map_err(refused)?;
                }
                created?
            }
        };
        Ok(Uploaded { application: target.id(), deployment, digest })
    }

    async fn upload_to(
        &self,
        actor: &Actor,
        application: &Application,
        archive: Received,
        cache: BuildCache,
    ) -> Result<DeploymentId, Error> {
        let Some(branch) = application.blueprint.branch.as_ref().filter(|_| is_hosted(application)) else {
            return Err(Error::Conflict(format!(
                "the application is deployed from {}: set its repository to /git/{}.git to upload its source",
                application.blueprint.repository.as_str(),
                application.id
            )));
        };
        let how = How::upload(branch, &archive.sha256, cache);
        let new = self.import(actor, application.id, archive).await?;
        let reference = upload_reference(branch);
        let pending = PendingSource {
            organization: application.organization_id,
            application: application.id,
            deployment: self.context.ids.next().into(),
            old: self.head(application.id, &reference).await?,
            reference,
            new,
            by: actor.user().username.as_str().to_owned(),
        };
        self.ports.repositories.begin(&pending).await.map_err(refused)?;
        let (old, new) = (pending.old.clone(), Some(pending.new.clone()));
        let repositories = &self.ports.repositories;
        let moved =
            repositories.move_reference(application.id, &pending.reference, old.clone(), new.clone()).await;
        if !moved.map_err(refused)? {
            repositories.end(&pending).await.map_err(refused)?;
            return Err(Error::Conflict("another upload was faster: try again".to_owned()));
        }
        let deployed = self.deploy(application, &pending, actor.author(), &how).await;
        if deployed.is_err() {
            let moved = repositories.move_reference(application.id, &pending.reference, new, old).await;
            moved.map_err(refused)?;
        }
        repositories.end(&pending).await.map_err(refused)?;
        deployed?;
        Ok(pending.deployment)
    }

    async fn create_by_upload(
        &self,
        actor: &Actor,
        (id, name): (ApplicationId, &TargetName),
        archive: Received,
        describe: &Describe,
    ) -> Result<DeploymentId, Error> {
        let branch: Branch = USUAL_BRANCH
            .parse()
            .map_err(|error: launchway_domain::value::InvalidValue| Error::Internal(error.into()))?;
        let how = How::upload(&branch, &archive.sha256, BuildCache::Use);
        let commit = self.import(actor, id, archive).await?;
        let reference = upload_reference(&branch);
        let moved = self.ports.repositories.move_reference(id, &reference, None, Some(commit.clone())).await;
        moved.map_err(refused)?;
        self.create(actor, (id, name), (&branch, &commit), &how, describe).await
    }

    async fn import(&self, actor: &Actor, id: ApplicationId, archive: Received) -> Result<CommitHash, Error> {
        let user = actor.user();
        let commit = UploadCommit {
            name: user.username.as_str().to_owned(),
            email: user.email.as_str().to_owned(),
            at: self.context.clock.now(),
            message: format!("Upload\n\nSHA-256: {}\n", archive.sha256),
        };
        self.ports.repositories.import(id, archive, &commit).await.map_err(|error| match refused(error) {
            Error::Conflict(sentence) => Error::Invalid(sentence),
            error => error,
        })
    }
}
