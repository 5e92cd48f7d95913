//! Receives uploads.

use launchway_domain::{
    applications::{Application, Branch},
    auth::Actor,
    deployments::{BuildCache, CommitHash, SourceDigest},
    idempotency::IdempotencyKey,
    ids::{ApplicationId, DeploymentId},
    sources::{PendingSource, Upload, UploadCommit, upload_reference},
    value::InvalidValue,
};

use super::{
    CREATE, CommitOrigin, Describe, SourceTarget, Sources, TargetName, blocks::invalid, is_hosted, refused,
};
use crate::{Error, applications::APPLICATION};

/// The branch that an application follows after its first upload.
const USUAL_BRANCH: &str = "main";

/// An upload to deploy.
#[derive(Debug)]
pub struct UploadRequest {
    /// The files.
    pub upload: Upload,
    /// The use of the build cache.
    pub cache: BuildCache,
    /// The key that the client sent, which is claimed with the deployment.
    pub key: Option<IdempotencyKey>,
}

impl UploadRequest {
    fn digest(&self) -> Result<SourceDigest, Error> {
        let digest = format!("sha256:{}", self.upload.sha256());
        digest.parse().map_err(|error: InvalidValue| Error::Internal(error.into()))
    }
}

/// The result of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    /// The application.
    pub application: ApplicationId,
    /// Its deployment.
    pub deployment: DeploymentId,
    /// The digest of the files.
    pub digest: SourceDigest,
}

impl Sources {
    /// Stores an upload as a commit, and deploys it. Either the deployment exists and the upload is the newest one, or
    /// neither.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an upload that is damaged, unsafe or too large, and when it cannot be detected how a new
    /// application is built; [`Error::Conflict`] when the application has another source, or the servers of this
    /// installation do not share their repositories; [`Error::QuotaExceeded`] and others as for a new application;
    /// [`Error::Repeated`] when the key was used; [`Error::Forbidden`] without the permission `deploy:create`.
    pub async fn upload(
        &self,
        actor: &Actor,
        target: &SourceTarget,
        request: UploadRequest,
        describe: &Describe,
    ) -> Result<Uploaded, Error> {
        let scope = actor.require(CREATE)?;
        self.require_one_place()?;
        let _turn = self.turns.wait(target.id()).await;
        let digest = request.digest()?;
        let deployment = match target {
            SourceTarget::Existing(application) => {
                let found = self.ports.applications.get(scope, application.id).await?;
                self.upload_to(actor, &found.ok_or(APPLICATION)?, request).await?
            }
            SourceTarget::New { id, name } => {
                let created = self.create_by_upload(actor, (*id, name), request, describe).await;
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
        request: UploadRequest,
    ) -> Result<DeploymentId, Error> {
        let Some(branch) = application.blueprint.branch.as_ref().filter(|_| is_hosted(application)) else {
            return Err(Error::Conflict(format!(
                "the application is deployed from {}: set its repository to /git/{}.git to upload its source",
                application.blueprint.repository.as_str(),
                application.id
            )));
        };
        let digest = request.digest()?;
        let UploadRequest { upload, cache, key } = request;
        let how = CommitOrigin::upload(branch, Some(digest.clone()), cache);
        let new = self.import(actor, application.id, upload).await?;
        let reference = upload_reference(branch);
        let pending = PendingSource {
            organization: application.organization_id,
            application: application.id,
            deployment: self.context.ids.next().into(),
            old: self.head(application.id, &reference).await?,
            reference,
            new,
            by: actor.user().username.as_str().to_owned(),
            digest: Some(digest),
            key,
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
        request: UploadRequest,
        describe: &Describe,
    ) -> Result<DeploymentId, Error> {
        let branch: Branch =
            USUAL_BRANCH.parse().map_err(|error: InvalidValue| Error::Internal(error.into()))?;
        let how = CommitOrigin::upload(&branch, Some(request.digest()?), BuildCache::Use);
        let commit = self.import(actor, id, request.upload).await?;
        let reference = upload_reference(&branch);
        let moved = self.ports.repositories.move_reference(id, &reference, None, Some(commit.clone())).await;
        moved.map_err(refused)?;
        self.create(actor, (id, name), (&branch, &commit), (&how, request.key), describe).await
    }

    async fn import(&self, actor: &Actor, id: ApplicationId, upload: Upload) -> Result<CommitHash, Error> {
        let user = actor.user();
        let commit = UploadCommit {
            name: user.username.as_str().to_owned(),
            email: user.email.as_str().to_owned(),
            at: self.context.clock.now(),
            message: format!("Upload\n\nSHA-256: {}\n", upload.sha256()),
        };
        self.ports.repositories.import(id, upload, &commit).await.map_err(invalid)
    }
}
