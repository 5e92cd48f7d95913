//! Telling one channel of one event: at least once, with patience, and not for ever.

use std::time::Duration;

use chrono::TimeDelta;

use super::{Event, EventKind, KeptSigningSecret, SmtpConfig, WebhookConfig};
use crate::{
    clock::Timestamp,
    ids::{BootId, DeliveryId, EventId, InstanceId},
    value::named,
};

named!(
    /// By which way somebody is told.
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
    /// Where a delivery is.
    DeliveryState,
    "`pending`, `sending`, `delivered` or `dead`",
    {
        // It waits, perhaps for another attempt.
        Pending => "pending",
        // Somebody is at it.
        Sending => "sending",
        Delivered => "delivered",
        // Nobody tries any more, unless somebody asks for it.
        Dead => "dead",
    }
);

/// Telling one channel of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Which.
    pub id: DeliveryId,
    /// Of what.
    pub event_id: EventId,
    /// What kind of thing happened.
    pub event: EventKind,
    /// By which way.
    pub channel: ChannelKind,
    /// Where it is.
    pub state: DeliveryState,
    /// When it is tried next, while it waits.
    pub next_at: Option<Timestamp>,
    /// Why nobody tries any more; empty otherwise. Repeats nothing of what the receiver said, which not
    /// everyone may know who sees the delivery.
    pub reason: String,
    /// What was tried, oldest first: the newest [`Attempt::KEPT`].
    pub attempts: Vec<Attempt>,
    /// Since when.
    pub created_at: Timestamp,
    /// When it was over.
    pub finished_at: Option<Timestamp>,
}

impl Delivery {
    /// How long one that was delivered is remembered.
    pub const DELIVERED_KEPT: TimeDelta = TimeDelta::days(30);
    /// How long a dead one is remembered, and can be tried again.
    pub const DEAD_KEPT: TimeDelta = TimeDelta::days(90);
}

/// One attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Which, counted from 1. One that was cut off leaves a gap.
    pub number: i32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// What the receiver answered with: a status of HTTP or a code of SMTP.
    pub status: Option<u16>,
    /// What went wrong; empty when nothing did. Holds no secret.
    pub error: String,
}

impl Attempt {
    /// How much of what went wrong is kept, in characters.
    pub const LONGEST_ERROR: usize = 500;
    /// How many attempts at a delivery are kept, the newest.
    pub const KEPT: i32 = 20;
}

/// Which deliveries are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Those in this state.
    pub state: Option<DeliveryState>,
    /// Those by this way.
    pub channel: Option<ChannelKind>,
}

/// One run of a server process that sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderId {
    /// Which server process.
    pub instance: InstanceId,
    /// Which run of it.
    pub boot: BootId,
}

/// A delivery that a sender has just taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The right to try it.
    pub claim: Claim,
    /// How many attempts failed since it was made, or since somebody last asked for it.
    pub failures: u32,
    /// What happened.
    pub event: Event,
    /// The words that were found for it, if this is not the first attempt.
    pub body: Option<String>,
    /// Who is to be told.
    pub channel: Channel,
}

/// The right to try a delivery. Whoever lost it changes nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// For which attempt: no two claims on a delivery have the same.
    pub attempt: i32,
    /// Whose.
    pub sender: SenderId,
}

/// Who is to be told, as the configuration is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// Somebody by HTTP.
    Webhook {
        /// Where.
        config: WebhookConfig,
        /// What signs now, newest first. Only the messages of an organization's own receiver are signed.
        secrets: Vec<KeptSigningSecret>,
    },
    /// Somebody by mail.
    Mail(Box<SmtpConfig>),
}

impl Channel {
    /// By which way.
    #[must_use]
    pub fn kind(&self) -> ChannelKind {
        match self {
            Self::Webhook { config, .. } => config.kind.into(),
            Self::Mail(_) => ChannelKind::Smtp,
        }
    }
}

/// What comes after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the receiver has it.
    Done,
    /// Another attempt.
    Again(Timestamp),
    /// Nothing: the receiver will never take it, or was tried often enough.
    GiveUp,
    /// Nothing, and the receiver wants nothing any more: the channel is not active from now on, and
    /// what waits for it is dead.
    Disable,
}

/// What a receiver thinks of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has it.
    Taken,
    /// It may take it later, but not before this long.
    Later(Option<Duration>),
    /// It never will.
    Refused,
    /// It never will take anything.
    Gone,
}

impl Verdict {
    /// What an answer by HTTP means.
    #[must_use]
    pub fn of_http(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Taken,
            410 => Self::Gone,
            _ => Self::Later(retry_after),
        }
    }

    /// What a code of SMTP means.
    #[must_use]
    pub fn of_smtp(code: u16) -> Self {
        match code {
            200..=299 => Self::Taken,
            500..=599 => Self::Refused,
            _ => Self::Later(None),
        }
    }
}

/// How long to wait after each failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySchedule(Vec<Duration>);

impl RetrySchedule {
    /// The longest that a receiver can put an attempt off.
    pub const LONGEST_WISH: Duration = Duration::from_secs(24 * 60 * 60);

    /// Waits `delays`, one after the other, and then gives up.
    #[must_use]
    pub fn new(delays: Vec<Duration>) -> Self {
        Self(delays)
    }

    /// What comes after an attempt that ended at `now` with `verdict`, as the `failures`-th that
    /// failed. `random` spreads attempts, so that a receiver that comes back is not overrun.
    #[must_use]
    pub fn next(&self, verdict: Verdict, failures: u32, random: u32, now: Timestamp) -> Next {
        let wish = match verdict {
            Verdict::Taken => return Next::Done,
            Verdict::Refused => return Next::GiveUp,
            Verdict::Gone => return Next::Disable,
            Verdict::Later(wish) => wish,
        };
        let place = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(delay) = self.0.get(place) else { return Next::GiveUp };
        // From 0.8 to 1.2 times as long.
        let spread = 0.8 + 0.4 * f64::from(random) / f64::from(u32::MAX);
        let delay = delay.mul_f64(spread).max(wish.unwrap_or_default().min(Self::LONGEST_WISH));
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
        let wish = Some(Duration::from_secs(7));
        for (status, verdict) in [
            (200, Verdict::Taken),
            (204, Verdict::Taken),
            (299, Verdict::Taken),
            (199, Verdict::Later(wish)),
            (301, Verdict::Later(wish)),
            (302, Verdict::Later(wish)),
            (400, Verdict::Later(wish)),
            (404, Verdict::Later(wish)),
            (410, Verdict::Gone),
            (429, Verdict::Later(wish)),
            (500, Verdict::Later(wish)),
            (503, Verdict::Later(wish)),
        ] {
            assert_eq!(Verdict::of_http(status, wish), verdict, "{status}");
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
        for (wish, waited) in [(1, 4.0), (60, 60.0), (86_400, 86_400.0), (864_000, 86_400.0)] {
            let verdict = Verdict::Later(Some(Duration::from_secs(wish)));
            assert_eq!(wait(schedule.next(verdict, 1, 0, NOW)), Some(waited), "{wish}");
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
