//! Starting an application anew, letting it stand still, and removing what is left of it.

use std::net::IpAddr;

use launchway_domain::{
    applications::{Application, Write as ApplicationWrite},
    audit::{Action, Resource},
    deployments::{
        Condition, ContainerRecord, ContainerState, DeploymentState, Found, FoundObject, ImageName, Write,
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
    trail::told,
    world::{ADDRESS, a_container_of, a_job, a_started_container},
};

fn ended(what: &str) -> store::Write {
    let entry = an_entry()
        .by_launchway()
        .of(Action::Update, Resource::Deployment, live().id)
        .telling(&format!("{what} the application `web` (production)"))
        .with("application_id", application().id);
    told(1, entry)
}

#[tokio::test(start_paused = true)]
async fn a_restart_checks_the_version_records_where_it_is_and_leads_the_traffic_there() {
    let world = carried_out(JobKind::Restart, |_| {}).await;

    assert_eq!(
        world.journal(),
        [
            "restart",
            "commit: record new running",
            "switch to 10.0.0.9:8080",
            "commit: succeeded, follow, not stopped, entry (launchway restarted the application `web` (production))",
        ]
    );
    assert_eq!(world.log(), ["info: Restarting", "info: Restarted"]);
    let (at, lease) = (world.now(), a_job(JobKind::Restart, &next(), 1).lease);
    let container = ContainerRecord {
        id: a_container("web").id,
        name: a_started_container().name,
        state: ContainerState::Running,
        address: Some(IpAddr::from(ADDRESS)),
        port: a_container("web").port,
    };
    let (id, application) = (application().id, Some(application().id));
    assert_eq!(
        world.commits(),
        [
            vec![Write::RecordContainer { id: live().id, container, at }.into()],
            vec![
                JobWrite::Settle { lease, outcome: Outcome::Succeeded, at }.into(),
                Write::FollowJobs { application, at }.into(),
                ApplicationWrite::SetStopped { scope: scope(), id, is_stopped: false, at }.into(),
                ended("restarted"),
            ],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_cannot_work_marks_the_application_and_says_so() {
    let world = carried_out(JobKind::Restart, |state| state.refuse("restart", "the container is gone")).await;

    let (at, lease) = (world.now(), a_job(JobKind::Restart, &next(), 1).lease);
    let reason = "the container is gone".to_owned();
    assert_eq!(
        world.commits(),
        [vec![
            JobWrite::Settle { lease, outcome: Outcome::Failed { reason }, at }.into(),
            Write::FollowJobs { application: Some(application().id), at }.into(),
            ApplicationWrite::SetStable { deployment: live().id, is_stable: false, at }.into(),
            ended("could not restart"),
        ]]
    );
    assert_eq!(world.log(), ["info: Restarting", "error: The restart failed: the container is gone"]);
    assert!(world.journal_of("switch").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_answer_behind_a_restart_failed() {
    let world = carried_out(JobKind::Restart, |state| {
        state.condition = Some(Condition::Exited { code: 1, out_of_memory: false, restarts: 0 });
        state.illness = Some("connection refused".to_owned());
    })
    .await;

    let end = "commit: failed (the container exited with code 1 before it was healthy), follow, not stable";
    assert_eq!(world.journal_of(end).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_meets_a_fault_is_tried_again() {
    for (kind, call) in [
        (JobKind::Restart, "restart"),
        (JobKind::Restart, "switch"),
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
async fn what_was_stopped_gets_its_traffic_once_the_records_say_that_it_runs() {
    let world = carried_out(JobKind::Restart, |state| {
        state.application = Some(Application { is_stopped: true, ..application() });
    })
    .await;

    let journal = world.journal();
    let told = journal.iter().position(|entry| entry.starts_with("commit: succeeded")).unwrap();
    assert_eq!(journal[told + 1..], ["switch to 10.0.0.9:8080"]);
}

#[tokio::test(start_paused = true)]
async fn a_site_is_started_anew_by_leading_the_traffic_there() {
    let site = a_deployment().in_state(DeploymentState::Deployed).build();
    let back = a_deployment().numbered(3).in_state(DeploymentState::Deployed).back_to(site.id).build();
    for live in [site.clone(), back.clone()] {
        let world = carried_out(JobKind::Restart, |state| {
            state.application = Some(Application { live: Some(live.id), ..application() });
            state.deployments = vec![site.clone(), next(), back.clone()];
            state.published = vec![site.id];
        })
        .await;

        assert_eq!(world.journal()[0], "switch to /sites/#1");
        assert_eq!(world.journal_of("commit: succeeded").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_site_whose_files_are_gone_cannot_be_started_anew() {
    let site = a_deployment().in_state(DeploymentState::Deployed).build();
    let world = carried_out(JobKind::Restart, |state| state.deployments = vec![site, next()]).await;

    assert_eq!(world.journal_of("commit: failed (the published files are gone)").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_leads_the_traffic_away_first_and_keeps_the_container() {
    let world = carried_out(JobKind::Stop, |_| {}).await;

    assert_eq!(
        world.journal(),
        [
            "switch to nowhere: stopped",
            "drain",
            "stop #1",
            "commit: succeeded, follow, stopped, record web exited, entry (launchway stopped the application `web` (production))",
        ]
    );
    let (at, lease) = (world.now(), a_job(JobKind::Stop, &next(), 1).lease);
    let container = ContainerRecord { state: ContainerState::Exited, address: None, ..a_container("web") };
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
async fn a_site_stands_still_without_traffic() {
    let site = a_deployment().in_state(DeploymentState::Deployed).build();
    let world = carried_out(JobKind::Stop, |state| state.deployments = vec![site, next()]).await;

    let end =
        "commit: succeeded, follow, stopped, entry (launchway stopped the application `web` (production))";
    assert_eq!(world.journal(), ["switch to nowhere: stopped", "drain", end]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_live_is_neither_stopped_nor_started_anew() {
    for kind in [JobKind::Restart, JobKind::Stop] {
        for application in [None, Some(Application { live: None, ..application() })] {
            let world = carried_out(kind, |state| state.application = application).await;

            assert_eq!(world.journal(), ["commit: cancelled, follow"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_deleted_application_containers_go_before_images_and_nothing_of_others_goes() {
    let world = carried_out(JobKind::Remove, |state| {
        let container = |deployment| a_container_of(deployment, Condition::Gone, moment(NEW_YEAR));
        let image = |found: Found| {
            let name = ImageName::of(found.owner.application, found.owner.deployment);
            Found { what: FoundObject::Image(name), ..found }
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
