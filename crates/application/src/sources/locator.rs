//! Finds the application that source is for.

use launchway_domain::{
    applications::{Application, ApplicationFilter, ApplicationName, Environment},
    auth::Actor,
    ids::ApplicationId,
    page::PageRequest,
};

use super::{CREATE, READ, Sources, new_id};
use crate::{Error, applications::APPLICATION};

/// The size of a page when an application is searched by its name.
const PAGE: i64 = 100;

/// The name and the environment of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetName {
    /// The name.
    pub name: ApplicationName,
    /// The environment.
    pub environment: Environment,
}

/// The application that source is for.
#[derive(Debug, Clone)]
pub enum SourceTarget {
    /// An application of the actor's organization.
    Existing(Box<Application>),
    /// An application that the first source creates.
    New {
        /// The id that it will get.
        id: ApplicationId,
        /// The name that it will get.
        name: TargetName,
    },
}

impl SourceTarget {
    /// Returns the application, if it exists.
    #[must_use]
    pub fn application(&self) -> Option<&Application> {
        match self {
            Self::Existing(application) => Some(application),
            Self::New { .. } => None,
        }
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> ApplicationId {
        match self {
            Self::Existing(application) => application.id,
            Self::New { id, .. } => *id,
        }
    }
}

impl Sources {
    /// Finds an application by its id, in any organization of the user, and returns it with the actor there.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no organization of the user has it, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn by_id(&self, actor: &Actor, id: ApplicationId) -> Result<(Actor, SourceTarget), Error> {
        let memberships = actor.profile().memberships.iter();
        for actor in memberships.filter_map(|membership| actor.acting_in(membership.organization.id)) {
            let Ok(scope) = actor.require(READ) else { continue };
            if let Some(application) = self.ports.applications.get(scope, id).await? {
                return Ok((actor, SourceTarget::Existing(Box::new(application))));
            }
        }
        actor.require(READ)?;
        Err(APPLICATION)
    }

    /// Finds an application by its name in the actor's organization. Without one, it is created by the first source of an
    /// actor who may create applications.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read`, [`Error::NotFound`] if there is none and the actor may
    /// not create it.
    pub async fn by_name(&self, actor: &Actor, name: TargetName) -> Result<SourceTarget, Error> {
        let scope = actor.require(READ)?;
        let filter = ApplicationFilter {
            search: Some(name.name.to_string()),
            environment: Some(name.environment.clone()),
            state: None,
        };
        let mut number = 1;
        loop {
            let page = self.ports.applications.page(scope, &filter, page(number)?).await?;
            let is_last = page.items.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
            let mut found = page.items.into_iter().map(|summary| summary.application);
            if let Some(application) = found.find(|one| one.blueprint.name == name.name) {
                return Ok(SourceTarget::Existing(Box::new(application)));
            }
            if is_last {
                break;
            }
            number += 1;
        }
        actor.require(CREATE).map_err(|_lacks| APPLICATION)?;
        Ok(SourceTarget::New { id: new_id(&self.context), name })
    }

    /// Returns the actor in the organization with this name or id, if the user is a member of it.
    #[must_use]
    pub fn in_organization(&self, actor: &Actor, name: &str) -> Option<Actor> {
        let memberships = &actor.profile().memberships;
        let is_named = |organization: &launchway_domain::organizations::Organization| {
            organization.name.as_str().eq_ignore_ascii_case(name) || organization.id.to_string() == name
        };
        let found = memberships.iter().find(|membership| is_named(&membership.organization))?;
        actor.acting_in(found.organization.id)
    }
}

fn page(number: i64) -> Result<PageRequest, Error> {
    PageRequest::new(number, PAGE, PAGE).map_err(|error| Error::Internal(error.into()))
}
