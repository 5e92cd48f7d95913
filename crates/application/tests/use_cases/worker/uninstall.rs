//! Uninstallation of extensions.

use launchway_domain::jobs::{ClaimedJob, JobKind};

use super::next;
use crate::world::{World, a_job};

fn job(payload: &str) -> ClaimedJob {
    let mut claimed = a_job(JobKind::UninstallExtension, &next(), 1);
    claimed.job.payload = payload.to_owned();
    claimed
}

#[tokio::test(start_paused = true)]
async fn what_an_extension_made_is_removed_and_its_names_lead_nowhere() {
    for (payload, uninstalled) in [
        (r#"{"extension":"db","volumes":false,"deleted":false}"#, "commit: succeeded, uninstalled db false"),
        (r#"{"extension":"db","volumes":true,"deleted":false}"#, "commit: succeeded, uninstalled db true"),
        (r#"{"extension":"db","volumes":false,"deleted":true}"#, "commit: succeeded, uninstalled db true"),
    ] {
        let world = World::with(|state| state.waiting.push_back(job(payload)));
        world.worker().drain().await;
        assert_eq!(world.journal()[1], uninstalled);
        assert_eq!(world.state().routes.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_not_there_is_asked_again() {
    let world = World::with(|state| {
        state.waiting.push_back(job(r#"{"extension":"db"}"#));
        state.fault("uninstall", 1);
    });
    world.worker().drain().await;
    assert_eq!(world.journal_of("retry"), ["retry in 5 s (uninstall does not answer)"]);
    assert_eq!(world.journal().last().map(String::as_str), Some("commit: follow runs"));
}
