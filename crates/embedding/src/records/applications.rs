//! Applies writes to applications.

use launchway_domain::{
    applications::{Application, ApplicationState, Blueprint, Hostname, Write},
    clock::Timestamp,
    ids::ApplicationId,
    organizations::Scope,
    store::{Rule, StoreError, Unique},
};

use super::Records;

impl Records {
    pub(super) fn apply_application(&mut self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Insert(application) => self.insert_application(application),
            Write::Update { scope, id, seen, blueprint, secrets, at } => {
                let known = self.applications.get(id).map(|application| application.updated_at);
                if seen.is_some_and(|seen| known != Some(seen)) {
                    return Err(StoreError::Stale);
                }
                self.require_unique_name(*scope, Some(*id), blueprint)?;
                if let Some(domain) = &blueprint.domain {
                    self.require_free(domain, Some(*id))?;
                }
                let application = self.owned(*scope, *id, *at)?;
                application.further_domains.retain(|further| Some(further) != blueprint.domain.as_ref());
                application.blueprint = Blueprint::clone(blueprint);
                application.secrets = secrets.clone();
                Ok(())
            }
            Write::AddDomain { scope, id, domain, at } => {
                self.require_free(domain, None)?;
                let application = self.owned(*scope, *id, *at)?;
                if application.further_domains.len() >= Application::MOST_FURTHER_DOMAINS {
                    return Err(StoreError::Refused(Rule::MostDomains));
                }
                application.further_domains.push(domain.clone());
                Ok(())
            }
            Write::RemoveDomain { scope, id, domain, at } => {
                let application = self.owned(*scope, *id, *at)?;
                let before = application.hosts().count();
                application.further_domains.retain(|further| further != domain);
                application.blueprint.domain.take_if(|main| *main == *domain);
                if application.hosts().count() < before { Ok(()) } else { Err(StoreError::Stale) }
            }
            Write::Delete { scope, id, at } => {
                self.owned(*scope, *id, *at)?;
                self.applications.remove(id);
                Ok(())
            }
            Write::SetStopped { scope, id, is_stopped, at } => {
                let application = self.owned(*scope, *id, *at)?;
                if application.live.is_none() {
                    return Err(StoreError::Stale);
                }
                application.is_stopped = *is_stopped;
                let state = if *is_stopped { ApplicationState::Stopped } else { ApplicationState::Running };
                set_state(application, state, *at);
                Ok(())
            }
            Write::SetHealth { deployment, health, at } => {
                let owner = self.deployments.get(deployment).map(|version| version.application_id);
                let found = owner.and_then(|owner| self.applications.get_mut(&owner));
                let found = found.filter(|one| one.live == Some(*deployment) && !one.is_stopped);
                set_state(found.ok_or(StoreError::Stale)?, health.state(), *at);
                self.edit_deployment(*deployment, |version| {
                    version.breakdown = health.reason().map(str::to_owned);
                });
                Ok(())
            }
        }
    }

    fn insert_application(&mut self, application: &Application) -> Result<(), StoreError> {
        let scope = Scope::of_record(application.organization_id);
        if !self.organizations.contains(&scope.id()) || !self.users.contains(&application.user_id) {
            return Err(StoreError::Stale);
        }
        self.require_unique_name(scope, None, &application.blueprint)?;
        if let Some(domain) = &application.blueprint.domain {
            self.require_free(domain, None)?;
        }
        let mut application = application.clone();
        let automatic = application.automatic_host.clone();
        let mut number = 1;
        while self.is_named(application.automatic_host.as_str()) {
            number += 1;
            application.automatic_host = automatic.numbered(number);
        }
        self.applications.insert(application.id, application);
        Ok(())
    }

    /// Returns an application of the organization and marks it as changed.
    fn owned(
        &mut self,
        scope: Scope,
        id: ApplicationId,
        at: Timestamp,
    ) -> Result<&mut Application, StoreError> {
        let found = self.applications.get_mut(&id).filter(|found| found.organization_id == scope.id());
        let application = found.ok_or(StoreError::Stale)?;
        application.updated_at = at;
        Ok(application)
    }

    fn require_unique_name(
        &self,
        scope: Scope,
        own: Option<ApplicationId>,
        blueprint: &Blueprint,
    ) -> Result<(), StoreError> {
        let is_same = |other: &Application| {
            other.organization_id == scope.id()
                && Some(other.id) != own
                && other.blueprint.name == blueprint.name
                && other.blueprint.environment == blueprint.environment
        };
        match self.applications.values().any(is_same) {
            true => Err(StoreError::Taken(Unique::ApplicationName)),
            false => Ok(()),
        }
    }

    /// Checks that no other application than `own` has a domain.
    fn require_free(&self, domain: &Hostname, own: Option<ApplicationId>) -> Result<(), StoreError> {
        let mut others = self.applications.values().filter(|other| Some(other.id) != own);
        match others.any(|other| other.hosts().any(|host| host == domain.as_str())) {
            true => Err(StoreError::Taken(Unique::Domain)),
            false => Ok(()),
        }
    }

    /// Returns whether a host name is routed to an application.
    #[must_use]
    pub fn is_named(&self, host: &str) -> bool {
        self.applications.values().any(|found| found.hosts().any(|name| name == host))
    }
}

/// Sets the state of an application, and the time of the change.
pub(super) fn set_state(application: &mut Application, state: ApplicationState, at: Timestamp) {
    if application.status.state != state {
        application.status.state = state;
        application.status.updated_at = at;
    }
}
