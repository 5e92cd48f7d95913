//! BranchPoller of branches with what was deployed.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    applications::{Application, ApplicationSecrets},
    clock::Clock as _,
    organizations::DeployKey,
    store::StoreError,
};
use launchway_testkit::builders::{ApplicationBuilder, a_deployment};
use tokio::sync::watch;

use crate::{
    applications::{scope, sealed_for, secrets, web},
    ports::unavailable,
    sealed_values::sealed,
    world::{COMMIT, World},
};

/// Polls for `seconds`, and stops.
async fn compare(world: &Arc<World>, seconds: u64) {
    let (stop, stopped) = watch::channel(false);
    let comparison = world.comparison();
    tokio::join!(comparison.run(stopped), async {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        stop.send_replace(true);
    });
}

/// Returns an application with its own secrets.
fn named(name: &str) -> ApplicationBuilder {
    let builder = web().named(name);
    let id = builder.clone().build().id;
    builder.with_secrets(secrets(id, "{}", "{}"))
}

fn with_password(name: &str, password: &str) -> Application {
    let builder = named(name);
    let id = builder.clone().build().id;
    let credentials = sealed_for(id, "credentials", &format!(r#"["{name}","{password}"]"#));
    let kept = ApplicationSecrets { credentials: Some(credentials), ..secrets(id, "{}", "{}") };
    builder.with_secrets(kept).build()
}

#[tokio::test(start_paused = true)]
async fn deploys_only_missed_commits_at_once() {
    let (missed, other) = (named("missed").build(), named("other").build());
    let world = World::with(|state| {
        state.followers = vec![missed.clone(), other];
        state.missed = vec![missed.id];
    });
    let mut listener = world.wake.listen();

    compare(&world, 1).await;

    let [unit] = &world.commits()[..] else { panic!("{:?}", world.journal()) };
    assert_eq!(unit.len(), 6);
    let journal = world.journal_of("commit: ").join("\n");
    let short = &COMMIT[..7];
    for expected in [
        format!("commit: require missed {short}, enqueue deploy, "),
        r#"requested_by: "launchway""#.to_owned(),
        format!("line (Deployment requested because main is at {short} and no push was received)"),
        format!(
            "entry (launchway requested a deployment of the application `missed` (production), because `main` is \
             at {short} and no push was received)"
        ),
    ] {
        assert!(journal.contains(expected.as_str()), "{expected} is not in {journal}");
    }
    tokio::time::timeout(Duration::from_secs(1), listener.wait_timeout(Duration::from_secs(9)))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missed_commit_that_changes_nothing_watched_is_passed_over() {
    let watching = named("web").watching(&["apps/web/"]).build();
    let deployed = a_deployment().of(&watching).made_of('5').build();
    for (touched, expected) in
        [(Some(false), "pass over"), (Some(true), "enqueue deploy"), (None, "enqueue deploy")]
    {
        let world = World::with(|state| {
            state.followers = vec![watching.clone()];
            state.missed = vec![watching.id];
            state.deployments = vec![deployed.clone()];
            state.touched = touched;
        });

        compare(&world, 1).await;

        let journal = world.journal_of("commit: ").join("\n");
        let beginning = format!("commit: require missed {}, {expected}", &COMMIT[..7]);
        assert!(journal.starts_with(&beginning), "{touched:?}: {journal}");
        assert_eq!(world.journal_of("compare"), [format!("compare 5555555 with {}", &COMMIT[..7])]);
    }
}

#[tokio::test(start_paused = true)]
async fn branches_are_compared_again_and_again() {
    let world = World::with(|state| state.followers = vec![named("web").build()]);
    compare(&world, 150).await;
    assert_eq!(world.journal_of("head"), ["head main of https://git.example.com/analytics/web.git"; 3]);
    assert_eq!(world.commits(), Vec::<Vec<_>>::new());
}

#[tokio::test(start_paused = true)]
async fn each_repository_branch_and_credential_is_asked_for_once() {
    let git = |name: &str, address: &str| named(name).from_git(address).build();
    let mut next = named("next").build();
    next.blueprint.branch = "next".parse().ok();
    let key = DeployKey {
        organization_id: scope().id(),
        public_key: String::new(),
        private_key: sealed(&DeployKey::associated_data(scope().id()), "KEY"),
        created_at: launchway_testkit::FixedClock::default().now(),
    };
    let world = World::with(|state| {
        state.deploy_key = Some(key);
        state.followers = vec![
            named("one").build(),
            named("two").build(),
            next,
            with_password("ada", "1"),
            with_password("bob", "2"),
            git("ssh", "git@git.example.com:analytics/web.git"),
            git("ssh-too", "git@git.example.com:analytics/web.git"),
            named("image").from_image("registry.example/web").build(),
        ];
    });

    compare(&world, 1).await;

    let mut asked = world.journal_of("head");
    asked.sort_unstable();
    assert_eq!(
        asked,
        [
            "head main of git@git.example.com:analytics/web.git with KEY",
            "head main of https://git.example.com/analytics/web.git",
            "head main of https://git.example.com/analytics/web.git as ada",
            "head main of https://git.example.com/analytics/web.git as bob",
            "head next of https://git.example.com/analytics/web.git",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_repository_that_does_not_answer_holds_nobody_up() {
    let mut followers = vec![web().named("broken").build()];
    followers.extend((0..9).map(|number| {
        named(&format!("a{number}")).from_git(&format!("https://a{number}.example.com/x")).build()
    }));
    let missed = followers.iter().map(|application| application.id).collect();
    let world = World::with(|state| {
        // The first one has the secrets of another application.
        state.followers = followers;
        state.missed = missed;
        state.fault("head", 3);
    });

    compare(&world, 1).await;
    assert_eq!(world.journal_of("head").len(), 9);
    assert_eq!(world.commits().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn who_takes_too_long_is_not_waited_for() {
    let world = World::with(|state| {
        state.followers = vec![named("slow").build()];
        state.delay("head", Duration::from_secs(10_000));
    });
    compare(&world, 200).await;
    // Half a minute, and a minute until the next round.
    assert_eq!(world.journal_of("head").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_was_deployed_meanwhile_is_not_deployed_again() {
    let web = named("web").build();
    for error in [StoreError::Stale, unavailable()] {
        let mut error = Some(error);
        let world = World::with(|state| {
            state.missed = vec![web.id];
            state.followers = vec![web.clone()];
            state.judge = Some(Box::new(move |_| error.take().map_or(Ok(()), Err)));
        });
        compare(&world, 30).await;
        assert_eq!(world.commits(), Vec::<Vec<_>>::new());
        // The next round tries again.
        compare(&world, 70).await;
        assert!(!world.commits().is_empty());
    }
}
