//! The audit log: one hash chain of changes for each organization.

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
    store_error::StoreError,
};

/// A filter for the audit log of an organization. Without any criterion, all entries pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Entries with this text in the message, the actor's name, the resource or the metadata, ignoring
    /// case.
    pub search: Option<String>,
    /// Entries about this kind of resource.
    pub resource: Option<Resource>,
    /// Entries with this kind of action.
    pub action: Option<Action>,
    /// Entries by the actor with exactly this name, ignoring case.
    pub actor: Option<String>,
    /// Entries not before this time.
    pub from: Option<Timestamp>,
    /// Entries not after this time.
    pub to: Option<Timestamp>,
}

/// Reads the audit log.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditRepository: Send + Sync {
    /// Returns a page of an organization's audit log, newest first, with the number of all entries that
    /// pass the filter. Without a filter the cost does not depend on the length of the log.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(&self, scope: Scope, filter: &Filter, page: PageRequest)
    -> Result<Page<Entry>, StoreError>;

    /// Returns every chain with the last link that it should have.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn heads(&self) -> Result<Vec<ChainHead>, StoreError>;

    /// Returns at most `limit` links of a chain after the link `after`, in their order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn links(&self, chain: Chain, after: i64, limit: i64) -> Result<Vec<Link>, StoreError>;
}

/// The only change to the audit log: appending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Appends an entry to its chain. Its timestamp is kept, or moved just behind that of the last entry,
    /// so that the log is in the order of its timestamps.
    Append(Entry),
}
