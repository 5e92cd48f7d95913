//! `launchway node` and `launchway nodes`: the machines of a Docker Swarm.

mod packet_filter;
mod prepare;

use std::{
    error::Error,
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use launchway_domain::{
    homes::{Home, HomeRepository as _},
    nodes::{Node, NodeAvailability, NodeInventory as _},
    replicas::ReplicaRegistry as _,
};
use launchway_infrastructure::{data_dir::DataDir, database::Database, docker::swarm::SwarmEngine};

pub(crate) use self::{
    packet_filter::{PacketFilter, packet_filter},
    prepare::{bridge_address, prepare},
};
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
/// node is stopped. What may not run elsewhere stays.
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
        if is_home(config, &node).await? {
            // Draining it would disconnect their containers from the networks of the Swarm.
            print_line(&format!(
                "{name} is paused instead of drained: applications with a compose file, or extensions, have their volumes \
                 there. They keep running until the machine or its Docker is restarted, and are down from then on: a \
                 paused machine attaches no containers to the networks of the Swarm. `launchway node activate {name}` \
                 ends that"
            ));
            return Ok(());
        }
        swarm.set_availability(&node.id, NodeAvailability::Drain).await?;
        print_line(&format!("{name} is drained; `launchway node activate {name}` ends that"));
        Ok(())
    })
}

/// Returns whether something runs on a node that may not run elsewhere.
async fn is_home(config: &Config, node: &Node) -> Result<bool, Box<dyn Error>> {
    let data = DataDir::open(&config.data_dir)?;
    let installation = Installation::open(config, &data, Tables::LeaveAsTheyAre, false).await?;
    let homes = installation.database.homes().await;
    installation.database.close().await;
    Ok(homes?.iter().any(|home| home.machine.node == node.id))
}

/// Deletes the homes on a machine that does not come back: what had them gets another one by its next deployment or run.
pub(crate) fn forget(config: &Config, name: &str) -> Result<(), Box<dyn Error>> {
    runtime()?.block_on(async {
        let data = DataDir::open(&config.data_dir)?;
        let installation = Installation::open(config, &data, Tables::LeaveAsTheyAre, false).await?;
        let nodes = match Engine::new(config, installation.id).nodes() {
            Some(nodes) => nodes.nodes().await?,
            None => Vec::new(),
        };
        let forgotten = forget_homes(&installation.database, &nodes, name).await;
        installation.database.close().await;
        let forgotten = forgotten?;
        print_line(&format!(
            "forgot {} applications and extensions of {name}: the next deployment or run of each starts it on another machine, \
             with empty volumes",
            forgotten.len()
        ));
        Ok(())
    })
}

async fn forget_homes(database: &Database, nodes: &[Node], name: &str) -> Result<Vec<Home>, Box<dyn Error>> {
    let homes = database.homes().await?;
    let is_named = |home: &&Home| home.machine.hostname == name || home.machine.node.as_str() == name;
    let homes: Vec<&Home> = homes.iter().filter(is_named).collect();
    let Some(home) = homes.first() else {
        return Err(format!(
            "no application with a compose file and no extension has its volumes on `{name}`"
        )
        .into());
    };
    if homes.iter().any(|other| other.machine.node != home.machine.node) {
        return Err(format!("several machines are called `{name}`: use an id of `docker node ls`").into());
    }
    if nodes.iter().any(|node| node.is_ready && node.id == home.machine.node) {
        return Err(
            format!("{name} is reachable, and so are the volumes there: see `launchway nodes`").into()
        );
    }
    let replicas = database.replicas().await?;
    if replicas.iter().any(|one| one.is_alive && homes.iter().any(|home| home.server == one.replica.id)) {
        return Err(
            format!("the server of {name} is running, or was until a minute ago: stop it first").into()
        );
    }
    Ok(database.forget_node(&home.machine.node).await?)
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
