//! Volumes outlive deployments, and compositions can be rolled back to.

use launchway_domain::{
    deployments::{Composer as _, Deployer, StepError},
    ids::Ids as _,
};
use launchway_system::clock::TimeOrderedIds;
use launchway_testkit::docker::docker;

use super::{Composing, page, plan, shop};
use crate::installation::owner;

#[tokio::test]
async fn a_volume_is_kept_until_the_application_is_removed() {
    let composing = Composing::new();
    let first = plan(owner());
    let web = composing.run(&first, &shop()).await;
    assert_eq!(page(&web).await, "from the database");
    let container = format!("launchway-{}-1-db", first.owner.deployment);
    docker(&["exec", &container, "sh", "-c", "echo changed > /data/index.html"]);

    let mut second = plan(first.owner);
    second.owner.deployment = TimeOrderedIds.next().into();
    second.live = Some(first.owner.deployment);
    let composition = composing.compose(&second).await.unwrap();
    assert_eq!(composition.shared_volumes, ["data"]);
    Deployer::remove(&*composing.installation.engine, first.owner.deployment).await.unwrap();
    let web = composing.start(&second).await.unwrap();
    assert_eq!(page(&web).await, "changed");

    let mut elsewhere = plan(owner());
    elsewhere.live = Some(TimeOrderedIds.next().into());
    assert!(composing.compose(&elsewhere).await.unwrap().shared_volumes.is_empty());

    Deployer::remove(&*composing.installation.engine, second.owner.deployment).await.unwrap();
    for _ in 0..2 {
        composing.compositions.forget(first.owner.application).await.unwrap();
    }
    assert_eq!(composing.installation.traces.volumes(), Vec::<String>::new());
    let gone = composing.start(&second).await;
    let expected = "the compose file of that deployment no longer exists";
    assert_eq!(gone, Err(StepError::Rejected(expected.to_owned())));
}

#[tokio::test]
async fn an_earlier_composition_is_started_again_as_it_was() {
    let composing = Composing::new();
    let first = plan(owner());
    composing.installation.write("compose.yaml", &shop());
    composing.compose(&first).await.unwrap();
    composing.installation.write("compose.yaml", &shop().replace("from the database", "newer"));

    let mut back = plan(first.owner);
    back.owner.deployment = TimeOrderedIds.next().into();
    assert_eq!(composing.compositions.recall(&back, TimeOrderedIds.next().into()).await, Ok(None));
    let recalled = composing.compositions.recall(&back, first.owner.deployment).await.unwrap().unwrap();
    assert_eq!(recalled.image.whose(), Some((back.owner.application, back.owner.deployment)));
    let web = composing.start(&back).await.unwrap();
    assert_eq!(page(&web).await, "from the database");

    Deployer::remove(&*composing.installation.engine, back.owner.deployment).await.unwrap();
    for image in composing.installation.traces.images() {
        let _removed = docker(&["image", "rm", "--force", "--no-prune", &image]);
    }
    let gone = composing.start(&back).await.unwrap_err().to_string();
    assert_eq!(gone, "the image of the service `db` no longer exists");
    let mut late = plan(first.owner);
    late.owner.deployment = TimeOrderedIds.next().into();
    let expected = "the image of that deployment no longer exists";
    let gone = composing.compositions.recall(&late, first.owner.deployment).await;
    assert_eq!(gone, Err(StepError::Rejected(expected.to_owned())));
}
