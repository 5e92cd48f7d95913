//! An entry of the audit log.

use std::{collections::BTreeMap, net::IpAddr};

use super::Chain;
use crate::{
    auth::Origin,
    clock::Timestamp,
    ids::{AuditEntryId, UserId},
    value::named,
};

/// An entry of the audit log: one action that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The id of the audit entry.
    pub id: AuditEntryId,
    /// The chain that it belongs to.
    pub chain: Chain,
    /// The name of the actor at the time.
    pub actor: String,
    /// The user who did it; `None` if it was done with the server's own files, or by a code host.
    pub actor_id: Option<UserId>,
    /// The kind of action.
    pub action: Action,
    /// The kind of resource.
    pub resource: Resource,
    /// The id of the resource.
    pub resource_id: String,
    /// A sentence for a human reader.
    pub message: String,
    /// Details for programs; never a secret.
    pub metadata: BTreeMap<String, String>,
    /// The id of the request.
    pub request_id: String,
    /// The address of the client.
    pub address: Option<IpAddr>,
    /// The time of the action.
    pub at: Timestamp,
}

impl Entry {
    /// Creates the entry for `event`, done by `author`.
    #[must_use]
    pub fn new(id: AuditEntryId, author: Author, event: Event, at: Timestamp) -> Self {
        let (request_id, address) = match author.origin {
            Some(origin) => (origin.request_id, Some(origin.client.address)),
            None => (String::new(), None),
        };
        Self {
            id,
            chain: author.chain,
            message: format!("{} {}", author.name, event.what),
            actor: author.name,
            actor_id: author.user_id,
            action: event.action,
            resource: event.resource,
            resource_id: event.resource_id,
            metadata: event.metadata,
            request_id,
            address,
            at,
        }
    }
}

/// The actor of an action, with the chain of its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The chain of the entry.
    pub chain: Chain,
    /// The actor's name.
    pub name: String,
    /// The user; `None` for the operator with access to the server's files, and for a code host.
    pub user_id: Option<UserId>,
    /// The request; `None` for the operator with access to the server's files.
    pub origin: Option<Origin>,
}

impl Author {
    /// Returns the operator, who has access to the server's own files.
    #[must_use]
    pub fn operator(chain: Chain) -> Self {
        Self { chain, name: "operator".to_owned(), user_id: None, origin: None }
    }

    /// Returns Launchway itself, which performs what a user requested earlier.
    #[must_use]
    pub fn launchway(chain: Chain) -> Self {
        Self { chain, name: "launchway".to_owned(), user_id: None, origin: None }
    }
}

/// An action to record in the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    action: Action,
    resource: Resource,
    resource_id: String,
    what: String,
    metadata: BTreeMap<String, String>,
}

impl Event {
    /// Creates the event that `action` was done to `resource_id`. `what` follows the name of the actor:
    /// "changed the theme to `dark`".
    #[must_use]
    pub fn new(
        action: Action,
        resource: Resource,
        resource_id: impl ToString,
        what: impl Into<String>,
    ) -> Self {
        Self {
            action,
            resource,
            resource_id: resource_id.to_string(),
            what: what.into(),
            metadata: BTreeMap::new(),
        }
    }

    /// Adds a detail for programs.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.metadata.insert(name.to_owned(), value.to_string());
        self
    }

    /// Adds the name of a secret that changed. Its value must not be in the audit log.
    #[must_use]
    pub fn with_changed_secret(self, name: &str) -> Self {
        self.with(name, "[changed]")
    }
}

named!(
    /// A kind of action.
    Action,
    "`create`, `update`, `delete` or `access`",
    { Create => "create", Update => "update", Delete => "delete", Access => "access" }
);

impl Action {
    /// Returns the colour that lists show it in.
    #[must_use]
    pub fn color(self) -> &'static str {
        match self {
            Self::Create => "green",
            Self::Update => "blue",
            Self::Delete => "red",
            Self::Access => "gray",
        }
    }
}

named!(
    /// A kind of resource.
    Resource,
    "one of user, organization, application, deployment, extension, execution, notification, smtp_config, \
     token or webhook",
    {
        User => "user",
        Organization => "organization",
        Application => "application",
        Deployment => "deployment",
        Extension => "extension",
        Execution => "execution",
        Notification => "notification",
        SmtpConfig => "smtp_config",
        Token => "token",
        Webhook => "webhook",
    }
);
