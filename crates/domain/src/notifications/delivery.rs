//! Deliveries of events to channels: at least once, with a bounded number of retries.

use std::time::Duration;

use chrono::TimeDelta;

use super::{Event, EventKind, KeptSigningSecret, SmtpConfig, WebhookConfig};
use crate::{
    clock::Timestamp,
    ids::{BootId, DeliveryId, EventId, InstanceId},
    value::named,
};

named!(
    /// The kind of a channel.
    ChannelKind,
    "`slack`, `discord`, `generic` or `smtp`",
    {
        Slack => "slack",
        Discord => "discord",
        Generic => "generic",
        Smtp => "smtp",
    }
);

named!(
    /// The state of a delivery.
    DeliveryState,
    "`pending`, `sending`, `delivered` or `dead`",
    {
        // It waits for its first or next attempt.
        Pending => "pending",
        // A sender has claimed it.
        Sending => "sending",
        Delivered => "delivered",
        // It is not retried any more, unless a user requests it.
        Dead => "dead",
    }
);

/// The delivery of one event to one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The id of the delivery.
    pub id: DeliveryId,
    /// The id of the event.
    pub event_id: EventId,
    /// The kind of the event.
    pub event: EventKind,
    /// The kind of the channel.
    pub channel: ChannelKind,
    /// The current state.
    pub state: DeliveryState,
    /// When the next attempt is due, while it is pending.
    pub next_at: Option<Timestamp>,
    /// The reason why it is not retried any more; empty otherwise. It does not repeat the response of the
    /// receiver, which not every user who sees the delivery may know.
    pub reason: String,
    /// The newest [`Attempt::KEPT`] attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// When it finished.
    pub finished_at: Option<Timestamp>,
}

impl Delivery {
    /// The retention of a successful delivery.
    pub const DELIVERED_KEPT: TimeDelta = TimeDelta::days(30);
    /// The retention of a dead delivery, during which it can be replayed.
    pub const DEAD_KEPT: TimeDelta = TimeDelta::days(90);
}

/// One attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The number of the attempt, counted from 1. An interrupted attempt is missing.
    pub number: i32,
    /// When it started.
    pub at: Timestamp,
    /// The duration of the attempt.
    pub took: Duration,
    /// The status of the HTTP response, or the SMTP reply code.
    pub status: Option<u16>,
    /// The error; empty on success. Contains no secret.
    pub error: String,
}

impl Attempt {
    /// The length limit of the error, in characters.
    pub const LONGEST_ERROR: usize = 500;
    /// The maximum number of stored attempts of a delivery, the newest.
    pub const KEPT: i32 = 20;
}

/// A filter for deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Those in this state.
    pub state: Option<DeliveryState>,
    /// Those by this kind of channel.
    pub channel: Option<ChannelKind>,
}

/// A sender: one run of a server process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderId {
    /// The server process.
    pub instance: InstanceId,
    /// The run of the server process.
    pub boot: BootId,
}

/// A delivery that a sender has just claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The claim on it.
    pub claim: Claim,
    /// The number of failed attempts since it was created or last replayed.
    pub failures: u32,
    /// The event.
    pub event: Event,
    /// The message text, if this is not the first attempt.
    pub body: Option<String>,
    /// The channel.
    pub channel: Channel,
}

/// A claim on a delivery. A sender that lost it cannot change anything any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The id of the delivery.
    pub delivery: DeliveryId,
    /// The number of the attempt: no two claims on a delivery have the same.
    pub attempt: i32,
    /// The sender that holds it.
    pub sender: SenderId,
}

/// The current configuration of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// An HTTP channel.
    Webhook {
        /// The configuration.
        config: WebhookConfig,
        /// The valid signing secrets, newest first. Only messages to `generic` receivers are signed.
        secrets: Vec<KeptSigningSecret>,
    },
    /// A mail channel.
    Mail(Box<SmtpConfig>),
}

impl Channel {
    /// Returns the kind of the channel.
    #[must_use]
    pub fn kind(&self) -> ChannelKind {
        match self {
            Self::Webhook { config, .. } => config.kind.into(),
            Self::Mail(_) => ChannelKind::Smtp,
        }
    }
}

/// The next step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// None: the message was delivered.
    Done,
    /// Another attempt at this time.
    Again(Timestamp),
    /// None: the receiver rejected the message permanently, or all retries are used up.
    GiveUp,
    /// None, and the channel is disabled because the receiver is gone; its pending deliveries are dead.
    Disable,
}

/// The result of an attempt, as the receiver reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It accepted the message.
    Taken,
    /// It may accept the message later, but not before this delay.
    Later(Option<Duration>),
    /// It rejected the message permanently.
    Refused,
    /// It does not exist any more.
    Gone,
}

impl Verdict {
    /// Classifies an HTTP response.
    #[must_use]
    pub fn of_http(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Taken,
            410 => Self::Gone,
            _ => Self::Later(retry_after),
        }
    }

    /// Classifies an SMTP reply code.
    #[must_use]
    pub fn of_smtp(code: u16) -> Self {
        match code {
            200..=299 => Self::Taken,
            500..=599 => Self::Refused,
            _ => Self::Later(None),
        }
    }
}

/// The delays after failed attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySchedule(Vec<Duration>);

impl RetrySchedule {
    /// The longest delay that a receiver can request.
    pub const LONGEST_REQUESTED: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates a schedule that waits `delays`, one after the other, and then gives up.
    #[must_use]
    pub fn new(delays: Vec<Duration>) -> Self {
        Self(delays)
    }

    /// Returns the next step after an attempt that ended at `now` with `verdict`, as the `failures`-th
    /// failure. `random` adds jitter, so that a receiver that recovers is not overloaded.
    #[must_use]
    pub fn next(&self, verdict: Verdict, failures: u32, random: u32, now: Timestamp) -> Next {
        let requested = match verdict {
            Verdict::Taken => return Next::Done,
            Verdict::Refused => return Next::GiveUp,
            Verdict::Gone => return Next::Disable,
            Verdict::Later(requested) => requested,
        };
        let place = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(delay) = self.0.get(place) else { return Next::GiveUp };
        // From 0.8 to 1.2 times as long.
        let spread = 0.8 + 0.4 * f64::from(random) / f64::from(u32::MAX);
        let delay = delay.mul_f64(spread).max(requested.unwrap_or_default().min(Self::LONGEST_REQUESTED));
        TimeDelta::from_std(delay).map_or(Next::GiveUp, |delay| Next::Again(now + delay))
    }
}

impl Default for RetrySchedule {
    fn default() -> Self {
        let seconds = [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600];
        Self(seconds.map(Duration::from_secs).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn wait(next: Next) -> Option<f64> {
        match next {
            Next::Again(at) => Some((at - NOW).as_seconds_f64()),
            Next::Done | Next::GiveUp | Next::Disable => None,
        }
    }

    #[test]
    fn answers_mean_what_the_standards_say() {
        let requested = Some(Duration::from_secs(7));
        for (status, verdict) in [
            (200, Verdict::Taken),
            (204, Verdict::Taken),
            (299, Verdict::Taken),
            (199, Verdict::Later(requested)),
            (301, Verdict::Later(requested)),
            (302, Verdict::Later(requested)),
            (400, Verdict::Later(requested)),
            (404, Verdict::Later(requested)),
            (410, Verdict::Gone),
            (429, Verdict::Later(requested)),
            (500, Verdict::Later(requested)),
            (503, Verdict::Later(requested)),
        ] {
            assert_eq!(Verdict::of_http(status, requested), verdict, "{status}");
        }
        for (code, verdict) in [
            (250, Verdict::Taken),
            (421, Verdict::Later(None)),
            (450, Verdict::Later(None)),
            (550, Verdict::Refused),
            (554, Verdict::Refused),
        ] {
            assert_eq!(Verdict::of_smtp(code), verdict, "{code}");
        }
    }

    #[test]
    fn six_delays_and_then_no_more() {
        let schedule = RetrySchedule::default();
        let middle = u32::MAX / 2;
        let waits: Vec<_> = (1..=7)
            .map(|failures| wait(schedule.next(Verdict::Later(None), failures, middle, NOW)))
            .map(|wait| wait.map(f64::round))
            .collect();
        let expected = [5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0];
        assert_eq!(waits, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
    }

    #[test]
    fn who_asks_for_time_gets_it_but_not_more_than_a_day() {
        let schedule = RetrySchedule::default();
        for (requested, waited) in [(1, 4.0), (60, 60.0), (86_400, 86_400.0), (864_000, 86_400.0)] {
            let verdict = Verdict::Later(Some(Duration::from_secs(requested)));
            assert_eq!(wait(schedule.next(verdict, 1, 0, NOW)), Some(waited), "{requested}");
        }
    }

    #[test]
    fn who_refuses_is_not_asked_again() {
        let schedule = RetrySchedule::default();
        for (verdict, next) in
            [(Verdict::Taken, Next::Done), (Verdict::Refused, Next::GiveUp), (Verdict::Gone, Next::Disable)]
        {
            assert_eq!(schedule.next(verdict, 1, 0, NOW), next);
        }
        assert_eq!(RetrySchedule::new(vec![]).next(Verdict::Later(None), 1, 0, NOW), Next::GiveUp);
    }

    proptest! {
        #[test]
        fn waits_are_spread_around_their_delay(failures in 1..=6_u32, random in any::<u32>()) {
            let delay = [5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0][failures as usize - 1];
            let waited = wait(RetrySchedule::default().next(Verdict::Later(None), failures, random, NOW));
            let share = waited.unwrap() / delay;
            prop_assert!((0.8..=1.2000001).contains(&share), "{share}");
        }
    }
}
