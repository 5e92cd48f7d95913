//! Checks of applications.

use launchway_domain::{
    deployments::{
        Condition, ContainerRecord, DeploymentRepository as _, DiscoveredObject, DiscoveredResource,
        LiveVersion,
    },
    diagnostics::HealthReport,
    homes::{Home, HomeRepository as _},
    nodes::{Node, NodeId, NodeInventory},
    store::StoreError,
};
use launchway_infrastructure::database::Database;

use super::describe;

/// The compositions of other machines, whose containers this machine does not see.
#[derive(Default)]
struct Homes {
    homes: Vec<Home>,
    nodes: Vec<Node>,
    own: Option<NodeId>,
}

/// Checks that the containers of every live version run. Those of a composition are seen on its home only.
pub(super) async fn check(
    database: &Database,
    nodes: Option<&dyn NodeInventory>,
    containers: &[DiscoveredResource],
    report: &mut HealthReport,
) {
    let found = match nodes {
        Some(nodes) => Homes::read(database, nodes).await,
        None => Ok(Homes::default()),
    };
    let (live, homes) = match (database.live().await, found) {
        (Ok(live), Ok(homes)) => (live, homes),
        (Err(error), _) | (_, Err(error)) => return report.fail("applications", describe(&error), ""),
    };
    let (mut running, mut elsewhere, mut down) = (0, 0, 0);
    for version in live.iter().filter(|version| !version.application.is_stopped) {
        let problem = match homes.elsewhere(version) {
            Some(home) => {
                elsewhere += 1;
                homes.problem(home, version.deployment.breakdown.as_deref())
            }
            None => {
                running += 1;
                problem_here(version, containers)
            }
        };
        if let Some(problem) = problem {
            down += 1;
            let name = &version.application.blueprint.name;
            report.fail("application", format!("`{name}`: {problem}"), "see the log of the application");
        }
    }
    if down == 0 {
        let there = match elsewhere {
            0 => String::new(),
            number => format!(", and {number} with a compose file on other machines"),
        };
        report.ok("applications", format!("{running} live versions are running{there}"));
    }
}

/// Returns the reason why a version does not run that this machine sees.
fn problem_here(version: &LiveVersion, containers: &[DiscoveredResource]) -> Option<String> {
    let is_running = |recorded: &ContainerRecord| {
        containers.iter().any(|found| {
            matches!(&found.what, DiscoveredObject::Container { id, condition: Condition::Running { .. }, .. }
                if *id == recorded.id)
        })
    };
    if version.deployment.copies().all(is_running) {
        return None;
    }
    let reason = version.deployment.breakdown.as_deref();
    Some(reason.unwrap_or("its container is not running").to_owned())
}

impl Homes {
    async fn read(database: &Database, nodes: &dyn NodeInventory) -> Result<Self, StoreError> {
        let homes = database.homes().await?;
        // The check of nodes reports a Swarm that does not answer.
        let (all, own) = (nodes.nodes().await.unwrap_or_default(), nodes.own_node().await.ok());
        Ok(Self { homes, nodes: all, own: own.map(|(node, _)| node.id) })
    }

    /// Returns the home of a composition that runs on another machine.
    fn elsewhere(&self, version: &LiveVersion) -> Option<&Home> {
        let home = self.homes.iter().find(|home| home.subject == version.application.id.into())?;
        let is_elsewhere =
            version.deployment.is_composition() && self.own.as_ref() != Some(&home.machine.node);
        is_elsewhere.then_some(home)
    }

    /// Returns the reason why a composition with this home does not run. The server of the home records the breakdown of it.
    fn problem(&self, home: &Home, breakdown: Option<&str>) -> Option<String> {
        let is_lost = |node: &Node| node.id == home.machine.node && !node.is_ready;
        let is_removed = !self.nodes.is_empty() && self.nodes.iter().all(|node| node.id != home.machine.node);
        if is_removed || self.nodes.iter().any(is_lost) {
            let machine = &home.machine.hostname;
            return Some(format!(
                "it runs on machine {machine}, which is not reachable; it starts nowhere else because its volumes are there"
            ));
        }
        breakdown.map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use launchway_domain::{
        homes::Machine,
        ids::{ApplicationId, Ids as _, InstanceId},
        nodes::{NodeAvailability, NodeRole},
    };
    use launchway_infrastructure::clock::TimeOrderedIds;

    use super::*;

    fn node(id: &str, is_ready: bool) -> Node {
        Node {
            id: id.parse().unwrap(),
            hostname: format!("server-{id}"),
            address: None,
            is_ready,
            availability: NodeAvailability::Active,
            role: NodeRole::Manager,
            is_prepared: true,
            version: "20.10".to_owned(),
        }
    }

    fn home(node: &str) -> Home {
        Home {
            subject: ApplicationId::from(TimeOrderedIds.next()).into(),
            server: InstanceId::from(TimeOrderedIds.next()),
            machine: Machine {
                engine: format!("engine-{node}"),
                node: node.parse().unwrap(),
                hostname: format!("server-{node}"),
            },
        }
    }

    #[test]
    fn only_a_lost_home_or_a_breakdown_is_a_problem() {
        let homes = Homes { homes: vec![], nodes: vec![node("1", true), node("2", false)], own: None };
        assert_eq!(homes.problem(&home("1"), None), None);
        assert_eq!(homes.problem(&home("1"), Some("it stopped")), Some("it stopped".to_owned()));
        for lost in ["2", "3"] {
            let problem = homes.problem(&home(lost), None).unwrap();
            assert!(
                problem.starts_with(&format!("it runs on machine server-{lost}, which is not reachable;"))
            );
        }
        assert_eq!(Homes::default().problem(&home("1"), None), None, "the nodes are unknown");
    }
}
