//! Ways out of the installation, to places that somebody else named: messages by HTTP and by mail.
//!
//! **Invariant:** every connection is made by `guard`: it takes an address apart however it is
//! spelled, looks a name up once, refuses it if any of its addresses is not permitted, and connects to
//! exactly the addresses that it checked. Nothing here follows a redirect, knows a proxy, or keeps a
//! connection for later.
//!
//! **Invariant:** a call ends within the time that it was given, and nothing that the other side says
//! takes more memory than is written down here.

mod guard;
mod mail;
pub(crate) mod names;
mod text;
mod tls;
mod webhooks;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    network::OutboundPolicy,
    notifications::{Answer, Mail, Mailer, OutboundGuard, Post, SendError, Sent, WebhookSender},
};
use tokio::time::{Instant, timeout_at};

use self::guard::{Guard, Wanted};
pub use self::{
    names::{Resolver, SystemResolver},
    tls::Trust,
};

/// Whom the installation may reach, and how.
#[derive(Debug, Clone)]
pub struct OutboundOptions {
    /// Who may be connected to.
    pub policy: OutboundPolicy,
    /// How long a message may take, from the first question for a name to the last byte.
    pub timeout: Duration,
    /// Who knows the addresses of names.
    pub resolver: Arc<dyn Resolver>,
    /// Whose certificates are believed.
    pub trust: Trust,
}

impl OutboundOptions {
    /// How long a message may take unless the operator says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(15);

    /// Asks this machine for names, and trusts whom it trusts.
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

/// Sends messages to where others want them.
pub struct Outbound {
    guard: Guard,
    tls: tls::Connector,
    timeout: Duration,
}

impl Outbound {
    /// Sends as `options` say.
    #[must_use]
    pub fn new(options: OutboundOptions) -> Self {
        let OutboundOptions { policy, timeout, resolver, trust } = options;
        Self { guard: Guard::new(policy, resolver), tls: tls::Connector::new(trust), timeout }
    }

    async fn may_reach(&self, host: &str, port: u16, wanted: Wanted) -> Result<(), SendError> {
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
        self.may_reach(host, port, Wanted::Permitted).await
    }

    async fn check_unencrypted(&self, host: &str, port: u16) -> Result<(), SendError> {
        self.may_reach(host, port, Wanted::Allowed).await
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

/// How long a message may take, and until when.
#[derive(Clone, Copy)]
struct Time {
    length: Duration,
    end: Instant,
}

impl Time {
    fn starting_now(length: Duration) -> Self {
        Self { length, end: Instant::now() + length }
    }

    /// Waits for `what` with `host`, but not for longer than there is time.
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
