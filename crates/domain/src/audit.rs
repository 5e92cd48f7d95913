//! The audit trail: who changed what, in one chain for each organization.

mod chain;
mod entry;

use async_trait::async_trait;

pub use self::{
    chain::{Chain, ChainHead, Link, LinkHash},
    entry::{Action, Author, Entry, Event, Resource},
};
use crate::{
    clock::Timestamp,
    organizations::Scope,
    page::{Page, PageRequest},
    store::{self, StoreError},
};

/// What to show of an organization's trail. Without any filter, all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// In the message, the actor's name, the resource or the metadata, ignoring case.
    pub search: Option<String>,
    /// About this kind of resource.
    pub resource: Option<Resource>,
    /// This kind of change.
    pub action: Option<Action>,
    /// By who has exactly this name, ignoring case.
    pub actor: Option<String>,
    /// Not before this moment.
    pub from: Option<Timestamp>,
    /// Not after this moment.
    pub to: Option<Timestamp>,
}

/// Reads the audit trail.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditRepository: Send + Sync {
    /// A page of an organization's trail, newest first, with the number of all entries that pass
    /// the filter. Without a filter the cost does not depend on the length of the trail.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(&self, scope: Scope, filter: &Filter, page: PageRequest)
    -> Result<Page<Entry>, StoreError>;

    /// Every chain with the last link that it should have.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn heads(&self) -> Result<Vec<ChainHead>, StoreError>;

    /// At most `limit` links of a chain after the link `after`, in their order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn links(&self, chain: Chain, after: i64, limit: i64) -> Result<Vec<Link>, StoreError>;
}

/// The one change to the trail that there is: it grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Chains an entry to the last one of its chain. Its moment is kept, or moved just behind the
    /// last one's, so that the trail is in the order of its moments.
    Append(Entry),
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Audit(write)
    }
}
