//! The containers of each organization try every address of the other one.

use std::thread::scope;

use launchway_testkit::swarm::{LocalContainer, SwarmLab};

use super::{NODES, installation::Installation};
use crate::{section::Section, visitor::application_in};

/// The port at which the programs in the containers listen.
const PORT: u16 = 8080;
/// An application with a copy on two machines, in each of the organizations.
const PAIR: [usize; 2] = [1, 4];

/// The result of the tries from one container.
#[derive(Default)]
struct Tried {
    addresses: usize,
    reached: usize,
    itself: usize,
}

/// Tries each address of one application from the containers of another organization, and the other way round.
pub(super) fn try_each_other(section: &mut Section, installation: &Installation) {
    let lab = &installation.lab;
    let mut all = Tried::default();
    for (from, to) in [(PAIR[0], PAIR[1]), (PAIR[1], PAIR[0])] {
        let own = installation.applications[from].name.as_str();
        let targets = &lab.addresses_of(NODES, &installation.applications[to].deployment, PORT);
        let containers = lab.containers_of(NODES, &installation.applications[from].deployment);
        let tried: Vec<Tried> = scope(|scope| {
            let each =
                containers.iter().map(|container| scope.spawn(|| try_from(lab, container, targets, own)));
            let threads: Vec<_> = each.collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread that only asks")).collect()
        });
        for one in tried {
            all.addresses += one.addresses;
            all.reached += one.reached;
            all.itself += one.itself;
        }
    }
    let Tried { addresses: tried, reached, itself } = all;
    section.note("addresses and ports of an organization, tried from containers of the other one", tried);
    section.never("of them reached", reached);
    section.control("containers that reached themselves in the same way", itself);

    // Without its rule, a container reaches ports of the other machines.
    let [from, to] = PAIR.map(|position| &installation.applications[position]);
    let containers = lab.containers_of(NODES, &from.deployment);
    let container = containers.first().expect("it runs");
    lab.flush_rules(container.node);
    let targets = lab.addresses_of(NODES, &to.deployment, PORT);
    let answers = targets.iter().map(|target| lab.fetch_from(container, target));
    let open = answers.filter(|answer| application_in(answer) == Some(to.name.as_str())).count();
    section.control("addresses that are reached without the rule of the packet filter", open);
    let prepared = lab.prepare(container.node);
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
}

/// Tries addresses from a container of the application `own`. The machines use the same addresses for the bridges of their
/// containers, so that it may answer itself at one of them.
fn try_from(lab: &SwarmLab, container: &LocalContainer, targets: &[String], own: &str) -> Tried {
    let answer = lab.fetch_from(container, &format!("127.0.0.1:{PORT}"));
    let itself = usize::from(application_in(&answer) == Some(own));
    let is_reached = |target: &&String| {
        let answer = lab.fetch_from(container, target);
        let is_foreign = !answer.is_empty() && application_in(&answer) != Some(own);
        if is_foreign {
            eprintln!("  {target} answered a container of {own}: {answer}");
        }
        is_foreign
    };
    Tried { addresses: targets.len(), reached: targets.iter().filter(is_reached).count(), itself }
}
