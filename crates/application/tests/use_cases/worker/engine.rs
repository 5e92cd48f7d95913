//! Jobs during an outage of the engine.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use launchway_domain::{
    applications::BuildPack,
    jobs::{JobKind, Pool},
};
use tokio::sync::watch;

use super::{application, carried_out, world};
use crate::world::{AWAY, World, wait};

const WAITING: &str = "postpone by 3 s (waiting for the Docker engine: the Docker engine does not answer)";
const LINE: &str = "warn: Waiting for the Docker engine: the Docker engine does not answer";

/// Advances the time and the clock.
async fn pass(world: &World, seconds: u64) {
    for _ in 0..seconds {
        wait(1).await;
        world.clock.advance(TimeDelta::seconds(1));
    }
}

/// Runs a worker and the reconciler during `story`.
async fn serve(world: &Arc<World>, story: impl Future<Output = ()>) {
    let (stop, stopped) = watch::channel(false);
    let (worker, reconciler) = (world.worker(), world.reconciler());
    tokio::join!(worker.run(stopped.clone()), reconciler.run(stopped), async {
        story.await;
        stop.send_replace(true);
    });
}

fn count(lines: &[String], line: &str) -> usize {
    lines.iter().filter(|other| *other == line).count()
}

#[tokio::test(start_paused = true)]
async fn a_job_that_misses_the_engine_is_postponed() {
    for kind in [JobKind::Deploy, JobKind::Restart, JobKind::Reconcile, JobKind::Stop, JobKind::Remove] {
        let world = carried_out(kind, |state| state.is_away = true).await;

        assert_eq!(world.journal_of("postpone"), [WAITING], "{kind:?}");
        assert_eq!(world.journal().last().map(String::as_str), Some("commit: follow"), "{kind:?}");
        let ended = ["retry", "commit: failed", "commit: succeeded", "release"];
        assert!(ended.iter().all(|end| world.journal_of(end).is_empty()), "{:?}", world.journal());
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_is_not_begun_during_an_outage() {
    for kind in [JobKind::Deploy, JobKind::Restart] {
        let world = world(kind, |state| state.is_away = true);
        world.reconciler().begin().await;
        let looks = world.journal().len();

        world.worker().drain().await;

        assert_eq!(world.journal()[looks..], [WAITING, "commit: follow"], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_waits_with_one_line_and_goes_on() {
    let world = world(JobKind::Deploy, |state| state.is_away = true);
    world.reconciler().begin().await;

    serve(&world, async {
        pass(&world, 10 * 60).await;
        assert_eq!(world.log(), [LINE]);
        assert!(world.journal_of("postpone").len() > 100, "it is tried again every few seconds");
        assert!(world.journal_of("commit: failed").is_empty());
        world.state().is_away = false;
        pass(&world, 20).await;
    })
    .await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 1, "{:?}", world.log());
    assert_eq!(count(&world.log(), LINE), 1);
    assert_eq!(world.engine.outage(), None);
}

#[tokio::test(start_paused = true)]
async fn an_outage_in_the_middle_of_a_deployment_is_waited_for() {
    let world = world(JobKind::Deploy, |state| state.delay("build", Duration::from_secs(5)));

    serve(&world, async {
        pass(&world, 3).await;
        world.state().is_away = true;
        pass(&world, 5 * 60).await;
        assert_eq!(count(&world.log(), LINE), 1, "{:?}", world.log());
        world.state().is_away = false;
        pass(&world, 30).await;
    })
    .await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 1, "{:?}", world.log());
    assert!(world.journal_of("commit: failed").is_empty() && world.journal_of("retry").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_when_the_engine_is_away_for_an_hour() {
    let world = world(JobKind::Deploy, |state| state.is_away = true);
    world.reconciler().begin().await;

    serve(&world, async {
        pass(&world, 59 * 60).await;
        assert!(world.journal_of("commit: failed").is_empty());
        pass(&world, 2 * 60).await;
    })
    .await;

    let end = format!("commit: failed (the Docker engine did not answer for 60 minutes: {AWAY}), follow");
    assert_eq!(world.journal_of("commit: failed"), [end]);
    assert_eq!(world.log(), [LINE]);
    assert!(world.state().waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_by_its_own_wait_where_no_outage_is_known() {
    let world = world(JobKind::Restart, |state| state.is_away = true);
    let worker = world.worker();

    for _ in 0..30 {
        worker.drain().await;
        world.clock.advance(TimeDelta::minutes(2));
    }
    assert!(world.journal_of("commit: failed").is_empty());
    worker.drain().await;

    let end = format!("commit: failed (the Docker engine did not answer for 60 minutes: {AWAY}), follow");
    assert_eq!(world.journal_of("commit: failed"), [end]);
}

#[tokio::test(start_paused = true)]
async fn every_attempt_at_a_site_goes_on_without_an_engine() {
    for attempt in [1, 2] {
        let world = world(JobKind::Deploy, |state| {
            state.is_away = true;
            let mut application = application();
            application.blueprint.build_pack = BuildPack::Static;
            application.blueprint.health_check_path = None;
            application.live = None;
            state.application = Some(application);
            state.waiting[0].job.pool = Pool::Sites;
            state.waiting[0].lease.attempt = attempt;
        });
        world.reconciler().begin().await;
        assert!(world.engine.outage().is_some());

        world.worker().drain().await;

        assert_eq!(world.journal_of("switch"), ["switch to /sites/#2"]);
        assert_eq!(world.journal_of("commit: succeeded").len(), 1);
        let waits = [world.journal_of("postpone"), world.journal_of("retry")].concat();
        assert!(waits.is_empty(), "{:?}", world.journal());
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_takes_no_place_of_others() {
    let world = world(JobKind::Deploy, |state| {
        state.is_away = true;
        for number in 3..10 {
            let deployment = launchway_testkit::builders::a_deployment().numbered(number).build();
            state.waiting.push_back(crate::world::a_job(JobKind::Deploy, &deployment, 1));
            state.deployments.push(deployment);
        }
    });
    world.reconciler().begin().await;

    serve(&world, pass(&world, 2)).await;

    assert_eq!(world.journal_of("postpone").len(), 8, "each of them was looked at and given back");
}
