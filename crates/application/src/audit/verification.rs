//! Verifies the hash chains of the audit log.

use launchway_domain::{
    audit::{ChainHead, LinkHash},
    store::StoreError,
};

use super::AuditLog;
use crate::Error;

/// The number of links that are read at once when a chain is verified.
const BATCH: i64 = 1000;

/// The result of the verification of one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainReport {
    /// The recorded end of the chain.
    pub head: ChainHead,
    /// The first link that is missing or altered; `None` if the chain is intact.
    pub broken_at: Option<i64>,
}

impl AuditLog {
    /// Verifies every chain from its first link to its last. It has no permission check: it is for
    /// administrators with access to the files of the server.
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
                // A link in the batch cannot be parsed. Reading them one by one finds it.
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

    /// Returns whether there are links behind the head, although none was appended since it was read.
    async fn is_exceeded(&self, head: ChainHead) -> Result<bool, Error> {
        let behind = match self.audit.links(head.chain, head.number, 1).await {
            Err(StoreError::Internal(_)) => true,
            links => !links?.is_empty(),
        };
        Ok(behind && self.audit.heads().await?.contains(&head))
    }
}
