//! Checks the host ports of a run before it is accepted.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use launchway_docker::file_ports;
use launchway_domain::{
    applications::Variables,
    extensions::{
        Action, ComposeAction, ComposeText, DockerAction, ExtensionKey, HostPorts, PortCheck, PortError,
        PortPolicy, PortRefusal, PortRequest, PublishedPort, Values,
    },
    ids::OrganizationId,
};
use uuid::Uuid;

/// Decides by the records of host ports, and asks no engine.
#[derive(Debug)]
pub struct PortAvailability {
    host_ports: Arc<dyn HostPorts>,
    policy: PortPolicy,
    reserved: BTreeSet<u16>,
}

impl PortAvailability {
    /// Decides by `policy`. The ports of `reserved` are Launchway's own.
    pub fn new(
        host_ports: Arc<dyn HostPorts>,
        policy: PortPolicy,
        reserved: impl IntoIterator<Item = u16>,
    ) -> Self {
        Self { host_ports, policy, reserved: reserved.into_iter().collect() }
    }
}

#[async_trait]
impl PortCheck for PortAvailability {
    async fn check(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        actions: &[Action],
        values: &Values,
    ) -> Result<(), PortError> {
        // The step of a run with such values fails, and says why.
        let Ok(variables) = Variables::try_from(values.clone()) else { return Ok(()) };
        let steps: Vec<_> = actions
            .iter()
            .map(|action| published_ports(action, &variables))
            .filter(|wanted| !wanted.is_empty())
            .collect();
        let mut named = steps.iter().flatten().filter_map(|(_, port)| port.host);
        if let Some(port) = named.find(|port| self.reserved.contains(&port.get())) {
            return Err(PortRefusal::Reserved(port.get()).into());
        }
        if steps.is_empty() {
            return Ok(());
        }
        let held = self.host_ports.held(organization, extension).await?;
        let request = |wanted| PortRequest {
            organization,
            extension: extension.clone(),
            // No record is made of it.
            execution: Uuid::nil().into(),
            wanted,
            published: BTreeSet::new(),
            unavailable: self.reserved.clone(),
        };
        let requests: Vec<PortRequest> = steps.into_iter().map(request).collect();
        Ok(self.policy.preview(&requests, &held)?)
    }
}

/// Returns the ports that a step publishes, each with a name of its container.
fn published_ports(action: &Action, variables: &Variables) -> Vec<(String, PublishedPort)> {
    match action {
        Action::Docker(DockerAction::Run(spec)) => {
            spec.ports.iter().map(|port| (spec.name.to_string(), *port)).collect()
        }
        Action::Compose(ComposeAction::Up { file: ComposeText::Inline(text), .. }) => {
            file_ports(text, variables)
        }
        _ => Vec::new(),
    }
}
