//! Egress ports.
//!
//! Promises that all of these ports make:
//! - no connection is made that the operator's [policy](crate::network::OutboundPolicy) does not permit:
//!   neither by the spelling of an address, nor by a name that resolves to it, nor by a name that resolves
//!   differently on the second lookup, nor by a redirect;
//! - a call ends within its timeout, whatever the other side does;
//! - errors are sentences for users, without secrets.

use std::time::Duration;

use async_trait::async_trait;

use super::{MailHost, MailLogin, MailSecurity, SenderName, WebhookUrl};
use crate::users::EmailAddress;

/// An HTTP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// The address.
    pub url: WebhookUrl,
    /// Headers beside the default ones.
    pub headers: Vec<(&'static str, String)>,
    /// The body, as JSON.
    pub body: String,
}

/// The response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The delay that the receiver requests before a retry.
    pub retry_after: Option<Duration>,
    /// The beginning of the body: at most [`Answer::LONGEST`] characters of one line.
    pub excerpt: String,
}

impl Answer {
    /// The number of characters of a response that are read.
    pub const LONGEST: usize = 200;
}

/// Sends HTTP messages.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Posts a message and waits for the response, whatever its status; redirects are not followed.
    ///
    /// # Errors
    /// [`SendError`] if there is no response.
    async fn post(&self, post: Post) -> Result<Answer, SendError>;
}

/// A mail message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The server.
    pub host: MailHost,
    /// The port.
    pub port: u16,
    /// The transport security.
    pub security: MailSecurity,
    /// The credentials.
    pub login: Option<MailLogin>,
    /// The display name and address of the sender.
    pub from: (SenderName, EmailAddress),
    /// The recipients.
    pub to: Vec<EmailAddress>,
    /// The message id, the same for every attempt.
    pub message_id: String,
    /// The subject, on one line.
    pub subject: String,
    /// The text.
    pub text: String,
}

/// Sends mail.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Sends a mail to its server. Recipients that the server rejects permanently are skipped, if there are
    /// others.
    ///
    /// If encryption is configured, nothing is sent without it; unencrypted connections are made only to
    /// networks that the operator allows explicitly.
    ///
    /// # Errors
    /// [`SendError`] if the server did not accept it.
    async fn send(&self, mail: Mail) -> Result<Sent, SendError>;
}

/// A mail that a server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The reply code.
    pub code: u16,
    /// The skipped recipients, each with the reason.
    pub left_out: Vec<String>,
}

impl From<u16> for Sent {
    /// Returns a mail that was accepted for every recipient.
    fn from(code: u16) -> Self {
        Self { code, left_out: Vec::new() }
    }
}

/// Checks in advance whether a connection would be refused.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OutboundGuard: Send + Sync {
    /// Checks whether connections to `host`, a name or a canonical address, are permitted. A name that does
    /// not resolve now is: every delivery checks again.
    ///
    /// # Errors
    /// [`SendError::Forbidden`].
    async fn check(&self, host: &str, port: u16) -> Result<(), SendError>;

    /// Checks the same for an unencrypted connection: only networks that the operator allows are permitted.
    ///
    /// # Errors
    /// [`SendError::Forbidden`].
    async fn check_unencrypted(&self, host: &str, port: u16) -> Result<(), SendError>;
}

/// The reason why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The operator's policy does not permit it.
    #[error("{0}")]
    Forbidden(String),
    /// There was no response, or none that could be parsed.
    #[error("{0}")]
    Unreachable(String),
    /// The receiver responded with an error code.
    #[error("the server answered {code}: {text}")]
    Answered {
        /// The code.
        code: u16,
        /// The text of the response, on one line.
        text: String,
    },
}
