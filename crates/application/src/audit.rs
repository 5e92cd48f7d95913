//! Reading the audit trail, and checking that nobody tampered with it.

use std::sync::Arc;

use launchway_domain::{
    audit::{AuditRepository, ChainHead, Entry, Filter, LinkHash},
    auth::{Action, Actor, Permission, Resource},
    page::{Page, PageRequest},
    store::StoreError,
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

    async fn first_broken_link(&self, head: ChainHead) -> Result<Option<i64>, Error> {
        let (mut number, mut hash, mut batch) = (0, LinkHash::ROOT, BATCH);
        while number < head.number {
            let links = match self.audit.links(head.chain, number, batch).await {
                // Something in it cannot even be read. One by one, it is found.
                Err(StoreError::Internal(_)) if batch > 1 => {
                    batch = 1;
                    continue;
                }
                Err(StoreError::Internal(_)) => return Ok(Some(number + 1)),
                links => links?,
            };
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
            if number < head.number && links.iter().any(|link| link.number > head.number) {
                return Ok(Some(number + 1));
            }
        }
        if hash != head.hash {
            return Ok(Some(head.number));
        }
        let is_exceeded = self.is_exceeded(head).await?;
        Ok(is_exceeded.then_some(head.number + 1))
    }

    /// Whether there are links behind the head, although nobody has appended since it was read.
    async fn is_exceeded(&self, head: ChainHead) -> Result<bool, Error> {
        let behind = match self.audit.links(head.chain, head.number, 1).await {
            Err(StoreError::Internal(_)) => true,
            links => !links?.is_empty(),
        };
        Ok(behind && self.audit.heads().await?.contains(&head))
    }
}
