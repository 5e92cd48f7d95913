//! Reads the audit log and verifies that it was not tampered with.

#[cfg(feature = "hashes")]
mod verification;

use std::sync::Arc;

use launchway_domain::{
    audit::{AuditRepository, Entry, Filter},
    auth::{Action, Actor, Permission, Resource},
    page::{Page, PageRequest},
};

#[cfg(feature = "hashes")]
pub use self::verification::ChainReport;
use crate::Error;

/// Reads the audit log of an organization, and verifies that of every organization.
pub struct AuditLog {
    audit: Arc<dyn AuditRepository>,
}

impl AuditLog {
    /// Reads from `audit`.
    pub fn new(audit: Arc<dyn AuditRepository>) -> Self {
        Self { audit }
    }

    /// Returns a page of the audit log of the actor's organization, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `audit:read`.
    pub async fn list(
        &self,
        actor: &Actor,
        filter: &Filter,
        page: PageRequest,
    ) -> Result<Page<Entry>, Error> {
        let scope = actor.require(Permission::new(Resource::Audit, Action::Read))?;
        Ok(self.audit.page(scope, filter, page).await?)
    }
}
