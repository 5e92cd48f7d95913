//! The health of live versions: whether each is up, stays up and passes its check.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use launchway_domain::{
    applications::{ApplicationState, Health, HealthCheckPath, Write},
    deployments::{CommitHash, Companion, Condition, ContainerId, LiveVersion, ProbeTarget, ServiceName},
    ids::{DeploymentId, SubjectId},
    logs::Level,
    notifications::{Event, EventKind, Fact, Write as Notification},
    organizations::Scope,
    store::StoreError,
};
use tokio::time::Instant;

use super::{Reconciler, ReconcilerTimings, Snapshot, decision::breakdown};

/// The checks in a row that a version may fail.
const FAILED_CHECKS: u32 = 3;
/// The restarts by the engine from which on a container has to prove that it stays up.
const SUSPICIOUS_RESTARTS: usize = 2;

/// The restarts after which a container counts as one that does not stay up.
#[derive(Debug, Clone, Copy)]
pub struct StabilityLimits {
    /// The number of restarts …
    pub restarts: u32,
    /// … within this time.
    pub within: Duration,
    /// The time for which it has to stay up to be trusted again.
    pub calm: Duration,
}

impl Default for StabilityLimits {
    fn default() -> Self {
        Self { restarts: 5, within: Duration::from_secs(600), calm: Duration::from_secs(60) }
    }
}

/// The health of one live version, as far as it was seen.
#[derive(Debug, Default)]
pub(super) struct HealthRecord {
    restarts: Restarts,
    /// The restarts of the services beside it.
    sidecars: HashMap<ContainerId, Restarts>,
    /// The health that was recorded since the last look.
    marked: Option<Health>,
    check: Check,
}

/// The restarts of one container by the engine.
#[derive(Debug, Default)]
struct Restarts {
    /// The engine's count, as it was last seen.
    count: Option<u32>,
    /// The moments at which new ones were noticed.
    noticed: Vec<Instant>,
}

impl Restarts {
    /// Counts the restarts that are new; returns whether there are any.
    fn notice(&mut self, condition: Condition, limits: &StabilityLimits, now: Instant) -> bool {
        let count = match condition {
            Condition::Running { restarts, .. } => restarts,
            Condition::Restarting(exit) | Condition::Exited(exit) => exit.restarts,
            _ => return false,
        };
        let more = count.saturating_sub(self.count.unwrap_or(count)).min(limits.restarts);
        self.noticed.extend((0..more).map(|_| now));
        self.noticed.retain(|noticed| now - *noticed < limits.within);
        self.count = Some(count);
        more > 0
    }

    fn is_looping(&self, limits: &StabilityLimits) -> bool {
        self.noticed.len() >= limits.restarts as usize
    }

    fn is_calm(&self, limits: &StabilityLimits, now: Instant) -> bool {
        self.noticed.last().is_none_or(|last| now - *last >= limits.calm)
    }
}

/// The checks of one live version.
#[derive(Debug, Default)]
struct Check {
    /// The path of the newest check: the results of another say nothing about it.
    path: Option<HealthCheckPath>,
    /// True if one has passed since the container came up.
    has_passed: bool,
    /// True if one has ever passed.
    has_ever_passed: bool,
    /// The checks in a row that failed, and the reason of the last.
    failures: u32,
    reason: String,
    next: Option<Instant>,
    is_under_way: bool,
}

impl HealthRecord {
    /// Returns the health of a version whose container is in `condition`; `None` while it cannot be
    /// told. Without a condition the engine is away.
    fn assess(
        &mut self,
        condition: Option<Condition>,
        limits: &StabilityLimits,
        now: Instant,
    ) -> Option<Health> {
        if condition.is_some_and(|condition| self.restarts.notice(condition, limits, now)) {
            self.check.has_passed = false;
        }
        let is_calm = self.restarts.is_calm(limits, now);
        let is_suspicious = self.restarts.noticed.len() >= SUSPICIOUS_RESTARTS && !is_calm;
        match condition {
            Some(Condition::Restarting(_)) if !is_suspicious => return None,
            Some(Condition::Running { .. }) | None => {}
            Some(down) => {
                self.check.has_passed = false;
                self.check.failures = 0;
                return breakdown(down).map(Health::Broken);
            }
        }
        if self.restarts.is_looping(limits) && !is_calm {
            let (times, minutes) = (limits.restarts, limits.within.as_secs().div_ceil(60));
            return Some(Health::Broken(format!(
                "the container does not stay up: it was started again {times} times within {minutes} minutes"
            )));
        }
        if self.check.failures >= FAILED_CHECKS && self.check.has_ever_passed {
            let reason = &self.check.reason;
            return Some(Health::Broken(format!("the container does not pass its check: {reason}")));
        }
        (self.check.has_passed && !is_suspicious).then_some(Health::Healthy)
    }

    /// Returns the services of a composition that begin not to stay up, and how often each was started
    /// again.
    fn assess_sidecars(
        &mut self,
        sidecars: Vec<(Companion, Condition)>,
        limits: &StabilityLimits,
        now: Instant,
    ) -> Vec<(ServiceName, usize)> {
        let mut known = std::mem::take(&mut self.sidecars);
        let mut looping = Vec::new();
        for (sidecar, condition) in sidecars {
            let mut restarts = known.remove(&sidecar.id).unwrap_or_default();
            let was_looping = restarts.is_looping(limits);
            restarts.notice(condition, limits, now);
            if restarts.is_looping(limits) && !was_looping {
                looping.push((sidecar.service, restarts.noticed.len()));
            }
            self.sidecars.insert(sidecar.id, restarts);
        }
        looping
    }

    /// True if a check of `path` is to be made now.
    fn begin_check(&mut self, path: Option<&HealthCheckPath>, now: Instant) -> bool {
        let check = &mut self.check;
        if check.path.as_ref() != path {
            *check = Check { path: path.cloned(), is_under_way: check.is_under_way, ..Check::default() };
        }
        // One that has not passed since its container came up is checked at once.
        let is_due = !check.has_passed && check.failures == 0 || check.next.is_none_or(|next| now >= next);
        let is_begun = is_due && !check.is_under_way;
        check.is_under_way |= is_begun;
        is_begun
    }

    /// Takes the result of a check. Returns whether it says something new.
    fn end_check(&mut self, result: Result<(), String>, timings: &ReconcilerTimings, now: Instant) -> bool {
        let check = &mut self.check;
        check.is_under_way = false;
        match result {
            Ok(()) => {
                let is_news = !check.has_passed || check.failures > 0;
                (check.has_passed, check.has_ever_passed, check.failures) = (true, true, 0);
                check.next = Some(now + timings.check);
                is_news
            }
            Err(reason) => {
                check.failures += 1;
                check.reason = reason;
                check.next = Some(now + timings.recheck);
                check.failures == FAILED_CHECKS
            }
        }
    }
}

/// The changes that a round has to record.
#[derive(Default)]
struct Changes {
    marks: Vec<(LiveVersion, Health)>,
    lines: Vec<(LiveVersion, String)>,
}

impl Reconciler {
    /// Records the health of every version that is to run where it changed, and starts the checks
    /// that are due.
    pub(super) async fn assess_all(self: &Arc<Self>) {
        let snapshot: Arc<Snapshot> = Arc::clone(&self.snapshot.borrow());
        let is_away = self.tools.engine.outage().is_some();
        let Changes { marks, lines } = self.assess(&snapshot, is_away);
        for (version, health) in marks {
            self.mark(&version, health).await;
        }
        for (version, text) in lines {
            self.note(&version, Level::Warn, text).await;
        }
    }

    fn assess(self: &Arc<Self>, snapshot: &Arc<Snapshot>, is_away: bool) -> Changes {
        let (now, mut changes, mut versions) = (Instant::now(), Changes::default(), self.versions());
        for version in snapshot.running() {
            let Some(container) = &version.deployment.container else { continue };
            // A job that works on it may have stopped it for a moment.
            if snapshot.busy.contains(&SubjectId::from(version.application.id)) {
                continue;
            }
            let condition = (!is_away).then(|| snapshot.view.condition(&container.id));
            let record = &mut versions.entry(version.deployment.id).or_default();
            let health = record.health.assess(condition, &self.limits.stability, now);
            if let Some(health) = health {
                let known = record.health.marked.clone().unwrap_or_else(|| recorded(version));
                let is_down = !matches!(condition, Some(Condition::Running { .. }) | None);
                if is_news(&known, &health, is_down) {
                    changes.marks.push((version.clone(), health.clone()));
                }
                if health == Health::Healthy {
                    record.backoff = super::Backoff::default();
                }
            }
            let sidecars = snapshot.view.sidecars(&version.deployment).into_iter();
            let sidecars = sidecars.map(|one| (snapshot.view.condition(&one.id), one));
            let sidecars = sidecars.map(|(condition, one)| (one, condition)).collect();
            for (service, times) in record.health.assess_sidecars(sidecars, &self.limits.stability, now) {
                let text =
                    format!("The service `{service}` does not stay up: it was started again {times} times");
                changes.lines.push((version.clone(), text));
            }
            let address = match condition {
                Some(Condition::Running { address, .. }) => address,
                None => match container.address {
                    Some(address) => address,
                    None => continue,
                },
                Some(_) => continue,
            };
            let path = version.application.blueprint.health_check_path.as_ref();
            if record.health.begin_check(path, now) {
                let address = SocketAddr::new(address, container.port.get());
                self.check(version.deployment.id, ProbeTarget { address, path: path.cloned() });
            }
        }
        changes
    }

    fn check(self: &Arc<Self>, version: DeploymentId, target: ProbeTarget) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(_place) = Arc::clone(&this.checks).acquire_owned().await else { return };
            let result = this.ports.probe.probe(&target).await;
            let is_news = this
                .versions()
                .get_mut(&version)
                .is_some_and(|watched| watched.health.end_check(result, &this.timings, Instant::now()));
            if is_news {
                this.changed.notify_one();
            }
        });
    }

    /// The records were read again: what they say of health counts.
    pub(super) fn trust_recorded_health(&self) {
        for watched in self.versions().values_mut() {
            watched.health.marked = None;
        }
    }

    async fn mark(&self, version: &LiveVersion, health: Health) {
        let (deployment, at) = (version.deployment.id, self.tools.clock.now());
        let is_transition = health.state() != recorded_state_of(version, self.marked(deployment).as_ref());
        let mut writes = vec![Write::SetHealth { deployment, health: health.clone(), at }.into()];
        if is_transition {
            writes.push(Notification::Announce(self.event(version, &health)).into());
        }
        match self.tools.store.commit(writes).await {
            Ok(()) => {}
            // It was replaced, stopped or deleted meanwhile.
            Err(StoreError::Stale) => return,
            Err(error) => {
                tracing::warn!(%error, deployment.id = %deployment, "health could not be recorded");
                return;
            }
        }
        if let Some(watched) = self.versions().get_mut(&deployment) {
            watched.health.marked = Some(health.clone());
        }
        let (level, text) = match &health {
            Health::Healthy => (Level::Info, "The application serves again".to_owned()),
            Health::Broken(reason) => (Level::Error, format!("The application does not serve: {reason}")),
        };
        self.note(version, level, text).await;
    }

    fn marked(&self, version: DeploymentId) -> Option<Health> {
        self.versions().get(&version).and_then(|watched| watched.health.marked.clone())
    }

    /// The event that a version broke down, or serves again.
    fn event(&self, version: &LiveVersion, health: &Health) -> Event {
        let LiveVersion { application, deployment } = version;
        let blueprint = &application.blueprint;
        let host = application.hosts().next().unwrap_or_default();
        let commit = deployment.commit.as_ref().map(CommitHash::as_str).unwrap_or_default();
        let kind = match health {
            Health::Healthy => EventKind::ApplicationRecovered,
            Health::Broken(_) => EventKind::DeploymentFailed,
        };
        self.tools
            .event(Scope::of_record(application.organization_id), kind)
            .with(Fact::Application, &blueprint.name)
            .with(Fact::ApplicationId, application.id)
            .with(Fact::Environment, blueprint.environment.as_str())
            .with(Fact::Host, host)
            .with(Fact::DeploymentId, deployment.id)
            .with(Fact::Commit, commit)
            .with(Fact::RequestedBy, &deployment.requested_by)
            .with(Fact::Reason, health.reason().unwrap_or_default())
    }
}

/// True if `health` is to be recorded in the place of `known`. The reason of a version that is still down
/// stays: the job that could not bring it back knows more than its condition shows.
fn is_news(known: &Health, health: &Health, is_down: bool) -> bool {
    match (known, health) {
        (Health::Broken(known), Health::Broken(_)) if is_down => known.is_empty(),
        _ => known != health,
    }
}

/// The health that the records say `version` has.
fn recorded(version: &LiveVersion) -> Health {
    match version.application.status.state {
        ApplicationState::Failed => Health::Broken(version.deployment.breakdown.clone().unwrap_or_default()),
        _ => Health::Healthy,
    }
}

fn recorded_state_of(version: &LiveVersion, marked: Option<&Health>) -> ApplicationState {
    marked.map_or_else(|| recorded(version).state(), Health::state)
}
