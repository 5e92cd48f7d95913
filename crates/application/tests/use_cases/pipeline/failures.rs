//! Failures of steps.

use std::time::Duration;

use launchway_domain::{
    applications::{Application, BuildPack},
    deployments::{Condition, Exit, PrintedLine},
    store::{self, StoreError},
};
use launchway_testkit::{
    builders::parsed,
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

use super::{application, carried_out};
use crate::{
    ports::unavailable,
    world::{FOR_EVER, State},
};

fn with_commands(state: &mut State) {
    state.application = Some(application(|blueprint| {
        blueprint.pre_run_command = Some(parsed("migrate"));
        blueprint.post_run_command = Some(parsed("warm up"));
    }));
}

#[tokio::test(start_paused = true)]
async fn rejected_step_fails_the_deployment_and_keeps_the_old_version() {
    for (step, reason) in [
        ("head", "no such branch"),
        ("fetch", "no such branch"),
        ("build", "no such branch"),
        ("run", "the pre-run command failed: no such branch"),
        ("start", "no such branch"),
    ] {
        let world = carried_out(|state| {
            with_commands(state);
            state.refuse(step, "no such branch");
        })
        .await;

        let end = format!(
            "commit: failed ({reason}), follow, entry (launchway failed to deploy the application `web` (production))"
        );
        assert_eq!(world.journal().last(), Some(&end), "{step}");
        let went_on = |entry: &String| entry.contains("go live") || entry.contains("#1");
        assert!(!world.journal().iter().any(went_on), "{step}: {:?}", world.journal());
        assert!(world.journal_of("retry").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_deployed_only_at_an_approved_commit() {
    let of_a_fork = |state: &mut State| {
        state.application =
            Some(application(|blueprint| blueprint.branch = Some(parsed("refs/pull/7/head"))));
    };
    let world = carried_out(of_a_fork).await;
    let reason = "the source of a fork is deployed only by approving the preview of its request";
    let end = format!(
        "commit: failed ({reason}), follow, entry (launchway failed to deploy the application `web` (production))"
    );
    assert_eq!(world.journal().last(), Some(&end));
    assert!(world.journal_of("head").is_empty() && world.journal_of("fetch").is_empty());

    let world = carried_out(|state| {
        of_a_fork(state);
        state.deployments[1].commit = Some(parsed(&"a".repeat(40)));
    })
    .await;
    assert!(world.journal_of("commit: failed").is_empty(), "{:?}", world.journal());
    assert!(world.journal_of("head").is_empty(), "the head of the request is not asked for");
    assert_eq!(world.journal_of("fetch").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_started_or_fetched_is_removed_when_it_fails() {
    let world = carried_out(|state| state.refuse("start", "no such file")).await;

    let journal = world.journal();
    let behind = journal.iter().skip_while(|entry| !entry.starts_with("start"));
    let removed: Vec<&str> = behind.skip(1).take(2).map(String::as_str).collect();
    assert_eq!(removed, ["remove #2", "discard #2"]);
}

#[tokio::test(start_paused = true)]
async fn fault_of_the_machine_is_retried() {
    for step in ["discard", "head", "fetch", "build", "run", "start"] {
        let world = carried_out(|state| {
            with_commands(state);
            state.fault(step, 1);
        })
        .await;

        let retried = format!("retry in 5 s ({step} does not answer)");
        assert_eq!(world.journal_of("retry"), [retried], "{step}");
        assert_eq!(world.journal().last().map(String::as_str), Some("commit: follow"), "{step}");
        assert!(world.journal_of("commit: failed").is_empty(), "{step}");
        let said = format!("warn: Attempt failed: {step} does not answer");
        assert_eq!(world.log().last(), Some(&said));
    }
}

#[tokio::test(start_paused = true)]
async fn failed_restart_policy_is_retried_for_a_live_version() {
    let world = carried_out(|state| state.fault("keep", 1)).await;

    assert_eq!(world.journal_of("retry"), ["retry in 5 s (keep does not answer)"]);
    assert_eq!(world.journal_of("commit: prove, deployed").len(), 1);
    assert!(world.journal_of("remove").is_empty(), "what lost the traffic is not known to be replaced");
    let said = "warn: The remaining steps are retried later: keep does not answer";
    assert_eq!(world.log().last().map(String::as_str), Some(said));
}

#[tokio::test(start_paused = true)]
async fn removes_leftovers_before_the_next_attempt() {
    for step in ["discard", "remove"] {
        let world = carried_out(|state| {
            for claimed in &mut state.waiting {
                claimed.lease.attempt = 2;
            }
            state.fault(step, 1);
        })
        .await;

        assert_eq!(world.journal_of("retry"), [format!("retry in 10 s ({step} does not answer)")]);
        assert!(world.journal_of("head").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_not_there_is_a_fault_and_says_no_more() {
    let world = carried_out(|state| {
        let mut left = 1;
        state.judge = Some(Box::new(move |_| match std::mem::replace(&mut left, 0) {
            0 => Ok(()),
            _ => Err(unavailable()),
        }));
    })
    .await;

    assert_eq!(world.journal_of("retry"), ["retry in 5 s (the database is not available)"]);
}

#[tokio::test(start_paused = true)]
async fn exited_container_is_logged_and_removed() {
    for (condition, reason) in [
        (
            Condition::Exited(Exit { code: 3, out_of_memory: false, restarts: 0 }),
            "the container exited with code 3 before it was healthy",
        ),
        (
            Condition::Exited(Exit { code: 137, out_of_memory: true, restarts: 0 }),
            "the container was killed because it exceeded its memory limit",
        ),
        (Condition::Gone, "the container is gone"),
    ] {
        let world = carried_out(|state| {
            state.condition = Some(condition);
            state.illness = Some("connection refused".to_owned());
            let line = |text: &str| PrintedLine { at: moment(NEW_YEAR), text: text.as_bytes().to_vec() };
            state.tail_logs = vec![line("starting"), line("cannot bind: open-sesame")];
        })
        .await;

        assert_eq!(world.journal_of(&format!("commit: failed ({reason})")).len(), 1, "{:?}", world.journal());
        assert_eq!(world.journal_of("remove"), ["remove #2"]);
        assert!(!world.journal().iter().any(|entry| entry.contains("go live")));
        let words = [
            "info: The last lines of the container log:",
            "runtime: starting",
            "runtime: cannot bind: [secret]",
        ];
        assert_eq!(world.log()[4..], words);
    }
}

#[tokio::test(start_paused = true)]
async fn logs_a_missing_or_unreadable_container_output() {
    for (fails, said) in [
        (0, "info: The container log is empty"),
        (1, "warn: The container log cannot be read: tail logs does not answer"),
    ] {
        let world = carried_out(|state| {
            state.condition = Some(Condition::Gone);
            state.illness = Some("connection refused".to_owned());
            state.fault("tail logs", fails);
        })
        .await;

        assert_eq!(world.log().last().map(String::as_str), Some(said));
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_run_command_that_fails_is_only_logged() {
    let world = carried_out(|state| {
        state.application =
            Some(application(|blueprint| blueprint.post_run_command = Some(parsed("warm up"))));
        state.refuse("run", "exit code 1");
    })
    .await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
    assert_eq!(
        world.log()[4..],
        ["info: Running the post-run command", "error: The post-run command failed: exit code 1"]
    );
}

#[tokio::test(start_paused = true)]
async fn failing_router_is_retried_and_then_left_to_maintenance() {
    for (failures, asked, said) in [(1, 2, 0), (5, 5, 1)] {
        let world = carried_out(|state| state.fault("switch", failures)).await;

        assert_eq!(world.journal_of("switch").len(), asked);
        let warnings = world
            .log()
            .into_iter()
            .filter(|line| line == "warn: Traffic switch failed, retrying later: switch does not answer");
        assert_eq!(warnings.count(), said);
        assert_eq!(world.journal_of("commit: succeeded").len(), 1);
        assert_eq!(world.journal_of("stop"), ["stop #1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_version_without_a_record_is_left_to_the_reconciler() {
    let world = carried_out(|state| {
        state.deployments.remove(0);
        let live = Some(id_of("a version without a record").into());
        state.application = Some(Application { live, ..application(|_| {}) });
    })
    .await;

    assert!(world.journal_of("remove").is_empty(), "{:?}", world.journal());
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn secrets_that_cannot_be_opened_fail_the_deployment() {
    let world = carried_out(|state| {
        let mut application = application(|_| {});
        application.secrets.build_variables.0 = "damaged".to_owned();
        state.application = Some(application);
    })
    .await;

    let end = "commit: failed (a secret of this application cannot be decrypted), follow";
    assert_eq!(world.journal().last().map(String::as_str), Some(end));
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_published_fails_the_deployment() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| {
            blueprint.build_pack = BuildPack::Static;
            blueprint.health_check_path = None;
        }));
        state.refuse("publish", "there is no such folder");
    })
    .await;

    assert_eq!(world.journal_of("commit: failed (there is no such folder), follow").len(), 1);
    assert!(world.journal_of("switch").is_empty());
}

#[tokio::test(start_paused = true)]
async fn source_that_cannot_be_planned_fails_the_deployment() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| blueprint.build_pack = BuildPack::Nixpacks));
        state.refuse("plan", "nobody knows what this is");
    })
    .await;

    assert_eq!(world.journal_of("commit: failed (nobody knows what this is), follow").len(), 1);
    assert!(world.journal_of("build").is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_the_job_writes_and_removes_nothing_more() {
    for lost_at in ["cloning", "building", "container", "GoLive"] {
        let world = carried_out(|state| {
            state.judge = Some(Box::new(move |writes: &[store::Write]| {
                let text = format!("{writes:?}").to_lowercase();
                let needle = match lost_at {
                    "container" => "container: some".to_owned(),
                    state @ ("cloning" | "building") => format!("state: some({state})"),
                    other => other.to_lowercase(),
                };
                if text.contains(&needle) { Err(StoreError::Stale) } else { Ok(()) }
            }));
        })
        .await;

        let journal = world.journal();
        let last = match lost_at {
            "cloning" => None,
            "building" => Some("fetch abcdef0 for attempt 1"),
            "container" => Some("start on 8080 with PASSWORD"),
            _ => Some("commit: prove, container running"),
        };
        assert_eq!(journal.last().map(String::as_str), last, "{lost_at}");
        assert!(world.journal_of("commit: failed").is_empty() && world.journal_of("retry").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn who_learns_during_a_step_that_the_job_is_lost_ends_the_step() {
    let world = carried_out(|state| {
        state.delay("commit", Duration::from_secs(1));
        state.delay("start", FOR_EVER);
        state.judge = Some(Box::new(|writes: &[store::Write]| {
            let is_lost = format!("{writes:?}").contains("state: Some(Deploying)");
            if is_lost { Err(StoreError::Stale) } else { Ok(()) }
        }));
    })
    .await;

    assert_eq!(world.journal().last().map(String::as_str), Some("start on 8080 with PASSWORD"));
}
