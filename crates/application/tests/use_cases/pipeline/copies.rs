//! Deployments of several copies.

use launchway_domain::deployments::{ContainerRecord, Deployment};
use launchway_testkit::builders::a_container;

use super::{application, carried_out, new, old};
use crate::world::copies;

#[tokio::test(start_paused = true)]
async fn every_copy_is_started_and_checked_before_one_switch() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| blueprint.copies = copies(3)));
        let copy = |last: u8| ContainerRecord {
            address: Some([10, 0, 0, last].into()),
            ..a_container(&format!("old {last}"))
        };
        state.deployments = vec![Deployment { further_copies: vec![copy(2), copy(3)], ..old() }, new()];
    })
    .await;
    let journal = world.journal();
    let from = journal.iter().position(|entry| entry.starts_with("start")).unwrap();
    assert_eq!(
        journal[from..],
        [
            "start on 8080 with PASSWORD",
            "start on 8080 with PASSWORD as copy 2",
            "start on 8080 with PASSWORD as copy 3",
            "commit: prove, container running and 2 copies",
            "commit: prove, go live, line (Live at http://10.0.0.9:8080, http://10.0.1.2:8080, http://10.0.1.3:8080)",
            "keep",
            "keep",
            "keep",
            "switch to 10.0.0.9:8080 10.0.1.2:8080 10.0.1.3:8080",
            "commit: prove, deployed, line (Deployed in 0.0 s), entry (launchway deployed the application `web` (production))",
            "commit: succeeded, follow",
            "drain",
            "drain",
            "drain",
            "stop #1",
            "stop #1",
            "stop #1",
            "printed",
            "printed",
            "printed",
            "remove #1",
            "commit: record old removed, record old 2 removed, record old 3 removed",
        ]
    );
    assert_eq!(world.state().probed.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_unhealthy_copy_fails_the_deployment() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| blueprint.copies = copies(3)));
        state.illnesses.insert([10, 0, 1, 3].into(), "it returned 500".to_owned());
    })
    .await;
    let journal = world.journal();
    assert!(!journal.iter().any(|entry| entry.starts_with("switch")), "{journal:?}");
    assert!(journal.contains(&"remove #2".to_owned()), "{journal:?}");
}
