//! The hash chain that makes the audit log tamper-evident: each entry's hash covers the one before.

use data_encoding::HEXLOWER;
use uuid::Uuid;

use super::Entry;
use crate::ids::OrganizationId;

/// The chain that an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chain {
    /// The chain of the installation, for entries that concern no organization.
    Installation,
    /// The chain of an organization.
    Organization(OrganizationId),
}

impl Chain {
    /// Returns the id to store: the organization's, or the nil UUID.
    #[must_use]
    pub fn id(self) -> Uuid {
        match self {
            Self::Installation => Uuid::nil(),
            Self::Organization(id) => id.into(),
        }
    }
}

impl From<Uuid> for Chain {
    fn from(stored: Uuid) -> Self {
        if stored.is_nil() { Self::Installation } else { Self::Organization(stored.into()) }
    }
}

impl From<Option<OrganizationId>> for Chain {
    fn from(organization: Option<OrganizationId>) -> Self {
        organization.map_or(Self::Installation, Self::Organization)
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Installation => f.write_str("installation"),
            Self::Organization(id) => write!(f, "organization {id}"),
        }
    }
}

/// The hash of a link, which covers its entry, its number and the link before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LinkHash(pub [u8; 32]);

impl LinkHash {
    /// The hash before the first link of a chain.
    pub const ROOT: Self = Self([0; 32]);

    /// Returns the hash of the link `number` that holds `entry`, after a link with the hash `self`.
    #[cfg(feature = "hashes")]
    #[must_use]
    pub fn next(&self, number: i64, entry: &Entry) -> Self {
        use sha2::{Digest as _, Sha256};
        let mut hash = Sha256::new();
        // Every part is preceded by its length, so that no two entries have the same bytes.
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        part(&self.0);
        part(&number.to_be_bytes());
        part(Uuid::from(entry.id).as_bytes());
        part(entry.chain.id().as_bytes());
        part(entry.actor.as_bytes());
        part(entry.actor_id.map(Uuid::from).unwrap_or_default().as_bytes());
        part(entry.action.as_str().as_bytes());
        part(entry.resource.as_str().as_bytes());
        part(entry.resource_id.as_bytes());
        part(entry.message.as_bytes());
        part(&(entry.metadata.len() as u64).to_be_bytes());
        for (name, value) in &entry.metadata {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        part(entry.request_id.as_bytes());
        part(entry.address.map(|address| address.to_string()).unwrap_or_default().as_bytes());
        part(&entry.at.timestamp_micros().to_be_bytes());
        Self(hash.finalize().into())
    }
}

impl std::fmt::Display for LinkHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl std::fmt::Debug for LinkHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// An entry with its position in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its position in the chain, counted from 1 consecutively.
    pub number: i64,
    /// The entry.
    pub entry: Entry,
    /// The hash that was stored with it.
    pub hash: LinkHash,
}

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// The chain.
    pub chain: Chain,
    /// The number of its last link, which is also the number of links.
    pub number: i64,
    /// The hash of its last link.
    pub hash: LinkHash,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        audit::{Action, Resource},
        clock::Timestamp,
    };

    fn entry() -> Entry {
        Entry {
            id: Uuid::nil().into(),
            chain: Chain::Installation,
            actor: "ada".to_owned(),
            actor_id: None,
            action: Action::Update,
            resource: Resource::User,
            resource_id: "1".to_owned(),
            message: "ada did it".to_owned(),
            metadata: BTreeMap::from([("theme".to_owned(), "dark".to_owned())]),
            request_id: "r".to_owned(),
            address: Some([127, 0, 0, 1].into()),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_change_of_any_part_changes_the_hash() {
        let original = LinkHash::ROOT.next(1, &entry());
        let changes: Vec<fn(&mut Entry)> = vec![
            |entry| entry.id = Uuid::max().into(),
            |entry| entry.chain = Chain::Organization(Uuid::max().into()),
            |entry| entry.actor.push('x'),
            |entry| entry.actor_id = Some(Uuid::max().into()),
            |entry| entry.action = Action::Delete,
            |entry| entry.resource = Resource::Token,
            |entry| entry.resource_id.push('x'),
            |entry| entry.message.push('x'),
            |entry| entry.metadata.clear(),
            |entry| drop(entry.metadata.insert("theme".to_owned(), "light".to_owned())),
            |entry| entry.request_id.push('x'),
            |entry| entry.address = None,
            |entry| entry.at += chrono::TimeDelta::microseconds(1),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut changed = entry();
            change(&mut changed);
            assert_ne!(LinkHash::ROOT.next(1, &changed), original, "change {number}");
        }
        assert_ne!(LinkHash::ROOT.next(2, &entry()), original);
        assert_ne!(original.next(1, &entry()), original);
    }

    proptest! {
        #[test]
        fn text_that_moves_from_one_part_to_the_next_changes_the_hash(text in "[a-z]{1,8}", at in 0usize..8) {
            let at = at.min(text.len());
            let split = |at: usize| Entry {
                resource_id: text[..at].to_owned(),
                message: text[at..].to_owned(),
                ..entry()
            };
            let other = (at + 1) % (text.len() + 1);
            prop_assert_ne!(LinkHash::ROOT.next(1, &split(at)), LinkHash::ROOT.next(1, &split(other)));
        }
    }
}
