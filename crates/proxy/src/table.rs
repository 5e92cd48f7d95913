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
    store::{Kept, KeptRoute},
    traffic::Traffic,
    upstream::{Balancer, Destination, Upstream},
};

/// An immutable snapshot of all routes. A change creates another table.
///
/// Its keys are shared, so that a copy for the change of one route costs little.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    by_host: HashMap<Arc<str>, RouteEntry>,
    by_application: BTreeMap<Arc<str>, (Arc<KeptRoute>, RouteEntry)>,
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
        let by_host = HashMap::with_capacity(before.by_host.len());
        let mut table = Self { by_host, is_complete: kept.is_complete, lease: kept.lease, ..Self::default() };
        for (route, is_trusted) in kept.routes {
            let entry = before.place_of(&route.route, is_trusted, ground);
            table.add(route, entry)?;
        }
        Ok(table)
    }

    /// Returns the table with this route of an application instead of the one that it may have.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn with(&self, route: Route, ground: &SharedState) -> Result<Self, String> {
        let (entry, mut table) = (self.place_of(&route, true, ground), self.without(&route.application));
        table.add(KeptRoute::new(route), entry)?;
        Ok(table)
    }

    /// Returns the table without the route of an application.
    pub(crate) fn without(&self, application: &str) -> Self {
        let mut table = self.clone();
        if let Some((kept, _)) = table.by_application.remove(application) {
            for host in &kept.route.hosts {
                table.by_host.remove(host.as_str());
            }
        }
        table
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

    pub(crate) fn kept(&self) -> Kept {
        let routes = self.by_application.values();
        Kept {
            is_complete: self.is_complete,
            lease: self.lease,
            routes: routes.map(|(route, entry)| (Arc::clone(route), entry.is_trusted())).collect(),
        }
    }

    /// Returns the entries that are not in `new`, or with another target, and their targets there.
    pub(crate) fn changed_in<'a>(
        &'a self,
        new: &'a Self,
    ) -> impl Iterator<Item = (&'a RouteEntry, Option<&'a Arc<Balancer>>)> {
        // Both are sorted, and walked together: looking up each of many takes much longer.
        let mut later = new.by_application.iter().peekable();
        self.by_application.iter().filter_map(move |(name, (_, entry))| {
            while later.next_if(|(other, _)| *other < name).is_some() {}
            let stays = later.next_if(|(other, _)| *other == name).map(|(_, (_, entry))| &entry.balancer);
            let is_same = stays.is_some_and(|stays| Arc::ptr_eq(stays, &entry.balancer));
            (!is_same).then_some((entry, stays))
        })
    }

    fn add(&mut self, kept: Arc<KeptRoute>, entry: RouteEntry) -> Result<(), String> {
        for host in &kept.route.hosts {
            self.add_host(host, &entry)?;
        }
        let name = Arc::clone(&entry.application.name);
        match self.by_application.insert(name, (kept, entry)) {
            Some((kept, _)) => Err(format!("application `{}` has two routes", kept.route.application)),
            None => Ok(()),
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
        let old = self.by_application.get(route.application.as_str());
        let application = match old {
            Some((_, old)) => Arc::clone(&old.application),
            None => Application::new(&route.application, ground.traffic.counters(&route.application)),
        };
        let balancer = match old {
            Some((former, old)) if former.route.target == route.target && old.is_trusted() == is_trusted => {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn route(application: &str, hosts: &[&str]) -> Route {
        Route {
            application: application.to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            target: Target::Site { folder: format!("/sites/{application}").into() },
            https_only: false,
        }
    }

    fn table(ground: &SharedState) -> Table {
        let routes = [route("a", &["a.example", "old.example"]), route("b", &["b.example"])];
        let routes = routes.into_iter().map(|route| (KeptRoute::new(route), true)).collect();
        let kept = Kept { is_complete: true, lease: Some(7), routes };
        Table::new(kept, &Table::default(), ground).unwrap()
    }

    fn names(table: &Table) -> [Option<&str>; 4] {
        let hosts = ["a.example", "old.example", "new.example", "b.example"];
        hosts.map(|host| table.find(host).map(|entry| &*entry.application.name))
    }

    #[test]
    fn one_route_is_replaced_with_its_hosts() {
        let ground = SharedState::default();
        let table = table(&ground);
        let changed = table.with(route("a", &["a.example", "new.example"]), &ground).unwrap();
        assert_eq!(names(&changed), [Some("a"), None, Some("a"), Some("b")]);
        assert_eq!(names(&table), [Some("a"), Some("a"), None, Some("b")], "a table never changes");
        assert_eq!((changed.len(), changed.is_complete(), changed.lease()), (2, true, Some(7)));
        for host in ["a.example", "b.example"] {
            let [old, new] = [&table, &changed].map(|table| &table.find(host).unwrap().balancer);
            assert!(Arc::ptr_eq(old, new), "the target of `{host}` stays");
        }
    }

    #[test]
    fn one_route_is_removed_with_its_hosts() {
        let ground = SharedState::default();
        let without = table(&ground).without("a");
        assert_eq!((names(&without), without.len()), ([None, None, None, Some("b")], 1));
        assert_eq!(without.without("a").len(), 1, "once more is nothing");
    }

    #[test]
    fn changed_entries_are_those_with_another_target_or_none() {
        let ground = SharedState::default();
        let table = table(&ground);
        let changed = |new: &Table| -> Vec<(String, bool)> {
            let changed = table.changed_in(new);
            changed.map(|(entry, stays)| (entry.application.name.to_string(), stays.is_some())).collect()
        };
        assert_eq!(changed(&table.with(route("0", &["0.example"]), &ground).unwrap()), []);
        assert_eq!(changed(&table.without("a")), [("a".to_owned(), false)]);
        let stopped = Route { target: Target::Stopped, ..route("b", &["b.example"]) };
        assert_eq!(changed(&table.with(stopped, &ground).unwrap()), [("b".to_owned(), true)]);
    }

    #[test]
    fn a_host_of_another_application_is_refused() {
        let ground = SharedState::default();
        let refused = table(&ground).with(route("a", &["b.example"]), &ground).unwrap_err();
        assert_eq!(refused, "host `b.example` belongs to application `b`");
    }
}
