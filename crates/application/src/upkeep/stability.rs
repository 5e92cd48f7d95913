//! Noticing live versions that do not stay up.

use std::{collections::HashMap, time::Duration};

use launchway_domain::{
    applications::{ApplicationState, Write},
    deployments::{CommitHash, Condition, ContainerId, Found, LiveVersion},
    logs::Level,
    notifications::{Event, EventKind, Fact, Write as Announcement},
    organizations::Scope,
};
use tokio::time::Instant;

use super::{Upkeep, records::conditions_of};
use crate::companions::companions_of;

/// When a version is taken for one that does not stay up.
#[derive(Debug, Clone, Copy)]
pub struct StabilityLimits {
    /// So many restarts …
    pub restarts: u32,
    /// … within this time.
    pub within: Duration,
    /// How long it has to stay up to be trusted again.
    pub calm: Duration,
}

impl Default for StabilityLimits {
    fn default() -> Self {
        Self { restarts: 5, within: Duration::from_secs(600), calm: Duration::from_secs(60) }
    }
}

/// What was seen of each container.
#[derive(Default)]
pub(super) struct Stability {
    /// Those that get the traffic.
    containers: HashMap<ContainerId, Seen>,
    /// Those beside them.
    companions: HashMap<ContainerId, Seen>,
}

struct Seen {
    restarts: u32,
    /// When each of the newest restarts was noticed.
    noticed: Vec<Instant>,
}

impl Seen {
    fn first(condition: Condition) -> Self {
        Self { restarts: restarts(condition), noticed: Vec::new() }
    }
}

fn restarts(condition: Condition) -> u32 {
    match condition {
        Condition::Running { restarts, .. } | Condition::Exited { restarts, .. } => restarts,
        Condition::Gone => 0,
    }
}

impl Upkeep {
    /// Marks the applications whose live version keeps ending, and those that are well again.
    pub(super) async fn check_stability(
        &self,
        stability: &mut Stability,
        live: &[&LiveVersion],
        conditions: &HashMap<ContainerId, Condition>,
    ) {
        let mut known = std::mem::take(&mut stability.containers);
        for version in live {
            let Some(container) = &version.deployment.container else { continue };
            let condition = conditions.get(&container.id).copied().unwrap_or(Condition::Gone);
            let seen = known.remove(&container.id);
            let seen = self.look_at(version, condition, seen).await;
            stability.containers.insert(container.id.clone(), seen);
        }
    }

    /// Tells of services beside a live version that keep ending.
    pub(super) async fn check_companions(
        &self,
        stability: &mut Stability,
        live: &[&LiveVersion],
        found: &[Found],
    ) {
        let conditions = conditions_of(found);
        let mut known = std::mem::take(&mut stability.companions);
        for version in live {
            for companion in companions_of(&version.deployment, found) {
                let condition = conditions.get(&companion.id).copied().unwrap_or(Condition::Gone);
                let mut seen = known.remove(&companion.id).unwrap_or_else(|| Seen::first(condition));
                let was_looping = self.is_looping(&seen);
                self.notice(&mut seen, condition);
                if self.is_looping(&seen) && !was_looping {
                    let (service, times) = (&companion.service, seen.noticed.len());
                    let text = format!(
                        "The service `{service}` does not stay up: it was started again {times} times"
                    );
                    self.note(version, Level::Warn, text).await;
                }
                stability.companions.insert(companion.id, seen);
            }
        }
    }

    /// Remembers the restarts that are new.
    fn notice(&self, seen: &mut Seen, condition: Condition) {
        let (now, restarts) = (Instant::now(), restarts(condition));
        let more = restarts.saturating_sub(seen.restarts).min(self.limits.stability.restarts);
        seen.noticed.extend((0..more).map(|_| now));
        seen.noticed.retain(|noticed| now - *noticed < self.limits.stability.within);
        seen.restarts = restarts;
    }

    fn is_looping(&self, seen: &Seen) -> bool {
        seen.noticed.len() >= self.limits.stability.restarts as usize
    }

    async fn look_at(&self, version: &LiveVersion, condition: Condition, seen: Option<Seen>) -> Seen {
        let now = Instant::now();
        let mut seen = seen.unwrap_or_else(|| Seen::first(condition));
        self.notice(&mut seen, condition);
        let is_marked = version.application.status.state == ApplicationState::Failed;
        let is_looping = self.is_looping(&seen);
        let is_calm = seen.noticed.last().is_none_or(|last| now - *last >= self.limits.stability.calm);
        match condition {
            Condition::Gone if !is_marked => {
                self.mark(version, false, "The container is gone: deploy again to get a new one".to_owned())
                    .await;
            }
            Condition::Running { .. } | Condition::Exited { .. } if is_looping && !is_calm && !is_marked => {
                let text = format!(
                    "The container does not stay up: it was started again {} times",
                    seen.noticed.len()
                );
                self.mark(version, false, text).await;
            }
            Condition::Running { .. } if is_calm && is_marked => {
                seen.noticed.clear();
                self.mark(version, true, "The container stays up again".to_owned()).await;
            }
            _ => {}
        }
        seen
    }

    /// A version may have been replaced, stopped or deleted since the round began, and its container
    /// removed for that.
    pub(super) async fn is_still_live(&self, version: &LiveVersion) -> bool {
        match self.ports.deployments.live().await {
            Ok(live) => live
                .iter()
                .any(|other| other.deployment.id == version.deployment.id && !other.application.is_stopped),
            Err(error) => {
                tracing::warn!(%error, "live versions could not be looked for");
                false
            }
        }
    }

    async fn mark(&self, version: &LiveVersion, is_stable: bool, text: String) {
        if !self.is_still_live(version).await {
            return;
        }
        let at = self.tools.clock.now();
        let mut writes = vec![Write::SetStable { deployment: version.deployment.id, is_stable, at }.into()];
        if !is_stable {
            writes.push(Announcement::Announce(self.broken_down(version, &text)).into());
        }
        match self.tools.store.commit(writes).await {
            Ok(()) => self.note(version, if is_stable { Level::Info } else { Level::Error }, text).await,
            Err(error) => {
                tracing::warn!(%error, deployment.id = %version.deployment.id, "a state could not be kept")
            }
        }
    }

    /// A version that was deployed serves no more.
    fn broken_down(&self, version: &LiveVersion, reason: &str) -> Event {
        let LiveVersion { application, deployment } = version;
        let blueprint = &application.blueprint;
        let host = application.hosts().next().unwrap_or_default();
        let commit = deployment.commit.as_ref().map(CommitHash::as_str).unwrap_or_default();
        self.tools
            .event(Scope::of_record(application.organization_id), EventKind::DeploymentFailed)
            .with(Fact::Application, &blueprint.name)
            .with(Fact::ApplicationId, application.id)
            .with(Fact::Environment, blueprint.environment.as_str())
            .with(Fact::Host, host)
            .with(Fact::DeploymentId, deployment.id)
            .with(Fact::Commit, commit)
            .with(Fact::RequestedBy, &deployment.requested_by)
            .with(Fact::Reason, reason)
    }
}
