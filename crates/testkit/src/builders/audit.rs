//! Entries of the audit log, alone and in chains.

use std::{collections::BTreeMap, net::IpAddr};

use launchway_domain::{
    audit::{Action, Chain, ChainHead, Entry, Link, LinkHash, Resource},
    clock::Timestamp,
    ids::{AuditEntryId, UserId},
    organizations::Organization,
    users::User,
    webhooks::CodeHost,
};

use super::{a_user, an_organization, an_origin};
use crate::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

/// An entry that [`a_user`] "did something" to their own account at [`NEW_YEAR`], by the request
/// [`an_origin`], in the audit log of [`an_organization`].
pub fn an_entry() -> EntryBuilder {
    let user = a_user().build();
    let origin = an_origin();
    EntryBuilder {
        id: None,
        chain: Chain::Organization(an_organization().build().id),
        actor: user.username.as_str().to_owned(),
        actor_id: Some(user.id),
        action: Action::Update,
        resource: Resource::User,
        resource_id: user.id.to_string(),
        what: "did something".to_owned(),
        metadata: BTreeMap::new(),
        request_id: origin.request_id,
        address: Some(origin.client.address),
        at: moment(NEW_YEAR),
    }
}

/// Builds an [`Entry`].
#[derive(Debug, Clone)]
#[must_use]
pub struct EntryBuilder {
    id: Option<AuditEntryId>,
    chain: Chain,
    actor: String,
    actor_id: Option<UserId>,
    action: Action,
    resource: Resource,
    resource_id: String,
    what: String,
    metadata: BTreeMap<String, String>,
    request_id: String,
    address: Option<IpAddr>,
    at: Timestamp,
}

impl EntryBuilder {
    /// Sets the id; by default it is derived from the chain, the message and the time.
    pub fn with_id(mut self, id: impl Into<AuditEntryId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Moves it to the audit log of another organization.
    pub fn in_audit_log_of(self, organization: &Organization) -> Self {
        self.in_chain(Chain::Organization(organization.id))
    }

    /// Sets the chain.
    pub fn in_chain(mut self, chain: Chain) -> Self {
        self.chain = chain;
        self
    }

    /// Sets the user.
    pub fn by(mut self, user: &User) -> Self {
        user.username.as_str().clone_into(&mut self.actor);
        self.actor_id = Some(user.id);
        self
    }

    /// Makes it an action of the operator on the server's files, without a request.
    pub fn by_operator(mut self) -> Self {
        "operator".clone_into(&mut self.actor);
        self.actor_id = None;
        self.without_request()
    }

    /// Makes it an action of Launchway itself, without a request.
    pub fn by_launchway(mut self) -> Self {
        "launchway".clone_into(&mut self.actor);
        self.actor_id = None;
        self.without_request()
    }

    /// Makes it an action of a code host, by the same request.
    pub fn by_code_host(mut self, host: CodeHost) -> Self {
        host.as_str().clone_into(&mut self.actor);
        self.actor_id = None;
        self
    }

    /// Removes the request.
    pub fn without_request(mut self) -> Self {
        self.request_id.clear();
        self.address = None;
        self
    }

    /// Sets the action and the resource.
    pub fn of(mut self, action: Action, resource: Resource, resource_id: impl ToString) -> Self {
        self.action = action;
        self.resource = resource;
        self.resource_id = resource_id.to_string();
        self
    }

    /// Sets the message, which follows the name of the actor.
    pub fn with_message(mut self, what: &str) -> Self {
        what.clone_into(&mut self.what);
        self
    }

    /// Adds a detail for programs.
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.metadata.insert(name.to_owned(), value.to_string());
        self
    }

    /// Sets the time.
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = at;
        self
    }

    /// Returns the entry.
    #[must_use]
    pub fn build(self) -> Entry {
        let message = format!("{} {}", self.actor, self.what);
        let id = self.id.unwrap_or_else(|| id_of(&format!("{} {message} {}", self.chain, self.at)).into());
        Entry {
            id,
            chain: self.chain,
            actor: self.actor,
            actor_id: self.actor_id,
            action: self.action,
            resource: self.resource,
            resource_id: self.resource_id,
            message,
            metadata: self.metadata,
            request_id: self.request_id,
            address: self.address,
            at: self.at,
        }
    }
}

/// Returns the links of a chain of `entries`.
#[must_use]
pub fn chained(entries: impl IntoIterator<Item = Entry>) -> Vec<Link> {
    let mut hash = LinkHash::ROOT;
    let link = |(number, entry)| {
        hash = hash.next(number, &entry);
        Link { number, entry, hash }
    };
    (1..).zip(entries).map(link).collect()
}

/// Returns the head of a chain that ends with the last of `links`.
///
/// # Panics
/// If there is none.
#[must_use]
#[track_caller]
pub fn head_of(links: &[Link]) -> ChainHead {
    let last = links.last().unwrap();
    ChainHead { chain: last.entry.chain, number: last.number, hash: last.hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_different_content_have_different_ids() {
        let ids = [an_entry(), an_entry().with_message("left"), an_entry().in_chain(Chain::Installation)]
            .map(|entry| entry.build().id);
        assert_eq!(ids[0], an_entry().build().id);
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
    }

    #[test]
    fn a_link_covers_its_entry_and_the_link_before() {
        let links = chained([an_entry().build(), an_entry().with_message("left").build()]);
        let first = LinkHash::ROOT.next(1, &an_entry().build());
        let second = first.next(2, &an_entry().with_message("left").build());
        assert_eq!(
            links.iter().map(|link| (link.number, link.hash)).collect::<Vec<_>>(),
            [(1, first), (2, second)]
        );
        let chain = an_entry().build().chain;
        assert_eq!(head_of(&links), ChainHead { chain, number: 2, hash: second });
    }
}
