//! The rounds: one fault each, at a random time of the tenants' activity.

use std::{
    net::Ipv4Addr,
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::docker::docker;

use super::recovery::{Expected, Recovery};
use crate::{
    engine::{Engine, EngineEnd},
    rng::Rng,
    tenants::Tenants,
};

/// The time that a deployment gets to reach the state in which the engine ends.
const REACHED: Duration = Duration::from_secs(30);
/// The time for which the front proxy serves alone after addresses may have moved.
const ALONE: Duration = Duration::from_millis(1500);

/// The activity around the end of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Idle,
    /// An image of one application is being built.
    Build,
    /// A new version of one application starts and gets its traffic.
    Switch,
    /// One application is being stopped.
    Stop,
    /// One application is being deleted; it is created again afterwards.
    Delete,
    /// The server is stopped, and started after the engine.
    ServerStopped,
}

/// A change of one container without the server's knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intervention {
    Kill,
    Stop,
    Pause,
    Remove,
    Disconnect,
}

pub(crate) const MOMENTS: [Moment; 6] =
    [Moment::Build, Moment::ServerStopped, Moment::Stop, Moment::Switch, Moment::Delete, Moment::Idle];

pub(crate) const INTERVENTIONS: [Intervention; 5] = [
    Intervention::Kill,
    Intervention::Stop,
    Intervention::Pause,
    Intervention::Remove,
    Intervention::Disconnect,
];

/// The state of the rounds.
pub(crate) struct Rounds {
    pub(crate) engine: Engine,
    pub(crate) tenants: Tenants,
    pub(crate) recovery: Recovery,
    pub(crate) rng: Rng,
}

impl Rounds {
    /// Stops the engine during an activity, starts it again, and compares.
    pub(crate) fn end_engine(&mut self, number: usize, end: EngineEnd, moment: Moment) {
        let name = format!("round {number}, {end:?} at {moment:?}");
        let position = self.rng.below(self.tenants.applications.len());
        let mut expected = vec![Expected::Running; self.tenants.applications.len()];
        expected[position] = self.begin(moment, position);
        if moment == Moment::ServerStopped {
            self.tenants.harness.server.terminate();
        }
        self.engine.end(end);
        sleep(self.rng.millis(1, 1000));
        self.engine.start_again();
        if moment == Moment::ServerStopped {
            sleep(self.rng.millis(500, 1500));
            self.tenants.start_server();
        }
        self.recovery.measure(&name, &mut self.tenants, &expected);
        self.undo(expected[position], position);
    }

    /// Intervenes on the container of each application in turn, and compares.
    pub(crate) fn intervene(&mut self, number: usize, interventions: &[Intervention]) {
        let offset = self.rng.below(self.tenants.applications.len());
        let count = self.tenants.applications.len();
        for (step, intervention) in interventions.iter().enumerate() {
            let position = (offset + step) % count;
            let application = &self.tenants.applications[position].id;
            for container in containers(&self.tenants, "launchway.application", application, 1) {
                intervention.carry_out(&container);
            }
        }
        let name = format!("intervention {number}, {interventions:?}");
        self.recovery.measure(&name, &mut self.tenants, &vec![Expected::Running; count]);
    }

    /// Stops all containers of an organization while the server is stopped, and starts them in the
    /// reverse order of their addresses: an engine that chooses addresses exchanges them.
    pub(crate) fn exchange_addresses(&mut self, number: usize, organization: usize) {
        exchange_addresses(&mut self.tenants, organization);
        self.tenants.start_server();
        let expected = vec![Expected::Running; self.tenants.applications.len()];
        let name = format!("exchange of addresses {number}");
        self.recovery.measure(&name, &mut self.tenants, &expected);
    }

    /// Begins the activity; returns the state that the application should have afterwards.
    fn begin(&mut self, moment: Moment, position: usize) -> Expected {
        let tenants = &mut self.tenants;
        let state = match moment {
            Moment::Idle | Moment::ServerStopped => {
                sleep(self.rng.millis(1, 500));
                return Expected::Running;
            }
            Moment::Stop => {
                let accepted = tenants.operate(position, "stop").is_some();
                sleep(self.rng.millis(1, 400));
                return if accepted { Expected::Stopped } else { Expected::Running };
            }
            Moment::Delete => {
                let accepted = tenants.delete(position).is_some();
                sleep(self.rng.millis(1, 400));
                return if accepted { Expected::Deleted } else { Expected::Running };
            }
            Moment::Build => "building",
            Moment::Switch => "deploying",
        };
        if let Some(deployment) = tenants.deploy(position) {
            let _has_ended = tenants.reaches(position, &deployment, state, REACHED);
            sleep(self.rng.millis(1, 700));
        }
        Expected::Running
    }

    /// Starts the application again for the next round.
    fn undo(&mut self, expected: Expected, position: usize) {
        let _accepted = match expected {
            Expected::Running => return,
            Expected::Stopped => self.tenants.operate(position, "restart").is_some(),
            Expected::Deleted => self.tenants.create(position).is_some(),
        };
        self.recovery.wait_for(&mut self.tenants, position);
    }
}

/// The procedure of [`Rounds::exchange_addresses`] up to the start of the server.
pub(crate) fn exchange_addresses(tenants: &mut Tenants, organization: usize) {
    let count = tenants.applications.iter().filter(|each| each.organization == organization).count();
    let id = tenants.organization(organization);
    let containers = containers(tenants, "launchway.organization", id, count);
    let mut by_address: Vec<_> = containers.into_iter().map(|id| (address(&id), id)).collect();
    by_address.sort_unstable();
    tenants.harness.server.terminate();
    let each: Vec<&str> = by_address.iter().map(|(_, id)| id.as_str()).collect();
    docker(&[&["stop"], each.as_slice()].concat());
    for container in each.iter().rev() {
        docker(&["start", container]);
    }
    sleep(ALONE);
}

/// The containers of an installation with that label, once there are no more than `count`: old versions
/// may still end.
fn containers(tenants: &Tenants, label: &str, value: &str, count: usize) -> Vec<String> {
    let filters = [("launchway.instance", tenants.harness.instance()), (label, value)];
    let filters = filters.map(|(label, value)| format!("label={label}={value}"));
    let started = Instant::now();
    loop {
        let listed =
            docker(&["ps", "--quiet", "--no-trunc", "--filter", &filters[0], "--filter", &filters[1]]);
        let listed: Vec<_> = listed.lines().map(str::to_owned).collect();
        if listed.len() <= count || started.elapsed() > REACHED {
            return listed;
        }
        sleep(Duration::from_millis(100));
    }
}

/// The address of a container, as a number, so that it can be ordered.
fn address(container: &str) -> u32 {
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let shown = docker(&["container", "inspect", "--format", format, container]);
    shown.parse::<Ipv4Addr>().expect("a running container has an address").into()
}

impl Intervention {
    fn carry_out(self, container: &str) {
        match self {
            Self::Kill => docker(&["kill", container]),
            Self::Stop => docker(&["stop", container]),
            Self::Pause => docker(&["pause", container]),
            Self::Remove => docker(&["rm", "--force", container]),
            Self::Disconnect => {
                let format = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}";
                let network = docker(&["container", "inspect", "--format", format, container]);
                docker(&["network", "disconnect", "--force", &network, container])
            }
        };
    }
}
