//! The contents of the log of a deployment.

use std::time::Duration;

use launchway_domain::logs::Level;
use launchway_testkit::builders::parsed;

use super::{application, carried_out};
use crate::{
    applications::{sealed_for, secrets},
    world::State,
};

fn print_secrets(state: &mut State) {
    let mut application = application(|blueprint| {
        blueprint.pre_run_command = Some(parsed("migrate"));
        blueprint.post_run_command = Some(parsed("warm up"));
    });
    let credentials = sealed_for(application.id, "credentials", r#"["ada","ghp_token"]"#);
    application.secrets.credentials = Some(credentials);
    state.application = Some(application);
    for call in ["fetch", "build", "run"] {
        state.print(call, &["pass open-se", "same, token build-tok", "en, ghp_", "token\n", "the end"]);
    }
}

#[tokio::test(start_paused = true)]
async fn no_line_shows_a_secret_however_it_was_cut() {
    let world = carried_out(print_secrets).await;

    let printed = "pass [secret], token [secret], [secret]";
    let log = world.log();
    for level in ["info", "build", "info", "info"] {
        assert!(log.contains(&format!("{level}: {printed}")), "{log:?}");
        assert!(log.contains(&format!("{level}: the end")), "{log:?}");
    }
    for secret in ["open-sesame", "build-token", "ghp_token"] {
        assert!(!log.iter().any(|line| line.contains(secret)), "{secret} is in {log:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_reason_shows_a_secret() {
    for (call, end) in [("build", "commit: failed (exit code 1: [secret])"), ("start", "commit: failed")] {
        let world = carried_out(|state| state.refuse(call, "exit code 1: open-sesame")).await;
        assert_eq!(world.journal_of(end).len(), 1, "{:?}", world.journal());
    }
    let world = carried_out(|state| {
        print_secrets(state);
        state.failures.entry("build").or_default().push_back(
            launchway_domain::deployments::StepError::Retryable("no answer\nto build-token".to_owned()),
        );
    })
    .await;
    assert_eq!(world.journal_of("retry"), ["retry in 5 s (no answer\nto [secret])"]);
    let log = world.log();
    assert_eq!(log[log.len() - 2..], ["warn: Attempt failed: no answer", "warn: to [secret]"]);
}

#[tokio::test(start_paused = true)]
async fn command_output_is_distinct_from_container_output() {
    let world = carried_out(print_secrets).await;

    let state = world.state();
    assert!(!state.batches.iter().flatten().any(|line| line.level == Level::Runtime));
}

#[tokio::test(start_paused = true)]
async fn lines_keep_their_order_and_come_in_batches_of_500() {
    let world = carried_out(|state| {
        let lines: Vec<String> = (0..1200).map(|number| format!("step {number}\n")).collect();
        state.print("build", &[&lines.concat()]);
    })
    .await;

    let built: Vec<String> = world.log().into_iter().filter(|line| line.starts_with("build: ")).collect();
    let expected: Vec<String> = (0..1200).map(|number| format!("build: step {number}")).collect();
    assert_eq!(built, expected);
    let sizes: Vec<usize> = world.state().batches.iter().map(Vec::len).collect();
    assert_eq!(sizes[..2], [500, 500]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_no_larger_than_256_kib() {
    let world = carried_out(|state| {
        let line = format!("{}\n", "x".repeat(16 * 1024));
        state.print("build", &[&line.repeat(20)]);
    })
    .await;

    let bytes = |batch: &Vec<launchway_domain::logs::NewLine>| -> usize {
        batch.iter().map(|line| line.text.len()).sum()
    };
    let largest = world.state().batches.iter().map(bytes).max().unwrap();
    assert!((256 * 1024..=272 * 1024).contains(&largest), "{largest}");
}

#[tokio::test(start_paused = true)]
async fn what_is_printed_is_in_the_log_while_the_work_goes_on() {
    let world = super::world(|state| {
        state.print("build", &["step 1\n"]);
        state.delay("build", Duration::from_secs(5));
    });
    let worker = world.worker();

    tokio::join!(worker.drain(), async {
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert!(world.log().contains(&"build: step 1".to_owned()));
    });
}

#[tokio::test(start_paused = true)]
async fn a_flood_ends_at_50_mib_with_one_line_that_says_so() {
    let world = carried_out(|state| {
        // Without secrets and in bytes that each become three, because each of them is inspected.
        let mut application = application(|_| {});
        application.secrets = secrets(application.id, "{}", "{}");
        state.application = Some(application);
        let line = [vec![0xff; 16 * 1024 / 3], b"\n".to_vec()].concat();
        state.output.insert("build", vec![line.repeat(64); 52]);
    })
    .await;

    let state = world.state();
    let lines = || state.batches.iter().flatten();
    let built: usize = lines().filter(|line| line.level == Level::Build).map(|line| line.text.len()).sum();
    assert!((50 * 1024 * 1024 - 17 * 1024..=50 * 1024 * 1024).contains(&built), "{built}");
    let full: Vec<&str> =
        lines().filter(|line| line.level == Level::Warn).map(|line| line.text.as_str()).collect();
    assert_eq!(full, ["Log limit reached: further lines are dropped"]);
    assert_eq!(lines().last().map(|line| line.level), Some(Level::Warn));
}

#[tokio::test(start_paused = true)]
async fn failed_log_writes_are_retried_without_loss() {
    let reported = carried_out(print_secrets).await.log();

    let world = carried_out(|state| {
        print_secrets(state);
        state.failing_appends = 4;
    })
    .await;

    assert_eq!(world.log(), reported);
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_line_is_written_twice_when_the_work_ends_during_a_write() {
    // The lines are durable at once, and the result is slower than the end of the work.
    let world = carried_out(|state| {
        state.print("build", &["step 1\n"]);
        state.delay("append", Duration::from_secs(1));
        state.delay("build", Duration::from_millis(150));
        state.refuse("build", "exit code 1");
    })
    .await;

    let steps = world.log().into_iter().filter(|line| line == "build: step 1").count();
    assert_eq!(steps, 1, "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn commands_to_a_terminal_are_not_kept_in_our_own_words_either() {
    let world = carried_out(|state| {
        state.application =
            Some(application(|blueprint| blueprint.post_run_command = Some(parsed("warm up"))));
        state.refuse("run", "\u{1b}[31mexit code 1\u{1b}[0m");
    })
    .await;

    assert_eq!(
        world.log().last().map(String::as_str),
        Some("error: The post-run command failed: exit code 1")
    );
}
