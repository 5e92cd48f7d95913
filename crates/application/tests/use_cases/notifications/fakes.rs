//! Fakes for senders: a queue, receivers and a mail server that record their calls and respond as
//! configured. Their clock follows the time of the test.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use launchway_application::{
    EngineStatus, Homes, OwnReplica, ServiceContext, Terms, WakeSignal,
    notifications::{Notifier, NotifierPorts, Sender, SenderTimings},
};
use launchway_domain::{
    clock::{Clock, Timestamp},
    extensions::MockExecutionRepository,
    ids::{DeliveryId, EventId},
    logs::MockLogReader,
    notifications::{
        Answer, Attempt, Channel, Claim, ClaimedDelivery, DeliveryQueue, Event, EventKind, Mail, Mailer,
        Next, Post, RetrySchedule, SendError, SenderId, Sent, WebhookConfig, WebhookKind, WebhookSender,
    },
    organizations::{Member, MockOrganizationRepository, Role},
    store::{MockUnitOfWork, StoreError},
};
use launchway_testkit::{
    CountingEntropy, CountingIds,
    builders::{a_membership, a_user, an_organization},
    clock::{NEW_YEAR, moment},
    ids::id_of,
};
use tokio::{sync::watch, time::Instant};

use super::{a_webhook, sealed_url};
use crate::{applications::scope, sealed_values::a_box};

/// The configuration of the fakes, and the recorded calls.
#[derive(Default)]
pub(super) struct State {
    /// The pending deliveries, with the times at which they are due.
    pub(super) waiting: Vec<(Timestamp, ClaimedDelivery)>,
    /// The deliveries of a lost sender.
    pub(super) lost: Vec<ClaimedDelivery>,
    /// The deliveries that a sender has claimed.
    pub(super) under_way: HashMap<DeliveryId, ClaimedDelivery>,
    /// The stored messages.
    pub(super) bodies: HashMap<EventId, String>,
    /// The errors of the next calls of the queue, by their name.
    pub(super) faults: HashMap<&'static str, VecDeque<StoreError>>,
    /// The next responses of hosts; hosts without an entry accept everything.
    pub(super) answers: HashMap<&'static str, VecDeque<Result<Answer, SendError>>>,
    /// The response times of hosts.
    pub(super) delays: HashMap<&'static str, Duration>,
    /// The next responses of the mail server; without an entry it accepts everything.
    pub(super) mail_answers: VecDeque<Result<u16, SendError>>,
    /// The number of deliveries that can be deleted, for each call.
    pub(super) forgettable: VecDeque<usize>,

    /// The number of requested deliveries and the end of the claim, for each call.
    pub(super) claims: Vec<(usize, Timestamp)>,
    /// The posted messages, with their times.
    pub(super) posts: Vec<(Duration, Post)>,
    pub(super) mails: Vec<Mail>,
    pub(super) records: Vec<(Claim, Attempt, Next)>,
    /// The times of searches for lost deliveries.
    pub(super) rescues: Vec<Duration>,
    /// The times of deletions, with their limits.
    pub(super) forgets: Vec<(Duration, [Timestamp; 3])>,
}

/// The fakes.
pub(super) struct SenderFakes {
    state: Mutex<State>,
    opened: Instant,
    pub(super) wake: WakeSignal,
}

/// The sources of message texts. Only the organization may be read without an expectation.
pub(super) struct Archive {
    pub(super) organizations: MockOrganizationRepository,
    pub(super) logs: MockLogReader,
    pub(super) executions: MockExecutionRepository,
    pub(super) public_url: Option<String>,
}

impl Archive {
    /// Returns an archive with [`an_organization`] and these members.
    pub(super) fn with_members(members: Vec<Member>) -> Self {
        let mut organizations = MockOrganizationRepository::new();
        organizations.expect_detail().returning(move |asked| {
            let detail = an_organization().with_members(members.clone());
            Ok((asked == scope()).then_some(detail))
        });
        let (logs, executions) = (MockLogReader::new(), MockExecutionRepository::new());
        let public_url = Some("https://launchway.example.com/".to_owned());
        Self { organizations, logs, executions, public_url }
    }
}

impl Default for Archive {
    /// Returns an archive with ada as the admin.
    fn default() -> Self {
        Self::with_members(vec![a_membership().of(&a_user().build()).with_role(Role::Admin).member()])
    }
}

impl SenderFakes {
    /// Returns fakes configured by `arrange`.
    pub(super) fn with(arrange: impl FnOnce(&mut State)) -> Arc<Self> {
        let mut state = State::default();
        arrange(&mut state);
        Arc::new(Self { state: Mutex::new(state), opened: Instant::now(), wake: WakeSignal::default() })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| panic!("{poisoned}"))
    }

    /// Returns the next actions after the attempts so far.
    pub(super) fn nexts(&self) -> Vec<Next> {
        self.state().records.iter().map(|(_, _, next)| *next).collect()
    }

    /// Returns the hosts that were posted to, with the seconds of the posts.
    pub(super) fn posted(&self) -> Vec<(u64, String)> {
        let of = |(at, post): &(Duration, Post)| (at.as_secs(), post.url.host().to_string());
        self.state().posts.iter().map(of).collect()
    }

    pub(super) fn notifier(self: &Arc<Self>, archive: Archive) -> Arc<Notifier> {
        let Archive { organizations, logs, executions, public_url } = archive;
        let ports = NotifierPorts {
            organizations: Arc::new(organizations),
            logs: Arc::new(logs),
            executions: Arc::new(executions),
            secrets: Arc::new(a_box()),
            webhooks: Arc::clone(self) as _,
            mailer: Arc::clone(self) as _,
            clock: Arc::clone(self) as _,
        };
        Arc::new(Notifier::new(ports, public_url))
    }

    pub(super) fn context(self: &Arc<Self>, store: MockUnitOfWork) -> ServiceContext {
        ServiceContext {
            store: Arc::new(store),
            clock: Arc::clone(self) as _,
            ids: Arc::new(CountingIds::default()),
            wake: self.wake.clone(),
            engine: EngineStatus::default(),
            terms: Terms::default(),
            entropy: Arc::new(CountingEntropy::default()),
            replica: OwnReplica::default(),
            homes: Homes::default(),
        }
    }

    /// Sends with `timings` until `stop` is true.
    pub(super) async fn send(
        self: &Arc<Self>,
        timings: SenderTimings,
        archive: Archive,
        stop: watch::Receiver<bool>,
    ) {
        let (notifier, context) = (self.notifier(archive), self.context(MockUnitOfWork::new()));
        let queue = Arc::clone(self) as _;
        Arc::new(Sender::new(queue, notifier, a_sender(), timings, context)).run(stop).await;
    }

    /// Sends for `time` and stops. Returns the time that it took to stop.
    pub(super) async fn send_for(self: &Arc<Self>, time: Duration, timings: SenderTimings) -> Duration {
        let (stop, stopped) = watch::channel(false);
        let mut last = Instant::now();
        tokio::join!(self.send(timings, Archive::default(), stopped), async {
            tokio::time::sleep(time).await;
            last = Instant::now();
            stop.send_replace(true);
        });
        last.elapsed()
    }

    fn since(&self) -> Duration {
        self.opened.elapsed()
    }

    fn fault(&self, call: &'static str) -> Result<(), StoreError> {
        self.state().faults.get_mut(call).and_then(VecDeque::pop_front).map_or(Ok(()), Err)
    }
}

impl Clock for SenderFakes {
    fn now(&self) -> Timestamp {
        moment(NEW_YEAR) + self.since()
    }
}

#[async_trait]
impl DeliveryQueue for SenderFakes {
    async fn claim(
        &self,
        sender: SenderId,
        most: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        assert_eq!((sender, now), (a_sender(), self.now()));
        self.state().claims.push((most, lease_until));
        self.fault("claim")?;
        let mut state = self.state();
        let (mut due, later): (Vec<_>, Vec<_>) = state.waiting.drain(..).partition(|(at, _)| *at <= now);
        let rest = due.split_off(most.min(due.len()));
        state.waiting = rest.into_iter().chain(later).collect();
        let claimed: Vec<_> = due.into_iter().map(|(_, delivery)| delivery).collect();
        let by_id = claimed.iter().map(|claimed| (claimed.claim.delivery, claimed.clone()));
        state.under_way.extend(by_id);
        Ok(claimed)
    }

    async fn keep_body(&self, event: EventId, body: String) -> Result<String, StoreError> {
        self.fault("keep_body")?;
        Ok(self.state().bodies.entry(event).or_insert(body).clone())
    }

    /// A delivery to be retried waits with one more failure, and with the stored message.
    async fn record(&self, claim: Claim, attempt: Attempt, next: Next) -> Result<(), StoreError> {
        self.fault("record")?;
        let mut state = self.state();
        let under_way = state.under_way.remove(&claim.delivery);
        if let (Next::Again(at), Some(mut delivery)) = (next, under_way) {
            delivery.claim.attempt += 1;
            delivery.failures += 1;
            delivery.body = state.bodies.get(&delivery.event.id).cloned();
            state.waiting.push((at, delivery));
        }
        state.records.push((claim, attempt, next));
        Ok(())
    }

    async fn rescue(&self, sender: SenderId, now: Timestamp) -> Result<usize, StoreError> {
        assert_eq!((sender, now), (a_sender(), self.now()));
        let since = self.since();
        self.state().rescues.push(since);
        self.fault("rescue")?;
        let mut state = self.state();
        let lost = std::mem::take(&mut state.lost);
        let found = lost.len();
        state.waiting.extend(lost.into_iter().map(|delivery| (now, delivery)));
        Ok(found)
    }

    async fn forget(
        &self,
        delivered: Timestamp,
        dead: Timestamp,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let since = self.since();
        self.state().forgets.push((since, [delivered, dead, now]));
        self.fault("forget")?;
        Ok(self.state().forgettable.pop_front().unwrap_or_default())
    }
}

#[async_trait]
impl WebhookSender for SenderFakes {
    async fn post(&self, post: Post) -> Result<Answer, SendError> {
        let (host, since) = (post.url.host().to_string(), self.since());
        self.state().posts.push((since, post));
        let delay = self.state().delays.get(host.as_str()).copied();
        tokio::time::sleep(delay.unwrap_or_default()).await;
        let answer = self.state().answers.get_mut(host.as_str()).and_then(VecDeque::pop_front);
        answer.unwrap_or_else(|| answered(200))
    }
}

#[async_trait]
impl Mailer for SenderFakes {
    async fn send(&self, mail: Mail) -> Result<Sent, SendError> {
        let mut state = self.state();
        state.mails.push(mail);
        state.mail_answers.pop_front().unwrap_or(Ok(250)).map(Sent::from)
    }
}

pub(super) fn answered(status: u16) -> Result<Answer, SendError> {
    Ok(Answer { status, retry_after: None, excerpt: String::new() })
}

/// Returns the identity of the sender.
pub(super) fn a_sender() -> SenderId {
    SenderId { instance: id_of("instance").into(), boot: id_of("boot").into() }
}

/// Returns timings with retries ten seconds after the first failure and twenty after the second; an attempt
/// takes ten seconds at most.
pub(super) fn timings() -> SenderTimings {
    let schedule = RetrySchedule::new(vec![Duration::from_secs(10), Duration::from_secs(20)]);
    SenderTimings::of(schedule, Duration::from_secs(10))
}

/// Returns an event of [`an_organization`] at [`NEW_YEAR`].
pub(super) fn an_event(kind: EventKind) -> Event {
    Event::new(id_of(kind.as_str()).into(), scope().id(), kind, moment(NEW_YEAR))
}

/// Returns a channel of a kind at a host of `example.com`.
pub(super) fn a_receiver(kind: WebhookKind, host: &str) -> Channel {
    let config = a_webhook(kind);
    let url = sealed_url(config.id, &format!("https://{host}.example.com/hunter2"));
    Channel::Webhook { config: WebhookConfig { url, ..config }, secrets: vec![] }
}

/// Returns the first attempt at sending `event` to `channel`, which is due.
pub(super) fn a_delivery(event: Event, channel: Channel) -> (Timestamp, ClaimedDelivery) {
    let delivery = id_of(&format!("{} by {}", event.id, channel.kind().as_str())).into();
    let claim = Claim { delivery, attempt: 1, sender: a_sender() };
    (moment(NEW_YEAR), ClaimedDelivery { claim, failures: 0, event, body: None, channel })
}
