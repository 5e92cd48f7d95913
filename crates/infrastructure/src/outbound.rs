//! Egress to hosts that tenants name: messages by HTTP and by mail.
//!
//! **Invariant:** every connection is made by `guard`: it parses an address however it is spelled, resolves
//! a name once, rejects it if any of its addresses is not permitted, and connects to exactly the addresses
//! that it checked. Nothing here follows a redirect, uses a proxy, or keeps a connection for later.
//!
//! **Invariant:** a call ends within its timeout, and a response takes no more memory than the limits
//! defined here.

mod guard;
mod mail;
mod text;
pub(crate) mod tls;
mod webhooks;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    network::OutboundPolicy,
    notifications::{Answer, Mail, Mailer, OutboundGuard, Post, SendError, Sent, WebhookSender},
};
pub use launchway_system::resolver::{Resolver, SystemResolver};
use tokio::time::{Instant, timeout_at};

use self::guard::{Guard, RequiredPermission};
pub use self::tls::Trust;

/// The options of egress.
#[derive(Debug, Clone)]
pub struct OutboundOptions {
    /// The hosts that may be connected to.
    pub policy: OutboundPolicy,
    /// The timeout of a message, from resolving the name to the last byte.
    pub timeout: Duration,
    /// Resolves host names.
    pub resolver: Arc<dyn Resolver>,
    /// The trusted certificate authorities.
    pub trust: Trust,
}

impl OutboundOptions {
    /// The default timeout of a message.
    pub const TIMEOUT: Duration = Duration::from_secs(15);

    /// Returns options with the resolver and the certificate authorities of this machine.
    #[must_use]
    pub fn new(policy: OutboundPolicy) -> Self {
        Self {
            policy,
            timeout: Self::TIMEOUT,
            resolver: Arc::new(SystemResolver::default()),
            trust: Trust::of_this_machine(),
        }
    }
}

/// Sends messages to the receivers of notifications.
pub struct Outbound {
    guard: Guard,
    tls: tls::Connector,
    timeout: Duration,
}

impl Outbound {
    /// Returns a sender with these options.
    #[must_use]
    pub fn new(options: OutboundOptions) -> Self {
        let OutboundOptions { policy, timeout, resolver, trust } = options;
        Self { guard: Guard::new(policy, resolver), tls: tls::Connector::new(trust), timeout }
    }

    async fn may_reach(&self, host: &str, port: u16, wanted: RequiredPermission) -> Result<(), SendError> {
        match self.guard.way(host, port, wanted).await {
            Err(guard::Refusal::Forbidden(told)) => Err(SendError::Forbidden(told)),
            Err(guard::Refusal::Unknown(_)) | Ok(_) => Ok(()),
        }
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("guard", &self.guard).field("timeout", &self.timeout).finish()
    }
}

#[async_trait]
impl OutboundGuard for Outbound {
    async fn check(&self, host: &str, port: u16) -> Result<(), SendError> {
        self.may_reach(host, port, RequiredPermission::Permitted).await
    }

    async fn check_unencrypted(&self, host: &str, port: u16) -> Result<(), SendError> {
        self.may_reach(host, port, RequiredPermission::Allowed).await
    }
}

#[async_trait]
impl WebhookSender for Outbound {
    async fn post(&self, post: Post) -> Result<Answer, SendError> {
        webhooks::post(self, &post, Time::starting_now(self.timeout)).await
    }
}

#[async_trait]
impl Mailer for Outbound {
    async fn send(&self, mail: Mail) -> Result<Sent, SendError> {
        mail::send(self, &mail, Time::starting_now(self.timeout)).await
    }
}

/// The timeout of a message, and its deadline.
#[derive(Clone, Copy)]
struct Time {
    length: Duration,
    end: Instant,
}

impl Time {
    fn starting_now(length: Duration) -> Self {
        Self { length, end: Instant::now() + length }
    }

    /// Waits for `what` with `host`, up to the deadline.
    async fn limit<T>(
        self,
        host: &str,
        what: impl Future<Output = Result<T, SendError>> + Send,
    ) -> Result<T, SendError> {
        timeout_at(self.end, what).await.unwrap_or_else(|_elapsed| {
            Err(SendError::Unreachable(format!("{host} did not answer within {:?}", self.length)))
        })
    }
}
