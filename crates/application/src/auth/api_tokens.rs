//! API tokens: access for programs.

use std::sync::Arc;

use launchway_domain::{
    audit::{Action, Event, Resource},
    auth::{
        Actor, ApiToken, ApiTokenName, CredentialRepository, Forbidden, Permission, Permissions, Token,
        TokenKind, Write,
    },
    clock::Timestamp,
    ids::ApiTokenId,
    store::{StoreError, Unique},
};

use crate::{Error, ServiceContext};

/// The request to create an API token.
#[derive(Debug)]
pub struct NewApiToken {
    /// The name of the token.
    pub name: ApiTokenName,
    /// The permissions of the token; if absent, all that its owner has now.
    pub permissions: Option<Permissions>,
    /// The time at which it expires; if absent, never.
    pub expires_at: Option<Timestamp>,
}

/// An API token that was just issued, with its text, which is shown only once.
#[derive(Debug)]
pub struct IssuedApiToken {
    /// The text of the token.
    pub token: Token,
    /// The record of the token.
    pub details: ApiToken,
}

/// Issues, lists and revokes API tokens of the caller in their current organization.
pub struct ApiTokens {
    credentials: Arc<dyn CredentialRepository>,
    context: ServiceContext,
}

impl ApiTokens {
    /// Returns the use cases over `credentials`.
    pub fn new(credentials: Arc<dyn CredentialRepository>, context: ServiceContext) -> Self {
        Self { credentials, context }
    }

    /// Issues a token.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a permission that the actor does not have or an end in the past,
    /// [`Error::Conflict`] for a name that is in use, [`Error::Forbidden`] without a session.
    pub async fn issue(&self, actor: &Actor, new: NewApiToken) -> Result<IssuedApiToken, Error> {
        actor.session()?;
        let organization_id = actor.organization()?.id();
        let now = self.context.clock.now();
        let permissions = new.permissions.unwrap_or_else(|| actor.permissions());
        let problems: Vec<String> = lacking(actor, permissions)
            .into_iter()
            .chain(
                new.expires_at
                    .filter(|end| *end <= now)
                    .map(|_| "expires_at must be in the future".to_owned()),
            )
            .collect();
        if !problems.is_empty() {
            return Err(Error::Invalid(problems.join("; ")));
        }
        let token = Token::new(TokenKind::Api, self.context.entropy.bits_256());
        let details = ApiToken {
            id: self.context.ids.next().into(),
            organization_id,
            user_id: actor.user_id(),
            name: new.name,
            token_hash: token.hash(),
            permissions,
            expires_at: new.expires_at,
            created_at: now,
        };
        let what = format!("issued the API token `{}`", details.name);
        let mut event = Event::new(Action::Create, Resource::Token, details.id, what)
            .with("name", &details.name)
            .with("permissions", permissions.names().join(" "));
        if let Some(end) = &details.expires_at {
            event = event.with("expires_at", end.to_rfc3339());
        }
        let writes =
            vec![Write::IssueApiToken(details.clone()).into(), self.context.record(actor.author(), event)];
        match self.context.store.commit(writes).await {
            Ok(()) => Ok(IssuedApiToken { token, details }),
            Err(StoreError::Stale) => Err(Forbidden::NotAMember.into()),
            Err(StoreError::Taken(Unique::ApiTokenName)) => {
                Err(Error::Conflict(format!("you have an API token named `{}` already", details.name)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the actor's tokens, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without a session.
    pub async fn list(&self, actor: &Actor) -> Result<Vec<ApiToken>, Error> {
        actor.session()?;
        match actor.organization() {
            Ok(organization) => Ok(self.credentials.api_tokens(organization, actor.user_id()).await?),
            // A user without an organization has none, but may list them.
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Revokes a token with immediate effect.
    ///
    /// # Errors
    /// [`Error::NotFound`] unless it is the actor's own, [`Error::Forbidden`] without a session.
    pub async fn revoke(&self, actor: &Actor, id: ApiTokenId) -> Result<(), Error> {
        actor.session()?;
        let revocation = Write::RevokeApiToken {
            id,
            organization_id: actor.organization()?.id(),
            user_id: actor.user_id(),
            at: self.context.clock.now(),
        };
        let event = Event::new(Action::Delete, Resource::Token, id, "revoked an API token");
        let writes = vec![revocation.into(), self.context.record(actor.author(), event)];
        self.context.commit(writes, Error::NotFound("the API token")).await
    }
}

fn lacking(actor: &Actor, wanted: Permissions) -> Option<String> {
    let lacking: Vec<String> = wanted
        .iter()
        .filter(|permission| match *permission {
            Permission::METRICS => !actor.administers_installation(),
            permission => !actor.permissions().contain(permission),
        })
        .map(|permission| format!("`{permission}`"))
        .collect();
    (!lacking.is_empty())
        .then(|| format!("permissions must be among your own, and you lack {}", lacking.join(", ")))
}
