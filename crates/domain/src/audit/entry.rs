//! One line of the trail.

use std::{collections::BTreeMap, net::IpAddr};

use super::Chain;
use crate::{
    auth::Origin,
    clock::Timestamp,
    ids::{AuditEntryId, UserId},
    value::InvalidValue,
    webhooks::CodeHost,
};

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which.
    pub id: AuditEntryId,
    /// Whose trail it is in.
    pub chain: Chain,
    /// The name of who did it, at the time.
    pub actor: String,
    /// Who did it; nobody when it was done with the server's own files, or by a code host.
    pub actor_id: Option<UserId>,
    /// What kind of thing was done.
    pub action: Action,
    /// To what kind of thing.
    pub resource: Resource,
    /// To which.
    pub resource_id: String,
    /// A sentence for a person.
    pub message: String,
    /// What a program may want to know; never a secret.
    pub metadata: BTreeMap<String, String>,
    /// The request that did it.
    pub request_id: String,
    /// Where that came from.
    pub address: Option<IpAddr>,
    /// When.
    pub at: Timestamp,
}

impl Entry {
    /// The entry that `author` did what `event` says.
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

/// Who did something, and whose trail it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Whose trail.
    pub chain: Chain,
    /// Their name.
    pub name: String,
    /// Who; nobody for who has the server's files, and for a code host.
    pub user_id: Option<UserId>,
    /// The request; none for who has the server's files.
    pub origin: Option<Origin>,
}

impl Author {
    /// Who has the server's own files.
    #[must_use]
    pub fn operator(chain: Chain) -> Self {
        Self { chain, name: "operator".to_owned(), user_id: None, origin: None }
    }

    /// Launchway itself, doing what somebody wished for earlier.
    #[must_use]
    pub fn launchway(chain: Chain) -> Self {
        Self { chain, name: "launchway".to_owned(), user_id: None, origin: None }
    }

    /// A code host that told of a push, by the request `origin`.
    #[must_use]
    pub fn code_host(chain: Chain, host: CodeHost, origin: Origin) -> Self {
        Self { chain, name: host.as_str().to_owned(), user_id: None, origin: Some(origin) }
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    action: Action,
    resource: Resource,
    resource_id: String,
    what: String,
    metadata: BTreeMap<String, String>,
}

impl Event {
    /// That `action` was done to `resource_id`. `what` follows the name of who did it: "changed
    /// the theme to `dark`".
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

    /// The same with something more that a program may want to know.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.metadata.insert(name.to_owned(), value.to_string());
        self
    }

    /// The same with a secret that changed, and which the trail must not know.
    #[must_use]
    pub fn with_changed_secret(self, name: &str) -> Self {
        self.with(name, "[changed]")
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident => $text:literal),* $(,)? }, $allowed:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("`", $text, "`.")] $variant),* }

        impl $name {
            /// The name in the contract.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidValue;

            fn from_str(raw: &str) -> Result<Self, InvalidValue> {
                match raw.trim() {
                    $($text => Ok(Self::$variant),)*
                    other => Err(InvalidValue::text($allowed, other)),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidValue;

            fn try_from(raw: String) -> Result<Self, InvalidValue> {
                raw.parse()
            }
        }
    };
}

named!(
    /// What kind of thing was done.
    Action { Create => "create", Update => "update", Delete => "delete", Access => "access" },
    "`create`, `update`, `delete` or `access`"
);

impl Action {
    /// The colour that a list shows it in.
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
    /// What kind of thing it was done to.
    Resource {
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
    },
    "one of user, organization, application, deployment, extension, execution, notification, smtp_config, \
     token or webhook"
);
