//! The choice of one of several endpoints.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicUsize, Ordering},
};

use super::{Destination, Upstream};

/// The upstreams of one application, over which its requests are balanced: one for each endpoint.
///
/// Only the table holds it. A request holds the upstream that was picked for it, so that another one can be
/// drained meanwhile.
#[derive(Debug)]
pub(crate) struct Balancer {
    upstreams: Box<[Arc<Upstream>]>,
    /// The position at which the next choice begins, so that equal endpoints take turns.
    next: AtomicUsize,
}

impl Balancer {
    /// Creates a balancer for these destinations. Upstreams of `former` are reused, with their connections
    /// and their requests, and `create` creates the others.
    pub(crate) fn new(
        destinations: Vec<Destination>,
        former: Option<&Self>,
        is_trusted: bool,
        create: impl Fn(Destination) -> Arc<Upstream>,
    ) -> Self {
        let former = former.map_or(&[][..], |former| &former.upstreams);
        let reused = |destination: &Destination| {
            let is_it =
                |old: &&Arc<Upstream>| old.is_trusted == is_trusted && old.destination == *destination;
            former.iter().find(is_it).map(Arc::clone)
        };
        let upstreams = destinations.into_iter();
        let upstreams = upstreams.map(|one| reused(&one).unwrap_or_else(|| create(one)));
        Self { upstreams: upstreams.collect(), next: AtomicUsize::new(0) }
    }

    pub(crate) fn upstreams(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }

    pub(crate) fn contains(&self, upstream: &Arc<Upstream>) -> bool {
        self.upstreams.iter().any(|one| Arc::ptr_eq(one, upstream))
    }

    /// Picks the upstream for a request: one with the fewest requests in flight. One that is avoided is picked
    /// only if there is no other, and none of `tried`. Returns `None` if all were tried.
    pub(crate) fn pick(&self, tried: &[Weak<Upstream>]) -> Option<Arc<Upstream>> {
        let is_tried =
            |one: &Arc<Upstream>| tried.iter().any(|tried| std::ptr::eq(tried.as_ptr(), Arc::as_ptr(one)));
        if let [only] = &*self.upstreams {
            return (!is_tried(only)).then(|| Arc::clone(only));
        }
        let start = self.next.fetch_add(1, Ordering::Relaxed) % self.upstreams.len().max(1);
        let (before, after) = self.upstreams.split_at(start);
        let in_turn = || after.iter().chain(before).filter(|one| !is_tried(one));
        // Each request in flight holds its upstream, and the table holds all of them once.
        let least = |one: &&Arc<Upstream>| Arc::strong_count(one);
        let usual = in_turn().filter(|one| !one.is_avoided()).min_by_key(least);
        usual.or_else(|| in_turn().min_by_key(least)).map(Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, time::Duration};

    use tokio::sync::Notify;

    use super::*;
    use crate::routes::Endpoint;

    fn balancer(count: u8) -> Balancer {
        let endpoint = |number: u8| {
            let address = SocketAddr::from(([10, 0, 0, number], 80));
            Destination::Container(Endpoint { id: number.to_string(), address })
        };
        let gone = Arc::new(Notify::new());
        let create = |destination| Upstream::new(destination, true, &gone);
        Balancer::new((0..count).map(endpoint).collect(), None, true, create)
    }

    fn position(balancer: &Balancer, picked: &Arc<Upstream>) -> usize {
        balancer.upstreams.iter().position(|one| Arc::ptr_eq(one, picked)).unwrap()
    }

    #[test]
    fn idle_endpoints_take_turns() {
        let balancer = balancer(3);
        let picked: Vec<usize> = (0..6).map(|_| position(&balancer, &balancer.pick(&[]).unwrap())).collect();
        assert_eq!(picked, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn the_endpoint_with_the_fewest_requests_is_picked() {
        let balancer = balancer(3);
        let busy: Vec<_> = (0..2).map(|_| balancer.pick(&[]).unwrap()).collect();
        for _ in 0..5 {
            assert_eq!(position(&balancer, &balancer.pick(&[]).unwrap()), 2);
        }
        drop(busy);
        assert_eq!(Arc::strong_count(&balancer.upstreams[0]), 1);
    }

    #[test]
    fn an_avoided_endpoint_is_picked_only_without_another() {
        let balancer = balancer(2);
        balancer.upstreams[0].avoid();
        for _ in 0..5 {
            assert_eq!(position(&balancer, &balancer.pick(&[]).unwrap()), 1);
        }
        balancer.upstreams[1].avoid();
        let picked: Vec<usize> = (0..4).map(|_| position(&balancer, &balancer.pick(&[]).unwrap())).collect();
        assert!(picked.contains(&0) && picked.contains(&1), "{picked:?}");
        balancer.upstreams[0].welcome();
        assert_eq!(position(&balancer, &balancer.pick(&[]).unwrap()), 0);
    }

    #[test]
    fn an_endpoint_is_avoided_for_five_seconds() {
        let balancer = balancer(1);
        let upstream = &balancer.upstreams[0];
        upstream.avoid();
        assert!(upstream.is_avoided());
        let until = upstream.avoided_until.load(Ordering::Relaxed);
        assert!(Duration::from_millis(until - super::super::now()) <= Duration::from_secs(5));
        upstream.avoided_until.store(super::super::now(), Ordering::Relaxed);
        assert!(!upstream.is_avoided());
    }

    #[test]
    fn what_was_tried_is_not_picked_again() {
        for count in 1..=3 {
            let balancer = balancer(count);
            let mut tried = Vec::new();
            while let Some(next) = balancer.pick(&tried) {
                tried.push(Arc::downgrade(&next));
            }
            assert_eq!(tried.len(), usize::from(count));
        }
    }

    #[test]
    fn endpoints_that_stay_are_reused() {
        let (former, gone) = (balancer(3), Arc::new(Notify::new()));
        let destinations = former.upstreams[1..].iter().map(|one| one.destination.clone());
        let destinations = destinations.chain([Destination::Absent]).collect();
        let next = Balancer::new(destinations, Some(&former), true, |one| Upstream::new(one, true, &gone));
        assert!(former.contains(&next.upstreams[0]) && former.contains(&next.upstreams[1]));
        assert!(!former.contains(&next.upstreams[2]));
        assert!(!next.contains(&former.upstreams[0]));
    }
}
