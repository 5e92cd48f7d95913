//! Stop and remove jobs.

use launchway_domain::{
    applications::{Application, Write as ApplicationWrite},
    audit::{Action, Resource},
    deployments::{
        Condition, ContainerRecord, ContainerState, DeploymentState, DiscoveredObject, DiscoveredResource,
        ImageName, Write,
    },
    jobs::{JobKind, Outcome, Write as JobWrite},
    store,
};
use launchway_testkit::{
    builders::{a_container, a_deployment, an_application, an_entry},
    clock::{NEW_YEAR, moment},
};

use super::{application, carried_out, live, next};
use crate::{
    applications::scope,
    audit_log::audited,
    world::{a_container_of, a_job, an_image_size},
};

fn ended(what: &str) -> store::Write {
    let entry = an_entry()
        .by_launchway()
        .of(Action::Update, Resource::Deployment, live().id)
        .with_message(&format!("{what} the application `web` (production)"))
        .with("application_id", application().id);
    audited(1, entry)
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_meets_a_fault_is_tried_again() {
    for (kind, call) in [
        (JobKind::Restart, "containers"),
        (JobKind::Restart, "start"),
        (JobKind::Restart, "switch"),
        (JobKind::Restart, "keep"),
        (JobKind::Reconcile, "containers"),
        (JobKind::Reconcile, "start"),
        (JobKind::Reconcile, "switch"),
        (JobKind::Reconcile, "keep"),
        (JobKind::Stop, "switch"),
        (JobKind::Stop, "stop"),
        (JobKind::Remove, "withdraw"),
        (JobKind::Remove, "everything"),
        (JobKind::Remove, "remove the sites"),
    ] {
        let world = carried_out(kind, |state| state.fault(call, 1)).await;

        assert_eq!(world.journal_of("retry"), [format!("retry in 5 s ({call} does not answer)")]);
        assert_eq!(world.journal().last().map(String::as_str), Some("commit: follow"));
        assert!(world.journal_of("discard").is_empty(), "only a deployment leaves something");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_withdraws_traffic_first_and_keeps_the_container() {
    let world = carried_out(JobKind::Stop, |_| {}).await;

    assert_eq!(
        world.journal(),
        [
            "switch to nowhere: stopped",
            "drain",
            "stop #1",
            "printed",
            "commit: succeeded, follow, stopped, record web exited, entry (launchway stopped the application `web` (production))",
        ]
    );
    let (at, lease) = (world.now(), a_job(JobKind::Stop, &next(), 1).lease);
    let container = ContainerRecord { state: ContainerState::Exited, ..a_container("web") };
    assert_eq!(
        world.commits(),
        [vec![
            JobWrite::Settle { lease, outcome: Outcome::Succeeded, at }.into(),
            Write::FollowJobs { application: Some(application().id), at }.into(),
            ApplicationWrite::SetStopped { scope: scope(), id: application().id, is_stopped: true, at }
                .into(),
            Write::RecordContainer { id: live().id, container, at }.into(),
            ended("stopped"),
        ]]
    );
    assert_eq!(world.log(), ["info: Stopped"]);
}

#[tokio::test(start_paused = true)]
async fn a_site_is_stopped_without_traffic() {
    let site = a_deployment().in_state(DeploymentState::Deployed).build();
    let world = carried_out(JobKind::Stop, |state| state.deployments = vec![site, next()]).await;

    let end =
        "commit: succeeded, follow, stopped, entry (launchway stopped the application `web` (production))";
    assert_eq!(world.journal(), ["switch to nowhere: stopped", "drain", end]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_live_is_neither_stopped_nor_restarted() {
    for kind in [JobKind::Restart, JobKind::Stop, JobKind::Reconcile] {
        for application in [None, Some(Application { live: None, ..application() })] {
            let world = carried_out(kind, |state| state.application = application).await;

            assert_eq!(world.journal(), ["commit: cancelled, follow"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_deleted_application_containers_go_before_images() {
    let world = carried_out(JobKind::Remove, |state| {
        let container = |deployment| a_container_of(deployment, Condition::Gone, moment(NEW_YEAR));
        let image = |found: DiscoveredResource| {
            let name = ImageName::of(found.owner.application, found.owner.deployment);
            DiscoveredResource { what: DiscoveredObject::Image { name, size: an_image_size() }, ..found }
        };
        let other = a_deployment().of(&an_application().named("api").build()).build();
        state.found = vec![
            image(container(&live())),
            container(&other),
            container(&live()),
            image(container(&other)),
            container(&next()),
        ];
        state.application = None;
    })
    .await;

    assert_eq!(
        world.journal(),
        [
            "withdraw",
            "drain",
            "remove the sites",
            "everything",
            "clear container of #1",
            "clear container of #2",
            "clear image of #1",
            "forget compositions",
            "commit: succeeded, follow",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_files_of_a_deleted_application_go_without_an_engine() {
    let world = carried_out(JobKind::Remove, |state| state.fault("everything", 1)).await;

    assert_eq!(world.journal()[..4], ["withdraw", "drain", "remove the sites", "everything"]);
}
