//! Every difference between the record and the engine, and the action that resolves it.

use launchway_domain::{
    deployments::{Condition, Exit},
    ids::SubjectId,
    jobs::{JobKind, Pool},
};

use super::{RECOVERED, announcements, broken, calls, exit, live, reconcile, running, running_at, world};
use crate::world::wait;

#[tokio::test(start_paused = true)]
async fn a_container_that_is_as_recorded_is_left_alone() {
    let world = world(running(0));
    reconcile(&world, wait(60)).await;
    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?} {:?}", calls(&world), world.log());
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_down_is_resumed_and_serves_again() {
    let killed = Exit { out_of_memory: true, ..exit(137) };
    for (condition, recorded, reason) in [
        (Condition::Exited(exit(1)), "exited", "the container exited with code 1"),
        (Condition::Exited(exit(137)), "exited", "the container exited with code 137"),
        (
            Condition::Exited(killed),
            "exited",
            "the container was killed because it exceeded its memory limit",
        ),
        (Condition::Paused, "exited", "the container is paused"),
        (Condition::Created, "created", "the container was never started"),
        (Condition::Detached, "exited", "the container is not connected to its network"),
    ] {
        let world = world(condition);

        reconcile(&world, wait(10)).await;

        let down = format!("commit: record web {recorded}");
        assert_eq!(
            calls(&world),
            [
                down.as_str(),
                "switch to nowhere: absent",
                &broken(reason),
                "resume #1",
                "commit: record web running",
                "switch to 10.0.0.7:8080",
                RECOVERED,
            ],
            "{condition:?}"
        );
        let sentence = format!("{}{}", reason[..1].to_uppercase(), &reason[1..]);
        assert_eq!(
            world.log(),
            [
                format!("error: The application is unhealthy: {reason}"),
                format!("warn: {sentence}: restarting it"),
                "info: The application is healthy again".to_owned(),
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_is_resumed_beside_a_job_and_not_marked() {
    let world = world(Condition::Paused);
    world.state().busy = vec![live().application.id.into()];

    reconcile(&world, wait(10)).await;

    assert_eq!(
        calls(&world),
        ["commit: record web exited", "switch to nowhere: absent", "resume #1"],
        "the job that runs records what it does"
    );
}

#[tokio::test(start_paused = true)]
async fn a_container_that_the_engine_starts_again_is_waited_for() {
    let world = world(Condition::Restarting(exit(1)));

    reconcile(&world, wait(10)).await;

    assert_eq!(calls(&world), ["commit: record web exited", "switch to nowhere: absent"]);
    assert!(world.log().is_empty(), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn a_container_that_was_removed_is_left_to_a_job() {
    let world = world(None);

    reconcile(&world, async {
        wait(3).await;
        world.state().busy = vec![live().application.id.into()];
        wait(60).await;
    })
    .await;

    assert_eq!(
        calls(&world),
        [
            "commit: record web removed",
            "switch to nowhere: absent",
            "commit: enqueue reconcile",
            &broken("the container was removed"),
        ]
    );
    assert_eq!(
        world.log(),
        ["warn: The container was removed", "error: The application is unhealthy: the container was removed"]
    );
    let jobs = world.state().reconcile_jobs.clone();
    let about: Vec<_> = jobs.iter().map(|job| (job.kind, job.pool, job.subject, job.replaceable)).collect();
    let subject = SubjectId::from(live().application.id);
    assert_eq!(about, [(JobKind::Reconcile, Pool::Operations, subject, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_resumed_is_left_to_a_job() {
    let world = world(Condition::Exited(exit(1)));
    world.state().refuse("resume", "its network is gone");

    reconcile(&world, async {
        wait(3).await;
        world.state().busy = vec![live().application.id.into()];
        wait(1).await;
    })
    .await;

    assert_eq!(world.journal_of("resume"), ["resume #1"]);
    assert_eq!(world.journal_of("commit: enqueue"), ["commit: enqueue reconcile"]);
    let said = "warn: The container cannot be started: its network is gone".to_owned();
    assert!(world.log().contains(&said), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn a_container_that_runs_although_stopped_is_left_to_a_job() {
    for condition in [running(0), Condition::Paused, Condition::Detached, Condition::Restarting(exit(0))] {
        let world = world(condition);
        world.state().live[0].application.is_stopped = true;

        reconcile(&world, wait(3)).await;

        assert_eq!(calls(&world), ["commit: enqueue reconcile"], "{condition:?}");
        assert_eq!(world.log(), ["warn: The application is stopped, but its container is running"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_application_may_be_down_or_have_no_container() {
    for condition in [Some(Condition::Exited(exit(0))), Some(Condition::Created), None] {
        let world = world(condition);
        world.state().live[0].application.is_stopped = true;

        reconcile(&world, wait(30)).await;

        assert!(calls(&world).is_empty() && world.log().is_empty(), "{condition:?} {:?}", calls(&world));
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_at_another_address_is_recorded_and_routed() {
    let world = world(running_at([10, 0, 0, 8], 0));

    reconcile(&world, wait(30)).await;

    assert_eq!(calls(&world), ["commit: record web running", "switch to 10.0.0.8:8080"]);
    assert!(announcements(&world).is_empty() && world.log().is_empty());
    let probed = world.state().probed.clone();
    assert!(probed.iter().all(|address| address.to_string() == "10.0.0.8:8080"), "{probed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_site_has_nothing_to_reconcile() {
    let world = world(None);
    world.state().live[0].deployment.container = None;
    reconcile(&world, wait(30)).await;
    assert!(calls(&world).is_empty() && world.log().is_empty());
}
