//! `launchway node` and `launchway nodes`: the machines of a Docker Swarm.

mod prepare;

use std::{
    error::Error,
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use launchway_domain::nodes::{Node, NodeAvailability, NodeInventory as _};
use launchway_infrastructure::{data_dir::DataDir, docker::swarm::SwarmEngine};

pub(crate) use self::prepare::{bridge_address, has_input_rule, prepare};
use crate::{
    assembly::{self, Tables, runtime},
    cli,
    config::Config,
    engine::Engine,
    installation::Installation,
    print_line,
};

/// The time that the applications of a node get to start elsewhere.
const DRAINED_WITHIN: Duration = Duration::from_secs(15 * 60);
/// The interval between two looks at a node that is drained.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const NO_SWARM: &str = "there are nodes only with LAUNCHWAY_ENGINE=swarm";

/// Prints the nodes.
pub(crate) fn list(config: &Config) -> Result<(), Box<dyn Error>> {
    let nodes =
        runtime()?.block_on(async { Ok::<_, Box<dyn Error>>(swarm(config).await?.nodes().await?) })?;
    let width = nodes.iter().map(|node| node.hostname.len()).max().unwrap_or_default().max("NAME".len());
    let mut text =
        format!("{:width$}  {:15}  {:9}  {:7}  APPLICATIONS\n", "NAME", "ADDRESS", "STATE", "ROLE");
    for node in &nodes {
        let address = node.address.map(|address| address.to_string()).unwrap_or_default();
        let state = if node.is_ready { node.availability.as_str() } else { "down" };
        let role = node.role.as_str();
        let takes = if node.takes_containers() { "yes" } else { "no" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:width$}  {address:15}  {state:9}  {role:7}  {takes}", node.hostname);
    }
    cli::print(&text)
}

/// Lets applications run on a node.
pub(crate) fn activate(config: &Config, name: &str) -> Result<(), Box<dyn Error>> {
    runtime()?.block_on(async {
        let swarm = swarm(config).await?;
        let node = find(&swarm, name).await?;
        swarm.allow_applications(&node.id).await?;
        swarm.set_availability(&node.id, NodeAvailability::Active).await?;
        print_line(&format!("applications may run on {name}"));
        Ok(())
    })
}

/// Moves every application away from a node: each is started elsewhere, checked and routed to before its container on the
/// node is stopped.
pub(crate) fn drain(config: &Config, name: &str) -> Result<(), Box<dyn Error>> {
    let (node, applications) = runtime()?.block_on(async {
        let swarm = swarm(config).await?;
        let node = find(&swarm, name).await?;
        require_another(&swarm, &node).await?;
        swarm.set_availability(&node.id, NodeAvailability::Pause).await?;
        let applications = swarm.applications_on(&node.id).await?;
        Ok::<_, Box<dyn Error>>((node, applications.into_iter().collect::<Vec<_>>()))
    })?;
    let restarted = assembly::offline(config, Tables::MustBeThere, async |services| {
        services.applications.restart_for_maintenance(&applications).await
    })?;
    print_line(&format!("{restarted} applications are moved away from {name}"));
    runtime()?.block_on(async {
        let swarm = swarm(config).await?;
        let began = Instant::now();
        loop {
            let left = swarm.applications_on(&node.id).await?;
            if left.is_empty() {
                break;
            }
            if began.elapsed() >= DRAINED_WITHIN {
                let left: Vec<String> = left.iter().map(|(_, application)| application.to_string()).collect();
                return Err(format!(
                    "these applications are still on {name}: {}. See their logs, and run this command again; no other \
                     application is started there meanwhile",
                    left.join(", ")
                )
                .into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        swarm.set_availability(&node.id, NodeAvailability::Drain).await?;
        print_line(&format!("{name} is drained; `launchway node activate {name}` ends that"));
        Ok(())
    })
}

/// Returns the Swarm of the installation.
async fn swarm(config: &Config) -> Result<Arc<SwarmEngine>, Box<dyn Error>> {
    if config.deployments.swarm.is_none() {
        return Err(NO_SWARM.into());
    }
    let data = DataDir::open(&config.data_dir)?;
    let installation = Installation::open(config, &data, Tables::LeaveAsTheyAre, false).await?;
    let engine = Engine::new(config, installation.id);
    installation.database.close().await;
    engine.swarm().cloned().ok_or_else(|| NO_SWARM.into())
}

async fn find(swarm: &SwarmEngine, name: &str) -> Result<Node, Box<dyn Error>> {
    let nodes = swarm.nodes().await?;
    let mut found = nodes.into_iter().filter(|node| node.hostname == name || node.id.as_str() == name);
    match (found.next(), found.next()) {
        (Some(node), None) => Ok(node),
        (Some(_), Some(_)) => {
            Err(format!("several nodes are called `{name}`: use an id of `docker node ls`").into())
        }
        (None, _) => Err(format!("there is no node `{name}`: see `launchway nodes`").into()),
    }
}

/// Fails if the applications of `node` could not be started anywhere else.
async fn require_another(swarm: &SwarmEngine, node: &Node) -> Result<(), Box<dyn Error>> {
    let nodes = swarm.nodes().await?;
    if nodes.iter().any(|other| other.id != node.id && other.takes_containers()) {
        return Ok(());
    }
    Err(format!("no other node can take the applications of {}: see `launchway nodes`", node.hostname).into())
}
