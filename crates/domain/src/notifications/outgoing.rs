//! Ways out of the installation.
//!
//! Promises that all of these ports make:
//! - nobody is connected to whom the operator's [policy](crate::network::OutboundPolicy) does not
//!   permit: neither by the spelling of an address, nor by a name that leads there, nor by a name that
//!   leads elsewhere the second time that it is looked up, nor by a redirect;
//! - a call ends within its time, whatever the other side does;
//! - what goes wrong is told in a sentence for a person, without secrets.

use std::time::Duration;

use async_trait::async_trait;

use super::{MailHost, MailLogin, MailSecurity, SenderName, WebhookUrl};
use crate::users::EmailAddress;

/// A message by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Where.
    pub url: WebhookUrl,
    /// Headers beside the usual ones.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: String,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// How long the receiver wants to be left alone.
    pub retry_after: Option<Duration>,
    /// The beginning of what it said: at most [`Answer::LONGEST`] characters of one line.
    pub excerpt: String,
}

impl Answer {
    /// How much of what a receiver said is looked at, in characters.
    pub const LONGEST: usize = 200;
}

/// Posts messages.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Posts a message and waits for the answer, whatever its status; redirects are not followed.
    ///
    /// # Errors
    /// [`SendError`] when there is no answer.
    async fn post(&self, post: Post) -> Result<Answer, SendError>;
}

/// A message by mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// By which server.
    pub host: MailHost,
    /// At which port.
    pub port: u16,
    /// How the server is spoken to.
    pub security: MailSecurity,
    /// Who logs in.
    pub login: Option<MailLogin>,
    /// From whom.
    pub from: (SenderName, EmailAddress),
    /// To whom.
    pub to: Vec<EmailAddress>,
    /// What recognises it, however often it is sent.
    pub message_id: String,
    /// What it is about, on one line.
    pub subject: String,
    /// What it says.
    pub text: String,
}

/// Sends mail.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Gives a mail to its server. Who can get no mail there for good is left out, if somebody can.
    ///
    /// Whoever wants encryption gets it, or nothing is said; who wants none is served only where the
    /// operator allows the address by name of its network.
    ///
    /// # Errors
    /// [`SendError`] when the server did not take it.
    async fn send(&self, mail: Mail) -> Result<Sent, SendError>;
}

/// A mail that a server took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The code that it took it with.
    pub code: u16,
    /// Who was left out, and why, in words.
    pub left_out: Vec<String>,
}

impl From<u16> for Sent {
    /// For everyone.
    fn from(code: u16) -> Self {
        Self { code, left_out: Vec::new() }
    }
}

/// Tells beforehand whether somebody would be refused.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OutboundGuard: Send + Sync {
    /// Whether `host`, a name or an address in its usual spelling, may be connected to. A name that
    /// does not resolve now may: every message asks again.
    ///
    /// # Errors
    /// [`SendError::Forbidden`].
    async fn check(&self, host: &str, port: u16) -> Result<(), SendError>;

    /// The same where nothing would be encrypted: only what the operator allows may be spoken to so.
    ///
    /// # Errors
    /// [`SendError::Forbidden`].
    async fn check_unencrypted(&self, host: &str, port: u16) -> Result<(), SendError>;
}

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The operator does not permit it.
    #[error("{0}")]
    Forbidden(String),
    /// Nobody answered, or not in a way that can be understood.
    #[error("{0}")]
    Unreachable(String),
    /// The other side answered with a code, and not by taking it.
    #[error("the server answered {code}: {text}")]
    Answered {
        /// The code.
        code: u16,
        /// What it said, on one line.
        text: String,
    },
}
