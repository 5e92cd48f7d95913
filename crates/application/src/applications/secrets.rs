//! Encrypts and decrypts the secrets of applications.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use launchway_domain::{
    applications::{Application, ApplicationSecrets, GitCredentials, Variables},
    ids::ApplicationId,
    secret::{Sealed, Secret, SecretBox},
};

use crate::Error;

const BUILD: &str = "build_variables";
const ENVIRONMENT: &str = "environment_variables";
const CREDENTIALS: &str = "credentials";
/// The largest total size of the replaced values that are kept, in bytes.
const MOST_FORMER: usize = 256 * 1024;

/// Seals and opens the secrets of applications.
#[derive(Clone)]
pub(crate) struct Vault(Arc<dyn SecretBox>);

/// The decrypted secrets of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenSecrets {
    pub(crate) build_variables: Variables,
    pub(crate) environment_variables: Variables,
    pub(crate) credentials: Option<GitCredentials>,
    /// Values that were replaced, the newest first. A container that was started with them keeps printing
    /// them, so they are masked in logs too.
    pub(crate) former: Vec<String>,
}

impl OpenSecrets {
    /// Returns every value that must be masked in logs.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.current().chain(self.former.iter().map(String::as_str))
    }

    fn current(&self) -> impl Iterator<Item = &str> {
        let variables = self.build_variables.iter().chain(self.environment_variables.iter());
        let password = self.credentials.as_ref().map(|credentials| credentials.password.expose().as_str());
        variables.map(|(_, value)| value).chain(password)
    }

    /// Returns these secrets with the replaced values of `old` added to the former ones.
    pub(crate) fn instead_of(mut self, old: &Self) -> Self {
        let current: BTreeSet<&str> = self.current().collect();
        let (mut known, mut room) = (BTreeSet::new(), MOST_FORMER);
        let mut former = Vec::new();
        for value in old.values().filter(|value| !value.is_empty() && !current.contains(value)) {
            if known.insert(value) && value.len() <= room {
                room -= value.len();
                former.push(value.to_owned());
            }
        }
        self.former = former;
        self
    }
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
            environment_variables: self.seal_environment(id, secrets)?,
            credentials,
        })
    }

    pub(crate) fn open(&self, application: &Application) -> Result<OpenSecrets, Error> {
        let (id, sealed) = (application.id, &application.secrets);
        let credentials = match &sealed.credentials {
            Some(credentials) => Some(self.open_credentials(id, credentials)?),
            None => None,
        };
        let (environment_variables, former) = self.open_environment(id, &sealed.environment_variables)?;
        Ok(OpenSecrets {
            build_variables: self.open_variables(id, BUILD, &sealed.build_variables)?,
            environment_variables,
            credentials,
            former,
        })
    }

    fn seal_variables(
        &self,
        id: ApplicationId,
        column: &str,
        variables: &Variables,
    ) -> Result<Sealed, Error> {
        self.seal_at(&ApplicationSecrets::associated_data(id, column), variables)
    }

    fn open_variables(&self, id: ApplicationId, column: &str, sealed: &Sealed) -> Result<Variables, Error> {
        self.open_at(&ApplicationSecrets::associated_data(id, column), sealed)
    }

    /// Seals variables with their associated data.
    pub(crate) fn seal_at(&self, associated_data: &str, variables: &Variables) -> Result<Sealed, Error> {
        let map: BTreeMap<&str, &str> = variables.iter().collect();
        let plain = serde_json::to_vec(&map).map_err(|error| Error::Internal(error.into()))?;
        Ok(self.0.seal(associated_data, &plain)?)
    }

    /// Opens variables that were sealed with this associated data.
    pub(crate) fn open_at(&self, associated_data: &str, sealed: &Sealed) -> Result<Variables, Error> {
        let plain = self.0.open(associated_data, sealed)?;
        let map: BTreeMap<String, String> =
            serde_json::from_slice(plain.expose()).map_err(|error| Error::Internal(error.into()))?;
        map.try_into().map_err(|error| Error::Internal(Box::new(error)))
    }

    /// Seals the variables alone or, once there are former values, a list of both.
    fn seal_environment(&self, id: ApplicationId, secrets: &OpenSecrets) -> Result<Sealed, Error> {
        if secrets.former.is_empty() {
            return self.seal_variables(id, ENVIRONMENT, &secrets.environment_variables);
        }
        let map: BTreeMap<&str, &str> = secrets.environment_variables.iter().collect();
        let plain =
            serde_json::to_vec(&(map, &secrets.former)).map_err(|error| Error::Internal(error.into()))?;
        Ok(self.0.seal(&ApplicationSecrets::associated_data(id, ENVIRONMENT), &plain)?)
    }

    fn open_environment(
        &self,
        id: ApplicationId,
        sealed: &Sealed,
    ) -> Result<(Variables, Vec<String>), Error> {
        let plain = self.0.open(&ApplicationSecrets::associated_data(id, ENVIRONMENT), sealed)?;
        if !plain.expose().starts_with(b"[") {
            return Ok((self.open_variables(id, ENVIRONMENT, sealed)?, Vec::new()));
        }
        let (map, former): (BTreeMap<String, String>, Vec<String>) =
            serde_json::from_slice(plain.expose()).map_err(|error| Error::Internal(error.into()))?;
        let variables = map.try_into().map_err(|error| Error::Internal(Box::new(error)))?;
        Ok((variables, former))
    }

    fn seal_credentials(&self, id: ApplicationId, credentials: &GitCredentials) -> Result<Sealed, Error> {
        let pair = (&credentials.username, credentials.password.expose());
        let plain = serde_json::to_vec(&pair).map_err(|error| Error::Internal(error.into()))?;
        Ok(self.0.seal(&ApplicationSecrets::associated_data(id, CREDENTIALS), &plain)?)
    }

    fn open_credentials(&self, id: ApplicationId, sealed: &Sealed) -> Result<GitCredentials, Error> {
        let plain = self.0.open(&ApplicationSecrets::associated_data(id, CREDENTIALS), sealed)?;
        let (username, password) =
            serde_json::from_slice(plain.expose()).map_err(|error| Error::Internal(error.into()))?;
        Ok(GitCredentials { username, password: Secret::new(password) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns variables with `count` values of 64 KiB, which differ by `mark`.
    fn filled(count: usize, mark: char) -> OpenSecrets {
        let values = (0..count).map(|number| {
            let value = format!("{number}{mark}");
            (format!("NAME_{number}"), value.repeat(64 * 1024 / value.len()))
        });
        let environment_variables =
            values.collect::<BTreeMap<_, _>>().try_into().unwrap_or_else(|refused| panic!("{refused}"));
        OpenSecrets { environment_variables, ..OpenSecrets::default() }
    }

    #[test]
    fn so_many_bytes_of_former_values_are_remembered_and_no_more() {
        assert_eq!(filled(1, 'b').instead_of(&filled(4, 'a')).former.len(), 4);
        assert_eq!(filled(1, 'b').instead_of(&filled(5, 'a')).former.len(), 4);
    }

    #[test]
    fn the_newest_are_remembered_first() {
        let second = filled(3, 'b').instead_of(&filled(3, 'a'));
        let third = filled(0, 'c').instead_of(&second);
        let newest: Vec<_> = second.current().collect();
        assert_eq!(third.former[..3], newest);
        assert_eq!(third.former.len(), 4);
    }
}
