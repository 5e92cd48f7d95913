//! Checks the hosts of outbound connections.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use launchway_domain::{network::OutboundPolicy, notifications::SendError};
use launchway_system::resolver::{Resolver, look_up};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};
use url::Host;

/// The timeout of resolving a name.
const NAME: Duration = Duration::from_secs(5);
/// The timeout of connecting, for all addresses together.
const CONNECT: Duration = Duration::from_secs(5);

/// The operator's permission that an address needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequiredPermission {
    /// None, if it is public.
    Permitted,
    /// An explicit permission.
    Allowed,
}

/// A host that is not connected to, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The operator does not permit it.
    Forbidden(String),
    /// The name has no address now.
    Unknown(String),
}

impl From<Refusal> for SendError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Forbidden(told) => Self::Forbidden(told),
            Refusal::Unknown(told) => Self::Unreachable(told),
        }
    }
}

/// Checks hosts against the policy.
#[derive(Debug)]
pub(super) struct Guard {
    policy: OutboundPolicy,
    resolver: Arc<dyn Resolver>,
}

impl Guard {
    pub(super) fn new(policy: OutboundPolicy, resolver: Arc<dyn Resolver>) -> Self {
        Self { policy, resolver }
    }

    /// Resolves and checks `host`. Fails if any of its addresses is not permitted, so that a forbidden one
    /// cannot be hidden among others.
    pub(super) async fn way(
        &self,
        host: &str,
        port: u16,
        wanted: RequiredPermission,
    ) -> Result<CheckedHost, Refusal> {
        let host =
            usual_spelling(host).ok_or_else(|| Refusal::Unknown(format!("There is no host {host}")))?;
        let found = look_up(&*self.resolver, &host, NAME).await;
        let addresses = found.ok_or_else(|| {
            Refusal::Unknown(format!("There is no host {host}, or its name server does not answer"))
        })?;
        let is_well = |address: &IpAddr| match wanted {
            RequiredPermission::Permitted => self.policy.permits(*address, port),
            RequiredPermission::Allowed => self.policy.allows(*address, port),
        };
        if !addresses.iter().all(is_well) {
            return Err(forbidden(&host, port, wanted));
        }
        let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
        Ok(CheckedHost { host, addresses })
    }
}

/// The message does not name the address of a host: internal names must not be revealed.
fn forbidden(host: &str, port: u16, wanted: RequiredPermission) -> Refusal {
    let reason = match wanted {
        RequiredPermission::Permitted => "is not everyone's to reach",
        RequiredPermission::Allowed => "would be spoken to without encryption",
    };
    Refusal::Forbidden(format!("{host} {reason}: only LAUNCHWAY_OUTBOUND_ALLOW can allow port {port} there"))
}

/// Normalizes a host as resolvers read it: `0x7f.1` is an address and not a name.
fn usual_spelling(host: &str) -> Option<String> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    match Host::parse(bare).ok()? {
        Host::Domain(name) => (!name.is_empty()).then_some(name),
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(address.to_string()),
    }
}

/// Addresses that were checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckedHost {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl CheckedHost {
    /// Connects to the first of the addresses that accepts.
    pub(super) async fn connect(&self) -> Result<TcpStream, SendError> {
        let end = Instant::now() + CONNECT;
        let mut last_error = None;
        for (tried, address) in self.addresses.iter().enumerate() {
            // An address that does not answer leaves time for the others.
            let left = u32::try_from(self.addresses.len() - tried).unwrap_or(u32::MAX);
            let max_wait = end.saturating_duration_since(Instant::now()) / left;
            match timeout(max_wait, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last_error = Some(error),
                Err(_elapsed) => {}
            }
        }
        Err(SendError::Unreachable(self.silence(last_error)))
    }

    fn silence(&self, last_error: Option<io::Error>) -> String {
        let host = &self.host;
        match last_error {
            Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                format!("{host} does not accept connections at this port")
            }
            Some(error) => format!("{host} cannot be reached: {error}"),
            None => format!("{host} does not accept a connection within {CONNECT:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use async_trait::async_trait;
    use launchway_domain::network::AllowedEndpoint;

    use super::*;

    #[derive(Debug)]
    struct Names(BTreeMap<&'static str, Vec<&'static str>>);

    #[async_trait]
    impl Resolver for Names {
        async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
            let addresses = self.0.get(name).ok_or_else(|| io::Error::other("no such name"))?;
            Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())
        }
    }

    fn guard() -> Guard {
        let names = BTreeMap::from([
            ("public.example", vec!["1.1.1.1", "2606:4700::1"]),
            ("private.example", vec!["10.0.0.1"]),
            ("mixed.example", vec!["1.1.1.1", "10.0.0.1"]),
            ("mapped.example", vec!["::ffff:10.0.0.1"]),
            ("allowed.example", vec!["10.9.0.1"]),
            ("half-allowed.example", vec!["10.9.0.1", "10.0.0.1"]),
            ("both.example", vec!["10.9.0.1", "1.1.1.1"]),
        ]);
        let allowed = AllowedEndpoint { network: "10.9.0.0/16".parse().unwrap(), port: 2525 };
        Guard::new(OutboundPolicy::allowing(vec![allowed]), Arc::new(Names(names)))
    }

    #[tokio::test]
    async fn every_address_of_a_host_has_to_be_permitted() {
        for (host, permitted, allowed) in [
            ("public.example", true, false),
            ("PUBLIC.example", true, false),
            ("private.example", false, false),
            ("mixed.example", false, false),
            ("mapped.example", false, false),
            ("allowed.example", true, true),
            ("half-allowed.example", false, false),
            ("both.example", true, false),
            ("1.1.1.1", true, false),
            ("10.0.0.1", false, false),
            ("10.9.0.1", true, true),
            ("0xa.1", false, false),
            ("0xa090001", true, true),
            ("[::1]", false, false),
            ("::1", false, false),
            ("[2606:4700::1]", true, false),
        ] {
            for (wanted, well) in
                [(RequiredPermission::Permitted, permitted), (RequiredPermission::Allowed, allowed)]
            {
                let way = guard().way(host, 2525, wanted).await;
                let is_forbidden = matches!(way, Err(Refusal::Forbidden(_)));
                assert_eq!((way.is_ok(), is_forbidden), (well, !well), "{host} {wanted:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_allowed_is_allowed_at_its_port_only() {
        assert!(guard().way("allowed.example", 25, RequiredPermission::Permitted).await.is_err());
    }

    #[tokio::test]
    async fn a_name_without_addresses_is_unknown_and_not_forbidden() {
        for host in ["nowhere.example", "", "a b", "%00"] {
            let way = guard().way(host, 443, RequiredPermission::Permitted).await;
            assert!(matches!(way, Err(Refusal::Unknown(_))), "{host}: {way:?}");
        }
    }

    #[tokio::test]
    async fn a_refusal_does_not_show_the_addresses_of_a_name() {
        let way = guard().way("private.example", 443, RequiredPermission::Permitted).await;
        let told = "private.example is not everyone's to reach: \
                    only LAUNCHWAY_OUTBOUND_ALLOW can allow port 443 there";
        assert_eq!(way, Err(Refusal::Forbidden(told.to_owned())));
    }

    #[tokio::test]
    async fn the_way_leads_to_the_addresses_that_were_checked() {
        let way = guard().way("public.example", 443, RequiredPermission::Permitted).await.unwrap();
        let expected = ["1.1.1.1:443", "[2606:4700::1]:443"].map(|address| address.parse().unwrap());
        assert_eq!(way.addresses, expected);
    }
}
