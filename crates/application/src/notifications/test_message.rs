//! Sends a test message to a channel.

mod limits;

use launchway_domain::{
    audit::{Action as Did, Event as Entry, Resource as Audited},
    auth::Actor,
    notifications::{Channel, ChannelKind, Event, EventKind, Fact, Verdict, WebhookKind},
    organizations::Scope,
};

pub(super) use self::limits::TestMessageLimiter;
use super::{Notifications, UPDATE};
use crate::Error;

/// The result of a test message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    /// The tested channel.
    pub channel: ChannelKind,
    /// True if the receiver accepted the message.
    pub delivered: bool,
    /// The status code of the response.
    pub status: Option<u16>,
    /// The error; empty on success.
    pub error: String,
}

impl Notifications {
    /// Sends one test message to a channel, active or not, and waits for the result. It is not retried.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the channel is not configured, [`Error::RateLimited`] when the organization
    /// runs another test, or ran too many, [`Error::Forbidden`] without the permission
    /// `notification:update`.
    pub async fn try_channel(&self, actor: &Actor, kind: ChannelKind) -> Result<AttemptResult, Error> {
        let scope = actor.require(UPDATE)?;
        let channel =
            self.channel(scope, kind).await?.ok_or(Error::NotFound("the channel's configuration"))?;
        let _leave =
            self.tries.leave(scope.id()).map_err(|retry_after| Error::RateLimited { retry_after })?;
        let what = format!("requested a test message by {}", kind.as_str());
        let entry = Entry::new(Did::Access, Audited::Notification, kind.as_str(), what);
        self.context.store.commit(vec![self.context.record(actor.author(), entry)]).await?;
        let (id, now) = (self.context.ids.next().into(), self.context.clock.now());
        let event = Event::new(id, scope.id(), EventKind::Test, now).with(Fact::By, &actor.user().username);
        let words = self.ports.notifier.compose(&event).await?;
        let brought = self.ports.notifier.deliver(&event, &words, &channel).await;
        let delivered = brought.verdict == Verdict::Taken;
        Ok(AttemptResult { channel: kind, delivered, status: brought.status, error: brought.error })
    }

    async fn channel(&self, scope: Scope, kind: ChannelKind) -> Result<Option<Channel>, Error> {
        let kind = match kind {
            ChannelKind::Slack => WebhookKind::Slack,
            ChannelKind::Discord => WebhookKind::Discord,
            ChannelKind::Generic => WebhookKind::Generic,
            ChannelKind::Smtp => {
                let config = self.ports.notifications.smtp(scope).await?;
                return Ok(config.map(|config| Channel::Mail(Box::new(config))));
            }
        };
        let found = self.ports.notifications.webhook(scope, kind, self.context.clock.now()).await?;
        Ok(found.map(|(config, secrets)| Channel::Webhook { config, secrets }))
    }
}
