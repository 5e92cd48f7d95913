//! Reading the audit trail, and checking that nobody tampered with it.

use std::sync::Arc;

use launchway_domain::{
    audit::{AuditRepository, ChainHead, Entry, Filter, LinkHash},
    auth::{Action, Actor, Permission, Resource},
    page::{Page, PageRequest},
};

use crate::Error;

/// How many links are read at once when a chain is checked.
const BATCH: i64 = 1000;

/// Shows the audit trail of an organization, and checks every organization's.
pub struct AuditTrail {
    audit: Arc<dyn AuditRepository>,
}

/// What the check of one chain found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainReport {
    /// Where the chain should end.
    pub head: ChainHead,
    /// The first link that is missing or is not what was written; `None` when all is well.
    pub broken_at: Option<i64>,
}

impl AuditTrail {
    /// Reads from `audit`.
    pub fn new(audit: Arc<dyn AuditRepository>) -> Self {
        Self { audit }
    }

    /// A page of the trail of the actor's organization, newest first.
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

    /// Checks every chain from its first link to its last: for who has the server's files.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn verify(&self) -> Result<Vec<ChainReport>, Error> {
        let mut reports = Vec::new();
        for head in self.audit.heads().await? {
            let broken_at = self.first_broken_link(head).await?;
            reports.push(ChainReport { head, broken_at });
        }
        Ok(reports)
    }

    /// Links behind the head are not looked at: they were written since the head was read.
    async fn first_broken_link(&self, head: ChainHead) -> Result<Option<i64>, Error> {
        let mut number = 0;
        let mut hash = LinkHash::ROOT;
        while number < head.number {
            let links = self.audit.links(head.chain, number, BATCH).await?;
            if links.is_empty() {
                return Ok(Some(number + 1));
            }
            for link in links.iter().take_while(|link| link.number <= head.number) {
                number += 1;
                hash = hash.next(number, &link.entry);
                if link.number != number || link.hash != hash {
                    return Ok(Some(number));
                }
            }
            if links.iter().any(|link| link.number > head.number) && number < head.number {
                return Ok(Some(number + 1));
            }
        }
        Ok((hash != head.hash).then_some(head.number))
    }
}
