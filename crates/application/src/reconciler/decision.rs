//! The decision of the reconciler: desired state × observed state → action, without I/O.

use std::net::IpAddr;

use launchway_domain::deployments::{Condition, ContainerRecord, ContainerState, Exit, LiveVersion};

use crate::{Terms, engine_view::EngineView};

/// The observed containers of a live version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The condition of the container that gets the traffic.
    pub(crate) container: Condition,
    /// True if every other long-running service of its composition is up.
    pub(crate) sidecars_are_up: bool,
}

impl Observed {
    /// Returns the observed state in `view` of the copy `recorded` of `version`.
    pub(crate) fn of(version: &LiveVersion, recorded: &ContainerRecord, view: &EngineView) -> Self {
        let container = view.condition(&recorded.id);
        Self { container, sidecars_are_up: view.sidecars_are_up(&version.deployment) }
    }
}

/// An action that makes the engine match the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The engine matches the record.
    Keep,
    /// Records the current address of the container, and that it is up.
    Record(IpAddr),
    /// Starts stopped containers.
    Resume,
    /// Creates a new container from the image.
    Recreate,
    /// Stops containers that run although the application is stopped.
    Stop,
    /// The engine is about to restart the container.
    Wait,
}

/// Returns the action for the copy `recorded` of `version` in the observed state. A job that runs on the application (`is_busy`)
/// handles its containers itself: only a single container is started concurrently, which is harmless.
pub(crate) fn decide(
    version: &LiveVersion,
    recorded: &ContainerRecord,
    observed: Observed,
    is_busy: bool,
) -> Action {
    let action = match version.application.is_stopped {
        true => decide_stopped(observed),
        false => decide_running(recorded, observed),
    };
    match action {
        Action::Resume if !version.deployment.is_composition() => Action::Resume,
        _ if is_busy => Action::Keep,
        action => action,
    }
}

fn decide_stopped(observed: Observed) -> Action {
    match observed.container {
        Condition::Running { .. } | Condition::Detached | Condition::Paused | Condition::Restarting(_) => {
            Action::Stop
        }
        Condition::Created | Condition::Exited(_) | Condition::Gone => Action::Keep,
    }
}

fn decide_running(recorded: &ContainerRecord, observed: Observed) -> Action {
    match observed.container {
        Condition::Running { .. } if !observed.sidecars_are_up => Action::Resume,
        Condition::Running { address, .. } if is_recorded_at(recorded, address) => Action::Keep,
        Condition::Running { address, .. } => Action::Record(address),
        Condition::Restarting(_) => Action::Wait,
        Condition::Detached | Condition::Paused | Condition::Created | Condition::Exited(_) => Action::Resume,
        Condition::Gone => Action::Recreate,
    }
}

fn is_recorded_at(recorded: &ContainerRecord, address: IpAddr) -> bool {
    (recorded.state, recorded.address) == (ContainerState::Running, Some(address))
}

/// Returns whether `version` has another number of copies than its application wants. Those of a stopped
/// application stay as they are, and only what runs as one container has several.
pub(crate) fn is_scaled(version: &LiveVersion) -> bool {
    let LiveVersion { application, deployment } = version;
    let is_container = deployment.container.is_some() && !deployment.is_composition();
    !is_container
        || application.is_stopped
        || deployment.copies().count() == usize::from(application.blueprint.copies.get())
}

/// Returns the recorded state for `condition`.
pub(crate) fn recorded_state(condition: Condition) -> ContainerState {
    match condition {
        Condition::Running { .. } => ContainerState::Running,
        Condition::Created => ContainerState::Created,
        Condition::Gone => ContainerState::Removed,
        Condition::Detached | Condition::Paused | Condition::Restarting(_) | Condition::Exited(_) => {
            ContainerState::Exited
        }
    }
}

/// Returns a sentence about the reason why a container in this condition does not serve; `None` if it is
/// up.
pub(crate) fn breakdown(condition: Condition, terms: Terms) -> Option<String> {
    let Terms { instance, vanished, .. } = terms;
    Some(match condition {
        Condition::Running { .. } => return None,
        Condition::Detached => format!("the {instance} is not connected to its network"),
        Condition::Paused => format!("the {instance} is paused"),
        Condition::Created => format!("the {instance} was never started"),
        Condition::Restarting(exit) => format!("the {instance} keeps restarting: it {}", ended(exit)),
        Condition::Exited(exit) => format!("the {instance} {}", ended(exit)),
        Condition::Gone => format!("the {instance} {vanished}"),
    })
}

/// Returns a sentence about the problem of a container that should run.
pub(super) fn cause(observed: Observed, terms: Terms) -> String {
    let reason =
        breakdown(observed.container, terms).unwrap_or_else(|| "a sidecar service is not running".to_owned());
    let mut letters = reason.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn ended(exit: Exit) -> String {
    match exit.out_of_memory {
        true => "was killed because it exceeded its memory limit".to_owned(),
        false => format!("exited with code {}", exit.code),
    }
}

#[cfg(test)]
mod tests {
    use launchway_domain::{applications::CopyCount, deployments::ImageName};
    use launchway_testkit::builders::{a_container, a_deployment, an_application};

    use super::*;

    const HERE: [u8; 4] = [10, 0, 0, 7];
    const ELSEWHERE: [u8; 4] = [10, 0, 0, 8];

    const EXIT: Exit = Exit { code: 137, out_of_memory: false, restarts: 0 };

    fn running(address: [u8; 4]) -> Condition {
        Condition::Running { address: address.into(), restarts: 0 }
    }

    /// Decides about the first copy.
    fn decide(version: &LiveVersion, observed: Observed, is_busy: bool) -> Action {
        super::decide(version, version.deployment.container.as_ref().unwrap(), observed, is_busy)
    }

    fn version(is_stopped: bool, is_composition: bool) -> LiveVersion {
        let container = ContainerRecord {
            address: Some(HERE.into()),
            state: ContainerState::Running,
            ..a_container("web")
        };
        let mut live = a_deployment().of(&an_application().build()).run_by(container).live();
        live.application.is_stopped = is_stopped;
        let (application, deployment) = (live.application.id, live.deployment.id);
        live.deployment.image = Some(match (is_composition, "web".parse()) {
            (true, Ok(service)) => ImageName::of_service(application, deployment, &service),
            _ => ImageName::of(application, deployment),
        });
        live
    }

    /// Every observed state of a container, with the action for each desired state: for a container and a
    /// composition that should run, each without and with a running job, and for one that is stopped.
    #[test]
    fn every_pair_of_desired_and_observed_has_its_action() {
        use Action::{Keep, Record, Recreate, Resume, Stop, Wait};
        let moved = Record(ELSEWHERE.into());
        let table = [
            // observed, container, busy, composition, busy, stopped
            (running(HERE), [Keep, Keep, Keep, Keep, Stop]),
            (running(ELSEWHERE), [moved, Keep, moved, Keep, Stop]),
            (Condition::Detached, [Resume, Resume, Resume, Keep, Stop]),
            (Condition::Paused, [Resume, Resume, Resume, Keep, Stop]),
            (Condition::Created, [Resume, Resume, Resume, Keep, Keep]),
            (Condition::Restarting(EXIT), [Wait, Keep, Wait, Keep, Stop]),
            (Condition::Exited(EXIT), [Resume, Resume, Resume, Keep, Keep]),
            (Condition::Gone, [Recreate, Keep, Recreate, Keep, Keep]),
        ];
        for (container, actions) in table {
            let observed = Observed { container, sidecars_are_up: true };
            let decided = [
                decide(&version(false, false), observed, false),
                decide(&version(false, false), observed, true),
                decide(&version(false, true), observed, false),
                decide(&version(false, true), observed, true),
                decide(&version(true, false), observed, false),
            ];
            assert_eq!(decided, actions, "{container:?}");
            assert_eq!(decide(&version(true, false), observed, true), Keep, "{container:?}");
        }
    }

    #[test]
    fn a_composition_with_a_service_down_is_brought_up() {
        let observed = Observed { container: running(HERE), sidecars_are_up: false };
        assert_eq!(decide(&version(false, true), observed, false), Action::Resume);
        assert_eq!(decide(&version(false, true), observed, true), Action::Keep);
    }

    #[test]
    fn a_container_recorded_as_down_is_recorded_as_up_again() {
        let mut version = version(false, false);
        if let Some(container) = &mut version.deployment.container {
            container.state = ContainerState::Exited;
        }
        let observed = Observed { container: running(HERE), sidecars_are_up: true };
        assert_eq!(decide(&version, observed, false), Action::Record(HERE.into()));
    }

    #[test]
    fn a_site_has_nothing_on_the_engine() {
        let mut version = version(false, false);
        version.deployment.container = None;
        assert_eq!(version.deployment.copies().count(), 0);
        version.application.blueprint.copies = CopyCount::try_from(3).unwrap();
        assert!(is_scaled(&version));
    }

    #[test]
    fn another_number_of_copies_is_noticed_unless_it_is_stopped() {
        for (wanted, further, is_stopped, expected) in [
            (1, 0, false, true),
            (3, 0, false, false),
            (3, 2, false, true),
            (1, 2, false, false),
            (3, 0, true, true),
        ] {
            let mut version = version(is_stopped, false);
            version.application.blueprint.copies = CopyCount::try_from(wanted).unwrap();
            version.deployment.further_copies = (0..further).map(|n| a_container(&n.to_string())).collect();
            assert_eq!(is_scaled(&version), expected, "{wanted} wanted, {further} further");
        }
        let mut composition = version(false, true);
        composition.application.blueprint.copies = CopyCount::try_from(3).unwrap();
        assert!(is_scaled(&composition));
    }

    #[test]
    fn every_condition_but_running_has_a_reason() {
        let breakdown = |condition| breakdown(condition, Terms::default());
        assert_eq!(breakdown(running(HERE)), None);
        assert_eq!(breakdown(Condition::Exited(EXIT)).as_deref(), Some("the container exited with code 137"));
        let killed = Exit { out_of_memory: true, ..EXIT };
        for condition in [
            Condition::Detached,
            Condition::Paused,
            Condition::Created,
            Condition::Gone,
            Condition::Restarting(killed),
        ] {
            assert!(breakdown(condition).is_some(), "{condition:?}");
        }
    }
}
