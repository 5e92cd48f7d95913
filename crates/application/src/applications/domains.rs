//! The domains of an application.

use launchway_domain::{
    applications::{Application, ApplicationDetail, Hostname, Write},
    audit::{Action as Did, Event, Resource as Audited},
    auth::Actor,
    ids::ApplicationId,
    organizations::Scope,
    store::{Rule, StoreError, Unique},
};

use super::{APPLICATION, Applications, OUR_OWN, ShownVariables, UPDATE, in_use, titled};
use crate::Error;

const DOMAIN: Error = Error::NotFound("the domain");

impl Applications {
    /// Adds a domain to an application of the actor's organization, and routes it at once.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id, [`Error::Invalid`] when the name is
    /// the installation's own, [`Error::Conflict`] when an application has it already or this one has too
    /// many, [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn add_domain(
        &self,
        actor: &Actor,
        id: ApplicationId,
        domain: Hostname,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        let scope = actor.require(UPDATE)?;
        if self.is_our_own(&domain) {
            return Err(Error::Invalid(OUR_OWN.to_owned()));
        }
        let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        let (at, what) = (self.context.clock.now(), format!("added the domain {domain} to"));
        let event = named(&application, &what, &domain);
        let write = Write::AddDomain { scope, id, domain: domain.clone(), at };
        let writes = vec![write.into(), self.context.record(actor.author(), event)];
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Taken(Unique::Domain) if application.hosts().any(|host| host == domain.as_str()) => {
                Error::Conflict(format!("the application has the domain `{domain}` already"))
            }
            StoreError::Taken(Unique::Domain) => in_use(&domain),
            StoreError::Refused(Rule::MostDomains) => Error::Conflict(format!(
                "an application has at most {} further domains",
                Application::MOST_FURTHER_DOMAINS
            )),
            StoreError::Stale => APPLICATION,
            error => error.into(),
        })?;
        self.update_routes(scope, id).await;
        self.written(actor, id).await
    }

    /// Removes a domain from an application of the actor's organization: an additional one or its main one.
    /// Its route is removed at once.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id or it does not have the name,
    /// [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn remove_domain(
        &self,
        actor: &Actor,
        id: ApplicationId,
        domain: Hostname,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        let scope = actor.require(UPDATE)?;
        let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        let (at, what) = (self.context.clock.now(), format!("removed the domain {domain} from"));
        let event = named(&application, &what, &domain);
        let write = Write::RemoveDomain { scope, id, domain, at };
        let writes = vec![write.into(), self.context.record(actor.author(), event)];
        self.context.commit(writes, DOMAIN).await?;
        self.update_routes(scope, id).await;
        self.written(actor, id).await
    }

    /// Returns whether `host` is routed to an application of the installation, of any organization.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database cannot be asked.
    pub async fn is_served(&self, host: &str) -> Result<bool, Error> {
        Ok(self.applications.is_named(host).await?)
    }

    /// Updates the routes of an application. The change is durable already: if the router cannot be updated
    /// now, the update is retried later.
    pub(super) async fn update_routes(&self, scope: Scope, id: ApplicationId) {
        if let Err(error) = self.routes.follow(scope, id).await {
            tracing::warn!(application.id = %id, %error, "route update failed; it is retried later");
        }
    }
}

fn named(application: &Application, what: &str, domain: &Hostname) -> Event {
    let what = format!("{what} {}", titled(&application.blueprint));
    Event::new(Did::Update, Audited::Application, application.id, what).with("domain", domain)
}
