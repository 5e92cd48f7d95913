//! The events of versions that become unhealthy or recover.

use launchway_domain::{
    applications::Health,
    deployments::{CommitHash, LiveVersion},
    notifications::{Event, EventKind, Fact, Write},
    organizations::Scope,
    store,
};

use super::{Reconciler, health::recorded};

impl Reconciler {
    /// Announces changes of the health of versions.
    #[must_use]
    pub fn with_announcements(self) -> Self {
        Self { announces: true, ..self }
    }

    /// Returns the write that announces a change from the recorded health; `None` without a change.
    pub(super) fn announcement(&self, version: &LiveVersion, health: &Health) -> Option<store::Write> {
        let known = self.marked(version.deployment.id).unwrap_or_else(|| recorded(version));
        let is_announced = self.announces && health.state() != known.state();
        is_announced.then(|| Write::Announce(self.event(version, health)).into())
    }

    /// Returns the event that a version became unhealthy or recovered.
    fn event(&self, version: &LiveVersion, health: &Health) -> Event {
        let LiveVersion { application, deployment } = version;
        let blueprint = &application.blueprint;
        let host = application.hosts().next().unwrap_or_default();
        let commit = deployment.commit.as_ref().map(CommitHash::as_str).unwrap_or_default();
        let kind = match health {
            Health::Healthy | Health::Degraded(_) => EventKind::ApplicationRecovered,
            Health::Broken(_) => EventKind::DeploymentFailed,
        };
        self.context
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
