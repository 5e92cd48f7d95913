//! Host ports of containers of extensions: reserved in the records before a container publishes them.

use std::{
    collections::{BTreeSet, HashSet},
    net::{TcpListener, UdpSocket},
    sync::Arc,
};

use launchway_domain::{
    applications::Port,
    deployments::{Output, StepError},
    extensions::{ExtensionKey, HostPort, PortError, PortKey, PortRefusal, PortRequest, PublishedPort, Run},
    ids::OrganizationId,
};

use super::ExtensionObjects;
use crate::forwarded_ports::ForwardedPort;

/// The most ports that are skipped because another program of the host uses them.
const MOST_TRIES: usize = 32;

impl ExtensionObjects {
    /// Reserves the host ports of a step, each with the name of its container, and prints those that were
    /// chosen. Returns them in the order of `wanted`.
    pub(super) async fn hold_ports(
        &self,
        run: &Run,
        wanted: Vec<(String, PublishedPort)>,
        output: &Arc<dyn Output>,
    ) -> Result<Vec<HostPort>, StepError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let reserved = wanted.iter().filter_map(|(_, port)| port.host);
        if let Some(port) = reserved.map(Port::get).find(|port| self.reserved.contains(port)) {
            return Err(StepError::Rejected(PortRefusal::Reserved(port).to_string()));
        }
        let published = self.published(run.organization, &run.extension).await?;
        let mut request = PortRequest {
            organization: run.organization,
            extension: run.extension.clone(),
            execution: run.execution,
            wanted,
            published,
            unavailable: self.reserved.clone(),
        };
        for _ in 0..MOST_TRIES {
            let held = self.host_ports.allocate(self.ports, request.clone()).await.map_err(not_held)?;
            let chosen = request.wanted.iter().zip(&held).filter(|((_, wanted), _)| wanted.host.is_none());
            let chosen: Vec<&HostPort> = chosen.map(|(_, port)| port).collect();
            let is_busy = |port: &&&HostPort| !request.published.contains(&port.key()) && is_busy(port);
            let busy: Vec<u16> = chosen.iter().filter(is_busy).map(|port| port.host.get()).collect();
            if busy.is_empty() {
                for HostPort { host, container, .. } in chosen {
                    let line =
                        format!("Port {} of the container is 127.0.0.1:{}\n", container.get(), host.get());
                    output.write(line.as_bytes()).await;
                }
                return Ok(held);
            }
            request.unavailable.extend(busy);
            self.release_ports(run.organization, &run.extension).await?;
        }
        Err(StepError::Rejected(format!(
            "other programs on this machine use the first {MOST_TRIES} free ports of {}",
            self.ports.range
        )))
    }

    /// Releases the host ports that no container of the extension publishes any more.
    pub async fn release_ports(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
    ) -> Result<(), StepError> {
        let published = self.published(organization, extension).await?;
        let released = self.host_ports.retain(organization, extension, published).await;
        released.map_err(|error| not_held(error.into()))
    }

    /// Returns the host ports of every container of the extension, also of those that are stopped or set
    /// aside, because they may be restored.
    async fn published(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
    ) -> Result<BTreeSet<PortKey>, StepError> {
        let records = self.records(&self.whose(organization, extension).marks()).await?;
        Ok(records.iter().flat_map(ForwardedPort::read_all).map(|port| port.key()).collect())
    }

    /// Chooses a port of this machine for each port of a container, by its name in the steps, that a step routes a host name to,
    /// with none of the ports in `refused`. There are none if the front proxy reaches containers by their addresses.
    pub(super) async fn publish(
        &self,
        run: &Run,
        name: &str,
        refused: &HashSet<u16>,
    ) -> Result<Vec<ForwardedPort>, StepError> {
        let routed = run.routed.iter().filter(|(container, _)| container.as_str() == name);
        let (mut refused, mut chosen) = (refused.clone(), Vec::new());
        for (_, port) in routed {
            let Some(endpoint) = self.engine.choose_endpoint(&refused).await? else { break };
            refused.insert(endpoint.port());
            chosen.push(ForwardedPort::published(endpoint, *port));
        }
        Ok(chosen)
    }
}

/// Returns whether another program of the host uses the port.
fn is_busy(port: &HostPort) -> bool {
    let address = ("127.0.0.1", port.host.get());
    let bound =
        if port.is_udp { UdpSocket::bind(address).map(drop) } else { TcpListener::bind(address).map(drop) };
    bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
}

fn not_held(error: PortError) -> StepError {
    match error {
        PortError::Refused(refusal) => StepError::Rejected(refusal.to_string()),
        PortError::Store(error) => StepError::failed("the records of ports cannot be used", error),
    }
}
