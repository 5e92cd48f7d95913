//! The repositories of applications, with what is needed to read them.

use std::sync::Arc;

use launchway_domain::{
    applications::{Application, GitPlace, Repository, Transport},
    deployments::GitSource,
    organizations::{DeployKey, DeployKeyRepository, Scope},
    secret::{Secret, SecretBox},
    store::StoreError,
};

use crate::{Error, applications::Vault};

/// Returns the repository of an application with its credentials, or the key of its organization.
#[derive(Clone)]
pub(super) struct GitSources {
    deploy_keys: Arc<dyn DeployKeyRepository>,
    secrets: Arc<dyn SecretBox>,
    vault: Vault,
}

impl GitSources {
    pub(super) fn new(deploy_keys: Arc<dyn DeployKeyRepository>, secrets: Arc<dyn SecretBox>) -> Self {
        let vault = Vault::new(Arc::clone(&secrets));
        Self { deploy_keys, secrets, vault }
    }

    /// Returns the branch that an application follows; `None` for an image.
    pub(super) async fn of(&self, application: &Application) -> Result<Option<GitSource>, Error> {
        let key = match is_by_ssh(application) {
            true => self.key_of(application).await?,
            false => None,
        };
        self.with_key(application, key.as_ref())
    }

    /// Returns the deploy key of the organization of an application.
    pub(super) async fn key_of(&self, application: &Application) -> Result<Option<DeployKey>, StoreError> {
        self.deploy_keys.deploy_key(Scope::of_record(application.organization_id)).await
    }

    /// Returns the branch that an application follows, by its organization's deploy key if it needs one.
    pub(super) fn with_key(
        &self,
        application: &Application,
        key: Option<&DeployKey>,
    ) -> Result<Option<GitSource>, Error> {
        let (Repository::Git(url), Some(branch)) =
            (&application.blueprint.repository, &application.blueprint.branch)
        else {
            return Ok(None);
        };
        let credentials = self.vault.open(application)?.credentials;
        let key = match key.filter(|_| is_by_ssh(application)) {
            Some(key) => {
                let place = DeployKey::associated_data(application.organization_id);
                let opened = self.secrets.open(&place, &key.private_key)?;
                Some(Secret::new(String::from_utf8_lossy(opened.expose()).into_owned()))
            }
            None => None,
        };
        Ok(Some(GitSource { url: url.clone(), branch: branch.clone(), credentials, key }))
    }
}

/// Returns whether the repository of an application is read over SSH.
pub(super) fn is_by_ssh(application: &Application) -> bool {
    let Repository::Git(url) = &application.blueprint.repository else { return false };
    matches!(url.place(), GitPlace::Remote { transport: Transport::Ssh, .. })
}
