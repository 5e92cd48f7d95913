//! The routing table.
//!
//! **Invariant:** a table never changes; a change replaces the whole table at once. A request holds its
//! target, not the table, so that the number of references shows when a previous target is no longer in
//! use.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::sync::Notify;

use crate::{
    exchange::Application,
    routes::{Route, Target},
    store::Kept,
    traffic::Traffic,
    upstream::{Balancer, Destination, Upstream},
};

/// An immutable snapshot of all routes. A change creates another table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    by_host: HashMap<Box<str>, RouteEntry>,
    by_application: BTreeMap<String, (Route, RouteEntry)>,
    /// These are all routes.
    is_complete: bool,
    lease: Option<u64>,
}

/// The route of a host.
#[derive(Debug, Clone)]
pub(crate) struct RouteEntry {
    pub(crate) application: Arc<Application>,
    pub(crate) balancer: Arc<Balancer>,
    /// Requests over HTTP are redirected, also before there is a certificate.
    pub(crate) https_only: bool,
}

impl RouteEntry {
    /// Returns whether it was set since the machine booted.
    fn is_trusted(&self) -> bool {
        self.balancer.upstreams().iter().all(|upstream| upstream.is_trusted)
    }
}

/// State shared by every table.
#[derive(Debug, Default)]
pub(crate) struct SharedState {
    pub(crate) traffic: Traffic,
    /// Notified when a target is no longer in use.
    pub(crate) gone: Arc<Notify>,
}

impl Table {
    /// Creates the table of these routes. Entries that are in `before` already are reused, with their
    /// connections and their requests.
    ///
    /// # Errors
    ///
    /// Returns which host is invalid, or belongs to two applications.
    pub(crate) fn new(kept: Kept, before: &Self, ground: &SharedState) -> Result<Self, String> {
        let mut table = Self { is_complete: kept.is_complete, lease: kept.lease, ..Self::default() };
        for (route, is_trusted) in kept.routes {
            let entry = before.place_of(&route, is_trusted, ground);
            for host in &route.hosts {
                table.add_host(host, &entry)?;
            }
            if let Some((route, _)) = table.by_application.insert(route.application.clone(), (route, entry)) {
                return Err(format!("application `{}` has two routes", route.application));
            }
        }
        Ok(table)
    }

    pub(crate) fn find(&self, host: &str) -> Option<&RouteEntry> {
        self.by_host.get(host)
    }

    /// Returns whether a host that is not in the table is unknown. Otherwise the control plane has not sent
    /// all hosts yet.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the time, in seconds, after which routes to containers expire unless they are confirmed.
    pub(crate) fn lease(&self) -> Option<u64> {
        self.lease
    }

    /// Returns whether every route was set since the machine booted, and none has expired.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_complete && self.places().all(RouteEntry::is_trusted)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_application.len()
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = &RouteEntry> {
        self.by_application.values().map(|(_, entry)| entry)
    }

    pub(crate) fn balancer_of(&self, application: &str) -> Option<&Arc<Balancer>> {
        self.by_application.get(application).map(|(_, entry)| &entry.balancer)
    }

    pub(crate) fn kept(&self) -> Kept {
        let routes = self.by_application.values();
        Kept {
            is_complete: self.is_complete,
            lease: self.lease,
            routes: routes.map(|(route, entry)| (route.clone(), entry.is_trusted())).collect(),
        }
    }

    fn add_host(&mut self, host: &str, entry: &RouteEntry) -> Result<(), String> {
        if !is_plain(host) {
            return Err(format!("`{host}` is no host: lower case, without a port"));
        }
        match self.by_host.insert(host.into(), entry.clone()) {
            Some(other) if other.application.name != entry.application.name => {
                Err(format!("host `{host}` belongs to application `{}`", other.application.name))
            }
            _ => Ok(()),
        }
    }

    fn place_of(&self, route: &Route, is_trusted: bool, ground: &SharedState) -> RouteEntry {
        // Only the address of a container can be reused by another.
        let is_trusted = is_trusted || !matches!(route.target, Target::Endpoints(_));
        let old = self.by_application.get(&route.application);
        let application = match old {
            Some((_, old)) => Arc::clone(&old.application),
            None => Application::new(&route.application, ground.traffic.counters(&route.application)),
        };
        let balancer = match old {
            Some((former, old)) if former.target == route.target && old.is_trusted() == is_trusted => {
                Arc::clone(&old.balancer)
            }
            _ => {
                let create = |destination| Upstream::new(destination, is_trusted, &ground.gone);
                let former = old.map(|(_, old)| &*old.balancer);
                Arc::new(Balancer::new(Destination::all(&route.target), former, is_trusted, create))
            }
        };
        RouteEntry { application, balancer, https_only: route.https_only }
    }
}

fn is_plain(host: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._[]:".contains(&byte);
    let has_port = !host.starts_with('[') && host.contains(':');
    !host.is_empty() && !has_port && !host.ends_with('.') && host.bytes().all(is_part)
}
