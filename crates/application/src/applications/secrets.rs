//! What of an application is kept encrypted: sealing it, and opening it again.

use std::{collections::BTreeMap, sync::Arc};

use launchway_domain::{
    applications::{Application, ApplicationSecrets, GitCredentials, Variables},
    ids::ApplicationId,
    secret::{Sealed, Secret, SecretBox},
};

use crate::Error;

const BUILD: &str = "build_variables";
const ENVIRONMENT: &str = "environment_variables";
const CREDENTIALS: &str = "credentials";

/// Seals and opens the secrets of applications.
#[derive(Clone)]
pub(crate) struct Vault(Arc<dyn SecretBox>);

/// An application's secrets, opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenSecrets {
    pub(crate) build_variables: Variables,
    pub(crate) environment_variables: Variables,
    pub(crate) credentials: Option<GitCredentials>,
}

impl Vault {
    pub(crate) fn new(secrets: Arc<dyn SecretBox>) -> Self {
        Self(secrets)
    }

    pub(crate) fn seal(&self, id: ApplicationId, secrets: &OpenSecrets) -> Result<ApplicationSecrets, Error> {
        let credentials = match &secrets.credentials {
            Some(credentials) => Some(self.seal_credentials(id, credentials)?),
            None => None,
        };
        Ok(ApplicationSecrets {
            build_variables: self.seal_variables(id, BUILD, &secrets.build_variables)?,
            environment_variables: self.seal_variables(id, ENVIRONMENT, &secrets.environment_variables)?,
            credentials,
        })
    }

    pub(crate) fn open(&self, application: &Application) -> Result<OpenSecrets, Error> {
        let (id, sealed) = (application.id, &application.secrets);
        let credentials = match &sealed.credentials {
            Some(credentials) => Some(self.open_credentials(id, credentials)?),
            None => None,
        };
        Ok(OpenSecrets {
            build_variables: self.open_variables(id, BUILD, &sealed.build_variables)?,
            environment_variables: self.open_variables(id, ENVIRONMENT, &sealed.environment_variables)?,
            credentials,
        })
    }

    fn seal_variables(
        &self,
        id: ApplicationId,
        column: &str,
        variables: &Variables,
    ) -> Result<Sealed, Error> {
        let map: BTreeMap<&str, &str> = variables.iter().collect();
        let plain = serde_json::to_vec(&map).map_err(|error| Error::Internal(error.into()))?;
        Ok(self.0.seal(&ApplicationSecrets::place(id, column), &plain)?)
    }

    fn open_variables(&self, id: ApplicationId, column: &str, sealed: &Sealed) -> Result<Variables, Error> {
        let plain = self.0.open(&ApplicationSecrets::place(id, column), sealed)?;
        let map: BTreeMap<String, String> =
            serde_json::from_slice(plain.expose()).map_err(|error| Error::Internal(error.into()))?;
        map.try_into().map_err(|error| Error::Internal(Box::new(error)))
    }

    fn seal_credentials(&self, id: ApplicationId, credentials: &GitCredentials) -> Result<Sealed, Error> {
        let pair = (&credentials.username, credentials.password.expose());
        let plain = serde_json::to_vec(&pair).map_err(|error| Error::Internal(error.into()))?;
        Ok(self.0.seal(&ApplicationSecrets::place(id, CREDENTIALS), &plain)?)
    }

    fn open_credentials(&self, id: ApplicationId, sealed: &Sealed) -> Result<GitCredentials, Error> {
        let plain = self.0.open(&ApplicationSecrets::place(id, CREDENTIALS), sealed)?;
        let (username, password) =
            serde_json::from_slice(plain.expose()).map_err(|error| Error::Internal(error.into()))?;
        Ok(GitCredentials { username, password: Secret::new(password) })
    }
}
