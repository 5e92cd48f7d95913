//! Access for programs.

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

use crate::{Error, Tools};

/// A wish for an API token.
#[derive(Debug)]
pub struct NewApiToken {
    /// What to call it.
    pub name: ApiTokenName,
    /// What it may do; without, all that its owner may do now.
    pub permissions: Option<Permissions>,
    /// When it ends by itself; without, never.
    pub expires_at: Option<Timestamp>,
}

/// An API token that was just issued, with its text, which is shown this once.
#[derive(Debug)]
pub struct IssuedApiToken {
    /// The text.
    pub token: Token,
    /// What it stands for.
    pub details: ApiToken,
}

/// Issues, lists and revokes API tokens of the caller, in the organization that they act in.
pub struct ApiTokens {
    credentials: Arc<dyn CredentialRepository>,
    tools: Tools,
}

impl ApiTokens {
    /// Lists what `credentials` has.
    pub fn new(credentials: Arc<dyn CredentialRepository>, tools: Tools) -> Self {
        Self { credentials, tools }
    }

    /// Issues a token.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a permission that the actor does not have or an end in the past,
    /// [`Error::Conflict`] for a name that is in use, [`Error::Forbidden`] without a session.
    pub async fn issue(&self, actor: &Actor, wish: NewApiToken) -> Result<IssuedApiToken, Error> {
        actor.session()?;
        let organization_id = actor.organization()?.id();
        let now = self.tools.clock.now();
        let permissions = wish.permissions.unwrap_or_else(|| actor.permissions());
        let problems: Vec<String> = lacking(actor, permissions)
            .into_iter()
            .chain(
                wish.expires_at
                    .filter(|end| *end <= now)
                    .map(|_| "expires_at must be in the future".to_owned()),
            )
            .collect();
        if !problems.is_empty() {
            return Err(Error::Invalid(problems.join("; ")));
        }
        let token = Token::new(TokenKind::Api, self.tools.entropy.bits_256());
        let details = ApiToken {
            id: self.tools.ids.next().into(),
            organization_id,
            user_id: actor.user_id(),
            name: wish.name,
            token_hash: token.hash(),
            permissions,
            expires_at: wish.expires_at,
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
            vec![Write::IssueApiToken(details.clone()).into(), self.tools.record(actor.author(), event)];
        match self.tools.store.commit(writes).await {
            Ok(()) => Ok(IssuedApiToken { token, details }),
            Err(StoreError::Stale) => Err(Forbidden::NotAMember.into()),
            Err(StoreError::Taken(Unique::ApiTokenName)) => {
                Err(Error::Conflict(format!("you have an API token named `{}` already", details.name)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The actor's tokens, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without a session.
    pub async fn list(&self, actor: &Actor) -> Result<Vec<ApiToken>, Error> {
        actor.session()?;
        match actor.organization() {
            Ok(organization) => Ok(self.credentials.api_tokens(organization, actor.user_id()).await?),
            // Who is in no organization has none, and may ask.
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Makes a token void at once.
    ///
    /// # Errors
    /// [`Error::NotFound`] unless it is the actor's own, [`Error::Forbidden`] without a session.
    pub async fn revoke(&self, actor: &Actor, id: ApiTokenId) -> Result<(), Error> {
        actor.session()?;
        let revocation = Write::RevokeApiToken {
            id,
            organization_id: actor.organization()?.id(),
            user_id: actor.user_id(),
            at: self.tools.clock.now(),
        };
        let event = Event::new(Action::Delete, Resource::Token, id, "revoked an API token");
        let writes = vec![revocation.into(), self.tools.record(actor.author(), event)];
        self.tools.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => Error::NotFound("the API token"),
            error => error.into(),
        })
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
