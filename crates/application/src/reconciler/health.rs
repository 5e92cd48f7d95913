//! The health of live versions: each has to be up, stay up and pass its check.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use launchway_domain::{
    applications::{ApplicationState, Health, HealthCheckPath, Write},
    deployments::{Condition, ContainerId, ContainerRecord, LiveVersion, ProbeTarget, ServiceName, Sidecar},
    ids::{DeploymentId, SubjectId},
    logs::Level,
    store::StoreError,
};
use tokio::time::Instant;

use super::{
    CopyKey, Reconciler, ReconcilerLimits, Snapshot, Watched,
    decision::{breakdown, is_scaled},
};
use crate::Terms;

/// The number of consecutive failed checks that make a version unhealthy.
const FAILED_CHECKS: u32 = 3;
/// The number of restarts by the engine from which a container has to prove that it is stable.
const SUSPICIOUS_RESTARTS: usize = 2;

/// The limits beyond which a container counts as unstable.
#[derive(Debug, Clone, Copy)]
pub struct StabilityLimits {
    /// The number of restarts within the window.
    pub restarts: u32,
    /// The window in which restarts are counted.
    pub within: Duration,
    /// The time that it has to stay up to count as stable again.
    pub calm: Duration,
}

impl Default for StabilityLimits {
    fn default() -> Self {
        Self { restarts: 5, within: Duration::from_secs(600), calm: Duration::from_secs(60) }
    }
}

/// The observed health of one live version.
#[derive(Debug, Default)]
pub(super) struct HealthRecord {
    restarts: Restarts,
    /// The restarts of the sidecars.
    sidecars: HashMap<ContainerId, Restarts>,
    /// The health that was recorded since the last scan.
    marked: Option<Health>,
    check: Check,
}

/// The restarts of one container by the engine.
#[derive(Debug, Default)]
struct Restarts {
    /// The last count of the engine.
    count: Option<u32>,
    /// The times at which new restarts were noticed.
    noticed: Vec<Instant>,
}

impl Restarts {
    /// Counts new restarts; returns whether there are any.
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
    /// The path of the newest check: results of another path do not count.
    path: Option<HealthCheckPath>,
    /// True if a check has passed since the container started.
    has_passed: bool,
    /// True if a check has ever passed.
    has_ever_passed: bool,
    /// True if another path was checked before: failures of this one count only after it has passed, as they
    /// say nothing about the version that serves.
    is_changed: bool,
    /// The number of consecutive failed checks, the time of the first, and the reason of the last.
    failures: u32,
    failing_since: Option<Instant>,
    reason: String,
    next: Option<Instant>,
    is_in_progress: bool,
}

impl Check {
    /// Returns whether the version is unhealthy. One that was never seen to pass, as after a restart of the
    /// server, may be starting, which takes up to `start_period`.
    fn has_failed(&self, start_period: Duration, now: Instant) -> bool {
        let is_started = match (self.has_ever_passed, self.is_changed) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => self.failing_since.is_some_and(|since| now - since >= start_period),
        };
        self.failures >= FAILED_CHECKS && is_started
    }
}

impl HealthRecord {
    /// Returns the health of a version whose container is in `condition`; `None` while it is unknown.
    /// Without a condition the engine is unavailable.
    fn assess(
        &mut self,
        condition: Option<Condition>,
        ReconcilerLimits { stability: limits, start_period, .. }: &ReconcilerLimits,
        terms: Terms,
        now: Instant,
    ) -> Option<Health> {
        let Terms { instance, .. } = terms;
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
                return breakdown(down, terms).map(Health::Broken);
            }
        }
        if self.restarts.is_looping(limits) && !is_calm {
            let (times, minutes) = (limits.restarts, limits.within.as_secs().div_ceil(60));
            return Some(Health::Broken(format!(
                "the {instance} keeps restarting: {times} restarts within {minutes} minutes"
            )));
        }
        if self.check.has_failed(*start_period, now) {
            let reason = &self.check.reason;
            return Some(Health::Broken(format!("the {instance} does not pass its check: {reason}")));
        }
        (self.check.has_passed && !is_suspicious).then_some(Health::Healthy)
    }

    /// Returns the services of a composition that became unstable, and the number of their restarts.
    fn assess_sidecars(
        &mut self,
        sidecars: Vec<(Sidecar, Condition)>,
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

    /// Returns whether a check of `path` is due, and begins it.
    fn begin_check(&mut self, path: Option<&HealthCheckPath>, now: Instant) -> bool {
        let check = &mut self.check;
        if check.path.as_ref() != path {
            let is_in_progress = check.is_in_progress;
            let is_changed = check.is_changed || is_in_progress || check.next.is_some();
            *check = Check { path: path.cloned(), is_changed, is_in_progress, ..Check::default() };
        }
        // A version that has not passed a check since its container started is checked at once.
        let is_due = !check.has_passed && check.failures == 0 || check.next.is_none_or(|next| now >= next);
        let is_begun = is_due && !check.is_in_progress;
        check.is_in_progress |= is_begun;
        is_begun
    }

    /// Records the result of a check. Returns whether it changes the health.
    fn end_check(&mut self, result: Result<(), String>, intervals: CheckIntervals, now: Instant) -> bool {
        let check = &mut self.check;
        check.is_in_progress = false;
        match result {
            Ok(()) => {
                let is_change = !check.has_passed || check.failures > 0;
                (check.has_passed, check.has_ever_passed, check.failures) = (true, true, 0);
                check.next = Some(now + intervals.healthy);
                is_change
            }
            Err(reason) => {
                check.failing_since = check.failing_since.filter(|_| check.failures > 0).or(Some(now));
                check.failures += 1;
                check.reason = reason;
                check.next = Some(now + intervals.unhealthy);
                check.failures == FAILED_CHECKS
            }
        }
    }
}

/// The times until the next check of a version.
#[derive(Debug, Clone, Copy)]
struct CheckIntervals {
    healthy: Duration,
    unhealthy: Duration,
}

/// The changes of a round to record.
#[derive(Default)]
struct Changes {
    marks: Vec<(LiveVersion, Health)>,
    lines: Vec<(LiveVersion, String)>,
}

impl Reconciler {
    /// Records the health of every version that should run where it changed, and starts the checks that are
    /// due.
    pub(super) async fn assess_all(self: &Arc<Self>) {
        let snapshot: Arc<Snapshot> = Arc::clone(&self.snapshot.borrow());
        let own = snapshot.live.iter().map(|version| &version.deployment);
        let own = own.filter(|deployment| self.acts_on(&snapshot.homes, deployment));
        let own: HashSet<DeploymentId> = own.map(|deployment| deployment.id).collect();
        // The next leader begins with what it observes itself.
        self.versions().retain(|(deployment, _), _| own.contains(deployment));
        if own.is_empty() {
            return;
        }
        let is_away = self.context.engine.outage().is_some();
        let Changes { marks, lines } = self.assess(&snapshot, &own, is_away);
        for (version, health) in marks {
            self.mark(&version, health).await;
        }
        for (version, text) in lines {
            self.note(&version, Level::Warn, text).await;
        }
    }

    fn assess(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        own: &HashSet<DeploymentId>,
        is_away: bool,
    ) -> Changes {
        let (now, mut changes, mut versions) = (Instant::now(), Changes::default(), self.versions());
        for version in snapshot.running() {
            if version.deployment.container.is_none() || !own.contains(&version.deployment.id) {
                continue;
            }
            // A job that works on it may have stopped it temporarily.
            if snapshot.busy.contains(&SubjectId::from(version.application.id)) {
                continue;
            }
            let (mut healths, mut is_down) = (Vec::with_capacity(1), true);
            for (number, copy) in version.deployment.numbered_copies() {
                let condition = (!is_away).then(|| snapshot.view.condition(&copy.id));
                is_down &= !matches!(condition, Some(Condition::Running { .. }) | None);
                let record = versions.entry((version.deployment.id, number)).or_default();
                let health = record.health.assess(condition, &self.limits, self.context.terms, now);
                if health == Some(Health::Healthy) {
                    record.backoff = super::Backoff::default();
                }
                healths.push(health);
                self.begin_check(version, (number, copy), condition, record, now);
            }
            let record = versions.entry((version.deployment.id, 1)).or_default();
            if let Some(health) = of_all(healths, is_scaled(version)) {
                let known = record.health.marked.clone().unwrap_or_else(|| recorded(version));
                if is_change(&known, &health, is_down) {
                    changes.marks.push((version.clone(), health));
                }
            }
            let sidecars = snapshot.view.sidecars(&version.deployment).into_iter();
            let sidecars = sidecars.map(|one| (snapshot.view.condition(&one.id), one));
            let sidecars = sidecars.map(|(condition, one)| (one, condition)).collect();
            for (service, times) in record.health.assess_sidecars(sidecars, &self.limits.stability, now) {
                let text = format!("The service `{service}` keeps restarting: {times} restarts");
                changes.lines.push((version.clone(), text));
            }
        }
        changes
    }

    /// Starts the check of a copy that is due.
    fn begin_check(
        self: &Arc<Self>,
        version: &LiveVersion,
        (number, copy): (u16, &ContainerRecord),
        condition: Option<Condition>,
        record: &mut Watched,
        now: Instant,
    ) {
        let address = match condition {
            Some(Condition::Running { address, .. }) => Some(address),
            None => copy.address,
            Some(_) => None,
        };
        let Some(address) = address else { return };
        let path = version.application.blueprint.health_check_path.as_ref();
        if record.health.begin_check(path, now) {
            let address = SocketAddr::new(address, copy.port.get());
            self.check((version.deployment.id, number), ProbeTarget { address, path: path.cloned() });
        }
    }

    fn check(self: &Arc<Self>, copy: CopyKey, target: ProbeTarget) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(_place) = Arc::clone(&this.checks).acquire_owned().await else { return };
            let result = this.ports.probe.probe(&target).await;
            let mut versions = this.versions();
            let intervals = CheckIntervals {
                healthy: this.timings.check_interval(versions.len()),
                unhealthy: this.timings.recheck,
            };
            let is_change = versions
                .get_mut(&copy)
                .is_some_and(|watched| watched.health.end_check(result, intervals, Instant::now()));
            drop(versions);
            if is_change {
                this.changed.notify_one();
            }
        });
    }

    /// Resets the marked health: the records were read again, and are authoritative.
    pub(super) fn trust_recorded_health(&self) {
        for watched in self.versions().values_mut() {
            watched.health.marked = None;
        }
    }

    pub(super) async fn mark(&self, version: &LiveVersion, health: Health) {
        let (deployment, at) = (version.deployment.id, self.context.clock.now());
        let writes = vec![Write::SetHealth { deployment, health: health.clone(), at }.into()];
        #[cfg(feature = "notifications")]
        let writes = writes.into_iter().chain(self.announcement(version, &health)).collect();
        match self.commit_about(&version.deployment, writes).await {
            Ok(()) => {}
            // The version was replaced, stopped or deleted in the meantime.
            Err(StoreError::Stale) => return,
            Err(error) => {
                tracing::warn!(%error, deployment.id = %deployment, "health could not be recorded");
                return;
            }
        }
        if let Some(watched) = self.versions().get_mut(&(deployment, 1)) {
            watched.health.marked = Some(health.clone());
        }
        let (level, text) = match &health {
            Health::Healthy => (Level::Info, "The application is healthy again".to_owned()),
            Health::Degraded(reason) => (Level::Warn, format!("The application is degraded: {reason}")),
            Health::Broken(reason) => (Level::Error, format!("The application is unhealthy: {reason}")),
        };
        self.note(version, level, text).await;
    }

    #[cfg(feature = "notifications")]
    pub(super) fn marked(&self, version: DeploymentId) -> Option<Health> {
        self.versions().get(&(version, 1)).and_then(|watched| watched.health.marked.clone())
    }
}

/// Returns the health of a version with these copies: it serves while one of them does. `None` while the health of a
/// copy is unknown that matters, or while copies are missing and the others are healthy.
fn of_all(mut copies: Vec<Option<Health>>, is_scaled: bool) -> Option<Health> {
    if copies.len() == 1 && is_scaled {
        return copies.pop().flatten();
    }
    let count = copies.len();
    let healthy = copies.iter().filter(|copy| **copy == Some(Health::Healthy)).count();
    let reasons = (1..).zip(&copies);
    let mut reasons = reasons.filter_map(|(number, copy): (u16, _)| {
        copy.as_ref().and_then(Health::reason).map(|reason| format!("copy {number}: {reason}"))
    });
    match (healthy, reasons.next()) {
        (0, Some(_)) if copies.iter().any(Option::is_none) => None,
        (0, Some(reason)) => Some(Health::Broken(reason)),
        (_, Some(reason)) => Some(Health::Degraded(format!("{healthy} of {count} copies serve: {reason}"))),
        (_, None) if healthy == count && is_scaled => Some(Health::Healthy),
        (_, None) => None,
    }
}

/// Returns whether `health` replaces `known` in the record. The reason of a version that is still down
/// stays: the job that could not restore it knows more than its condition shows.
fn is_change(known: &Health, health: &Health, is_down: bool) -> bool {
    match (known, health) {
        (Health::Broken(known), Health::Broken(_)) if is_down => known.is_empty(),
        _ => known != health,
    }
}

/// Returns the recorded health of `version`.
pub(super) fn recorded(version: &LiveVersion) -> Health {
    match version.application.status.state {
        ApplicationState::Failed => Health::Broken(version.deployment.breakdown.clone().unwrap_or_default()),
        _ if version.deployment.further_copies.is_empty() && is_scaled(version) => Health::Healthy,
        _ => version.deployment.breakdown.clone().map_or(Health::Healthy, Health::Degraded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healths(copies: &str) -> Vec<Option<Health>> {
        let health = |letter| match letter {
            'h' => Some(Health::Healthy),
            'b' => Some(Health::Broken("down".to_owned())),
            _ => None,
        };
        copies.chars().map(health).collect()
    }

    #[test]
    fn a_version_serves_while_one_of_its_copies_does() {
        let degraded = |text: &str| Some(Health::Degraded(text.to_owned()));
        for (copies, expected) in [
            ("h", Some(Health::Healthy)),
            ("b", Some(Health::Broken("down".to_owned()))),
            ("?", None),
            ("hhh", Some(Health::Healthy)),
            ("hh?", None),
            ("hbh", degraded("2 of 3 copies serve: copy 2: down")),
            ("hb?", degraded("1 of 3 copies serve: copy 2: down")),
            ("bb?", None),
            ("bbb", Some(Health::Broken("copy 1: down".to_owned()))),
        ] {
            assert_eq!(of_all(healths(copies), true), expected, "{copies}");
        }
        assert_eq!(of_all(healths("h"), false), None, "others are missing");
        assert_eq!(of_all(healths("b"), false), Some(Health::Broken("copy 1: down".to_owned())));
    }
}
