//! Images that were built elsewhere or earlier.

use std::sync::Arc;

use launchway_domain::deployments::{
    Deployer as _, DiscoveredObject, EngineInventory, ImageBuilder as _, ImageName, StepError,
};
use launchway_testkit::docker::{base_image, docker};

use crate::{
    installation::{Installation, owner, plan},
    recorder::Recorder,
};

#[tokio::test]
async fn an_image_that_is_here_is_used_when_no_registry_can_be_asked() {
    let installation = Installation::new();
    let owner = owner();
    // A registry at which no server listens.
    let reference = format!("127.0.0.1:9/launchway-test/{}:1", installation.instance);
    docker(&["tag", base_image(), &reference]);
    let recorder = Arc::new(Recorder::default());
    let image = installation.engine.obtain(&owner, &reference.parse().unwrap(), recorder.clone()).await;
    docker(&["image", "rm", &reference]);
    let image = image.unwrap_or_else(|error| panic!("{error}: {}", recorder.text()));
    assert!(recorder.text().contains("the local image"), "{}", recorder.text());
    assert_eq!(image, ImageName::of(owner.application, owner.deployment));
    installation.engine.start(&plan(owner, image.clone())).await.unwrap();
    let found = installation.engine.everything().await.unwrap();
    let is_it =
        |what: &DiscoveredObject| matches!(what, DiscoveredObject::Image { name, .. } if *name == image);
    assert!(found.iter().any(|found| found.owner == owner && is_it(&found.what)));
}

#[tokio::test]
async fn an_image_that_is_nowhere_is_refused() {
    let installation = Installation::new();
    let somebodys = owner();
    let secret = installation.image(somebodys, "echo secret").await;
    let id = docker(&["image", "inspect", "--format", "{{.Id}}", secret.as_str()]).replace("sha256:", "");
    for reference in [
        "127.0.0.1:9/no/such:image",
        secret.as_str(),
        &format!("docker.io/{}", secret.as_str()),
        &id,
        &id[..12],
        &format!("sha256:{}", id.trim()),
        &format!("sha256:{}", &id[..12]),
        &format!("docker.io/library/sha256:{}", &id[..12]),
    ] {
        let obtained = installation
            .engine
            .obtain(&owner(), &reference.parse().unwrap(), Arc::new(Recorder::default()))
            .await;
        // A name without a tag is shown with the usual one.
        let expected = format!("there is no image `{reference}");
        assert!(
            matches!(&obtained, Err(StepError::Rejected(sentence)) if sentence.starts_with(&expected)),
            "{obtained:?}"
        );
    }
    assert_eq!(installation.traces.images().len(), 1);
}

#[tokio::test]
async fn the_image_of_an_earlier_deployment_gets_a_second_name() {
    let installation = Installation::new();
    let earlier = owner();
    let image = installation.image(earlier, "sleep 600").await;
    let later = launchway_domain::deployments::Owner { deployment: owner().deployment, ..earlier };
    let reused = installation.engine.reuse(&later, &image).await.unwrap();
    assert_eq!(installation.engine.reuse(&later, &image).await.as_ref(), Ok(&reused));
    assert_eq!(reused, ImageName::of(later.application, later.deployment));
    for found in installation.engine.everything().await.unwrap() {
        if found.owner.deployment == earlier.deployment {
            EngineInventory::remove(&*installation.engine, &found).await.unwrap();
        }
    }
    installation.engine.start(&plan(later, reused)).await.unwrap();
    let gone = installation.engine.reuse(&later, &image).await;
    let expected = "the image of that deployment no longer exists";
    assert_eq!(gone, Err(StepError::Rejected(expected.to_owned())));
}
