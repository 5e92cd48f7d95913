//! The order of the steps.

use std::time::Duration;

use launchway_domain::{
    applications::{Application, BuildPack},
    organizations::DeployKey,
};
use launchway_testkit::{
    builders::{an_application, an_organization, parsed},
    clock::{NEW_YEAR, moment},
};

use super::{application, carried_out, world};
use crate::{applications::sealed_for, sealed_values::sealed};

#[tokio::test(start_paused = true)]
async fn dockerfile_is_built_started_checked_and_switched_in_order() {
    let world = carried_out(|_| {}).await;

    assert_eq!(
        world.journal(),
        [
            "commit: prove, cloning",
            "head main of https://git.example.com/analytics/web.git",
            "commit: prove, commit abcdef0",
            "fetch abcdef0 for attempt 1",
            "commit: prove, building",
            "build Dockerfile with TOKEN",
            "discard #2",
            "commit: prove, deploying image",
            "start on 8080 with PASSWORD",
            "commit: prove, container running",
            "commit: prove, go live, line (Live at http://10.0.0.9:8080)",
            "keep",
            "switch to 10.0.0.9:8080",
            "commit: prove, deployed, line (Deployed in 0.0 s), entry (launchway deployed the application `web` (production))",
            "commit: succeeded, follow",
            "drain",
            "stop #1",
            "printed",
            "remove #1",
            "commit: record old removed",
        ]
    );
    assert_eq!(
        world.log(),
        [
            "info: Fetching commit abcdef0 of main",
            "info: Building the image",
            "info: Starting the container",
            "info: Waiting for http://10.0.0.9:8080/up",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn no_step_waits_for_a_record_of_its_beginning() {
    let second = Duration::from_secs(1);
    let world = world(|state| {
        state.deployments.remove(0);
        state.application = Some(Application { live: None, ..application(|_| {}) });
        for step in ["head", "fetch", "build", "start", "probe"] {
            state.delay(step, second);
        }
        state.delay("commit", second / 2);
    });
    let (worker, start) = (world.worker(), tokio::time::Instant::now());

    worker.drain().await;

    // The commits of going live, of the end of the deployment and of its job are awaited.
    assert_eq!(start.elapsed(), 5 * second + 3 * second / 2);
}

#[tokio::test(start_paused = true)]
async fn a_prebuilt_image_needs_no_source_and_no_building() {
    let image = an_application().from_image("nginx:1.27").build().blueprint;
    let world = carried_out(|state| {
        let health = Some(parsed("/up"));
        state.application = Some(application(|blueprint| {
            *blueprint = image;
            blueprint.health_check_path = health;
        }));
    })
    .await;

    assert_eq!(
        world.journal()[..4],
        [
            "commit: prove, deploying",
            "obtain nginx:1.27",
            "commit: prove, image",
            "start on 8080 with PASSWORD"
        ]
    );
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
    assert_eq!(world.log()[0], "info: Pulling the image nginx:1.27");
}

#[tokio::test(start_paused = true)]
async fn a_site_is_published_and_nothing_is_started() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| {
            blueprint.build_pack = BuildPack::Static;
            blueprint.base_path = parsed("/public");
            blueprint.health_check_path = None;
        }));
    })
    .await;

    assert_eq!(
        world.journal()[4..],
        [
            "commit: prove, building",
            "publish /public",
            "discard #2",
            "commit: prove, deploying",
            "commit: prove, go live, line (Live)",
            "switch to /sites/#2",
            "commit: prove, deployed, line (Deployed in 0.0 s), entry (launchway deployed the application `web` (production))",
            "commit: succeeded, follow",
            "drain",
            "stop #1",
            "printed",
            "remove #1",
            "commit: record old removed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn source_without_dockerfile_is_built_by_a_plan() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| {
            blueprint.build_pack = BuildPack::Nixpacks;
            blueprint.base_path = parsed("/web");
        }));
        state.print("plan", &["install: npm ci\n"]);
    })
    .await;

    assert_eq!(
        world.journal()[4..8],
        ["commit: prove, building", "plan /web", "build .nixpacks/Dockerfile with CI TOKEN", "discard #2",]
    );
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
    let said = ["info: Planning the build", "build: install: npm ci", "info: Building the image"];
    assert_eq!(world.log()[1..4], said);
}

#[tokio::test(start_paused = true)]
async fn commands_run_before_the_start_and_behind_the_switch() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| {
            blueprint.pre_run_command = Some(parsed("migrate"));
            blueprint.post_run_command = Some(parsed("warm up"));
        }));
    })
    .await;

    let order: Vec<String> = world
        .journal()
        .into_iter()
        .filter(|entry| ["run", "start", "switch", "stop"].iter().any(|call| entry.starts_with(call)))
        .collect();
    assert_eq!(
        order,
        ["run migrate", "start on 8080 with PASSWORD", "switch to 10.0.0.9:8080", "run warm up", "stop #1"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_version_has_none_to_end() {
    let world = carried_out(|state| {
        state.application = Some(Application { live: None, ..application(|_| {}) });
    })
    .await;

    assert!(world.journal_of("stop").is_empty());
    assert!(world.journal_of("remove").is_empty());
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fetch_uses_credentials_and_key_of_the_organization() {
    let world = carried_out(|state| {
        let organization_id = an_organization().build().id;
        let private_key = sealed(&DeployKey::associated_data(organization_id), "PRIVATE KEY");
        let (public_key, created_at) = ("ssh-ed25519 AAAA".to_owned(), moment(NEW_YEAR));
        state.deploy_key = Some(DeployKey { organization_id, public_key, private_key, created_at });
        let mut application = application(|_| {});
        let credentials = sealed_for(application.id, "credentials", r#"["ada","ghp_token"]"#);
        application.secrets.credentials = Some(credentials);
        state.application = Some(application);
    })
    .await;

    let expected = "head main of https://git.example.com/analytics/web.git as ada with PRIVATE KEY";
    assert_eq!(world.journal_of("head"), [expected]);
}

#[tokio::test(start_paused = true)]
async fn each_further_attempt_says_so_and_begins_from_nothing() {
    let world = carried_out(|state| {
        for claimed in &mut state.waiting {
            claimed.lease.attempt = 2;
        }
    })
    .await;

    assert_eq!(world.journal()[..2], ["discard #2", "remove #2"]);
    assert_eq!(world.journal_of("fetch"), ["fetch abcdef0 for attempt 2"]);
    assert_eq!(world.log()[0], "info: Attempt 2");
}
