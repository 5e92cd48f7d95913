//! The tokens with which commit statuses are reported to code hosts.

use launchway_domain::{
    audit::{Action as Did, Event, Resource as Audited},
    auth::{Action, Actor, Permission, Resource},
    organizations::Scope,
    previews::{CodeHostApi, CodeHostName, CodeHostToken, Write},
    secret::Secret,
};

use super::Previews;
use crate::Error;

/// The permission to change tokens, which only admins have.
const CHANGE: Permission = Permission::new(Resource::Organization, Action::Update);
const LIST: Permission = Permission::new(Resource::Organization, Action::Read);

const TOKEN: Error = Error::NotFound("the token of this code host");
const ORGANIZATION: Error = Error::NotFound("the organization");

impl Previews {
    /// Returns the tokens of the actor's organization, sealed, in the order of their code hosts.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `organization:read`.
    pub async fn tokens(&self, actor: &Actor) -> Result<Vec<CodeHostToken>, Error> {
        let scope = actor.require(LIST)?;
        Ok(self.ports.previews.tokens(scope).await?)
    }

    /// Stores the token of the actor's organization for a code host, in place of an earlier one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the token cannot be sent in a header, [`Error::Conflict`] if the organization has too many,
    /// [`Error::Forbidden`] without the permission `organization:update`.
    pub async fn set_token(
        &self,
        actor: &Actor,
        host: CodeHostName,
        api: Option<CodeHostApi>,
        token: &Secret<String>,
    ) -> Result<CodeHostToken, Error> {
        let scope = actor.require(CHANGE)?;
        let text = token.expose();
        let fits = (1..=CodeHostToken::LONGEST).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Invalid("the token must have 1 to 1024 printable characters".to_owned()));
        }
        let known = self.ports.previews.tokens(scope).await?;
        if known.len() >= CodeHostToken::MOST && known.iter().all(|other| other.host != host) {
            let most = CodeHostToken::MOST;
            return Err(Error::Conflict(format!("an organization has at most {most} tokens of code hosts")));
        }
        let organization = scope.id();
        let place = CodeHostToken::associated_data(organization, &host);
        let stored = CodeHostToken {
            organization,
            host,
            api,
            token: self.ports.secrets.seal(&place, text.as_bytes())?,
            updated_at: self.context.clock.now(),
            problem: None,
        };
        let event = told(scope, "changed", &stored.host).with_changed_secret("token");
        let writes = vec![Write::SetToken(stored.clone()).into(), self.context.record(actor.author(), event)];
        self.context.commit(writes, ORGANIZATION).await?;
        self.context.wake.notify();
        Ok(stored)
    }

    /// Removes the token of the actor's organization for a code host.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none, [`Error::Forbidden`] without the permission `organization:update`.
    pub async fn remove_token(&self, actor: &Actor, host: CodeHostName) -> Result<(), Error> {
        let scope = actor.require(CHANGE)?;
        let event = told(scope, "removed", &host);
        let writes =
            vec![Write::RemoveToken { scope, host }.into(), self.context.record(actor.author(), event)];
        self.context.commit(writes, TOKEN).await
    }
}

fn told(scope: Scope, did: &str, host: &CodeHostName) -> Event {
    let what = format!("{did} the token for commit statuses at `{host}`");
    Event::new(Did::Update, Audited::Organization, scope.id(), what).with("code_host", host)
}
