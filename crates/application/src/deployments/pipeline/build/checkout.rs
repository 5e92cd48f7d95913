//! Fetches the source of a version.

use std::sync::Arc;

use launchway_domain::{
    applications::GitUrl,
    deployments::{Checkout, CommitHash, DeploymentState, GitSource, Progress, SourceFetcher, StepError},
    logs::Level,
    organizations::{DeployKey, DeployKeyRepository, Scope},
    secret::{Secret, SecretBox},
};

use super::{Attempt, JobError, JobRecords, entering};

/// Fetches source with the credentials of its application and the key of its organization.
pub(super) struct Checkouts {
    pub(super) source: Arc<dyn SourceFetcher>,
    pub(super) deploy_keys: Arc<dyn DeployKeyRepository>,
    pub(super) secrets: Arc<dyn SecretBox>,
    pub(super) records: JobRecords,
}

impl Checkouts {
    /// Fetches the head of the branch of the application, or the commit that was sent to this server or, of a fork,
    /// approved.
    pub(super) async fn fetch(&self, attempt: &Attempt<'_>, url: &GitUrl) -> Result<Checkout, JobError> {
        let blueprint = &attempt.application.blueprint;
        let Some(branch) = blueprint.branch.clone() else {
            return Err(JobError::Permanent("the application has no branch to deploy".to_owned()));
        };
        let is_of_request = branch.is_of_request();
        let source = GitSource {
            url: url.clone(),
            branch,
            credentials: attempt.secrets.credentials.clone(),
            key: self.deploy_key(attempt).await?,
        };
        let fixed = url.hosted_for().is_some() || is_of_request;
        let sent = attempt.deployment.commit.clone().filter(|_| fixed);
        if is_of_request && sent.is_none() {
            return Err(JobError::Permanent(
                "the source of a fork is deployed only by approving the preview of its request".to_owned(),
            ));
        }
        let asked = async {
            match sent {
                // A deployment of a push or an approval is one of its commit, wherever the branch is by now.
                Some(commit) => Ok(commit),
                None => self.source.head(&source).await,
            }
        };
        let commit = self.records.while_recorded(attempt, entering(DeploymentState::Cloning), asked).await?;
        let progress = Progress { commit: Some(commit.clone()), ..Progress::default() };
        let fetched = self.fetch_commit(attempt, &source, &commit);
        self.records.while_recorded(attempt, progress, fetched).await
    }

    async fn fetch_commit(
        &self,
        attempt: &Attempt<'_>,
        source: &GitSource,
        commit: &CommitHash,
    ) -> Result<Checkout, StepError> {
        let text = format!("Fetching commit {} of {}", commit.short(), source.branch);
        attempt.log.write_line(Level::Info, text).await;
        let output = attempt.log.output(Level::Info);
        let fetched = self.source.fetch(source, commit, &attempt.owner, output.clone()).await;
        output.finish().await;
        fetched
    }

    async fn deploy_key(&self, attempt: &Attempt<'_>) -> Result<Option<Secret<String>>, JobError> {
        let organization = attempt.owner.organization;
        let Some(key) = self.deploy_keys.deploy_key(Scope::of_record(organization)).await? else {
            return Ok(None);
        };
        let unreadable =
            || JobError::Permanent("the organization's deploy key cannot be decrypted".to_owned());
        let opened = self.secrets.open(&DeployKey::associated_data(organization), &key.private_key);
        let bytes = opened.map_err(|_broken| unreadable())?;
        let text = String::from_utf8(bytes.expose().clone()).map_err(|_broken| unreadable())?;
        Ok(Some(Secret::new(text)))
    }
}
