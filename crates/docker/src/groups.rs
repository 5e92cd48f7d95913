//! The containers of a composition, which are managed together with the one that gets the traffic.

use launchway_domain::deployments::{Condition, ContainerId, Exit, ServiceName, StepError};
use serde_json::Value;

use super::{
    DockerEngine,
    containers::{condition, is_kept},
    errors::EngineError,
    labels::{self, Label, LabelSet, Role},
};

/// A container of a composition.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) id: ContainerId,
    pub(super) role: Role,
    pub(super) condition: Condition,
    /// True if the engine restarts it when it ends.
    pub(super) is_kept: bool,
    /// The status of its health check: `starting`, `healthy` or `unhealthy`; `None` without a check.
    pub(super) health: Option<String>,
}

impl Member {
    pub(super) fn read(record: &Value) -> Option<Self> {
        Some(Self {
            id: record.get("id")?.as_str()?.parse().ok()?,
            role: Role::read(record.get("labels")?)?,
            condition: condition(record),
            is_kept: is_kept(record),
            health: record
                .get("state")
                .and_then(|state| state.get("Health")?.get("Status")?.as_str())
                .map(str::to_owned),
        })
    }

    pub(super) fn service(&self) -> &ServiceName {
        &self.role.service
    }

    /// Returns its restart policy from now on; `None` when it has completed.
    pub(super) fn policy(&self) -> Option<&str> {
        policy(&self.role, self.condition, self.is_kept)
    }

    /// Returns whether it should run as long as its version does.
    pub(super) fn stays_up(&self) -> bool {
        role_stays_up(&self.role, self.condition, self.is_kept)
    }
}

/// Returns whether a container with these labels should run as long as its version does.
pub(super) fn stays_up(labels: &impl LabelSet, condition: Condition, is_kept: bool) -> bool {
    Role::read(labels).is_none_or(|role| role_stays_up(&role, condition, is_kept))
}

fn role_stays_up(role: &Role, condition: Condition, is_kept: bool) -> bool {
    let is_done = has_succeeded(condition) && role.restart.as_deref().is_some_and(is_on_failure);
    policy(role, condition, is_kept).is_some() && (role.is_web || !is_done)
}

/// A service with a restart policy has not completed when it exits successfully: a user or the engine
/// stopped it.
fn policy(role: &Role, condition: Condition, is_kept: bool) -> Option<&str> {
    let is_done = has_succeeded(condition) && !is_kept;
    match role.restart.as_deref() {
        _ if role.is_web => Some("unless-stopped"),
        // A container that a user stops has to stay stopped, also after a reboot.
        Some("always") => Some("unless-stopped"),
        None => (!is_done).then_some("unless-stopped"),
        Some("no") => None,
        policy => policy,
    }
}

fn has_succeeded(condition: Condition) -> bool {
    matches!(condition, Condition::Exited(Exit { code: 0, .. }))
}

fn is_on_failure(policy: &str) -> bool {
    policy.starts_with("on-failure")
}

impl DockerEngine {
    /// Returns the containers of this one's composition, in the order of starting; none when it belongs to
    /// no composition.
    pub(super) async fn group(&self, container: &ContainerId) -> Result<Vec<Member>, StepError> {
        let Some(record) = self.record(container).await? else { return Ok(Vec::new()) };
        let its = record.get("labels").unwrap_or(&Value::Null);
        let Some(owner) = labels::owner(its).filter(|_| Role::read(its).is_some()) else {
            return Ok(Vec::new());
        };
        self.members(&labels::of(self.options.instance, &owner)).await
    }

    /// Returns the containers of compositions with all of these labels, in the order of starting.
    pub(super) async fn members(&self, labels: &[Label]) -> Result<Vec<Member>, StepError> {
        let found = self.docker.containers(labels).await.map_err(EngineError::or_fault)?;
        let records = self.docker.inspect(&found).await.map_err(EngineError::or_fault)?;
        let mut members: Vec<Member> = records.iter().filter_map(Member::read).collect();
        members.sort_by_key(|member| member.role.place);
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_policies_follow_the_file_except_for_completed_tasks() {
        let running = Condition::Running { address: [10, 0, 0, 1].into(), restarts: 0 };
        let exited = |code| Condition::Exited(Exit { code, out_of_memory: false, restarts: 0 });
        for (restart, is_web, condition, policy) in [
            (None, false, running, Some("unless-stopped")),
            (None, false, exited(1), Some("unless-stopped")),
            (None, false, exited(0), None),
            (Some("always"), false, exited(0), Some("unless-stopped")),
            (Some("on-failure:3"), false, running, Some("on-failure:3")),
            (Some("no"), false, running, None),
            (Some("no"), true, running, Some("unless-stopped")),
        ] {
            let role = Role {
                service: "db".parse().unwrap(),
                place: 0,
                restart: restart.map(str::to_owned),
                is_web,
            };
            let id = "a".repeat(64).parse().unwrap();
            let member = Member { id, role, condition, is_kept: false, health: None };
            assert_eq!(member.policy(), policy, "{restart:?}");
        }
    }

    #[test]
    fn a_service_that_somebody_stopped_is_to_be_up() {
        let exited = |code| Condition::Exited(Exit { code, out_of_memory: false, restarts: 0 });
        for (restart, condition, is_kept, expected) in [
            (None, exited(0), true, true),
            (None, exited(0), false, false),
            (None, exited(137), true, true),
            (Some("on-failure"), exited(0), true, false),
            (Some("on-failure:3"), exited(1), true, true),
            (Some("no"), exited(1), false, false),
        ] {
            let restart = restart.map(str::to_owned);
            let role = Role { service: "db".parse().unwrap(), place: 0, restart, is_web: false };
            assert_eq!(role_stays_up(&role, condition, is_kept), expected, "{role:?} {condition:?}");
        }
    }
}
