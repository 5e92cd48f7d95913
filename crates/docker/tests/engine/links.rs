//! Repositories whose links point out of the checkout.

use std::{fs, os::unix::fs::symlink, sync::Arc};

use launchway_domain::deployments::{ImageBuilder as _, StepError};
use launchway_testkit::docker::base_image;

use crate::{
    installation::{Installation, owner},
    recorder::Recorder,
};

/// A text that must never be seen.
const CANARY: &str = "CANARY-5f1d2a";

/// Builds with these links, and checks that nothing of the host was seen. Beside the checkout there are a
/// file and a folder with a Dockerfile, both with the canary.
async fn refused(links: &[(&str, &str)], base_path: &str, dockerfile: &str) {
    let installation = Installation::new();
    let root = installation.root();
    let outside = root.parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("Dockerfile"), format!("FROM {}\nRUN echo {CANARY}\n", base_image())).unwrap();
    fs::write(outside.join("secret"), format!("{CANARY}\n")).unwrap();
    installation.write("real/Dockerfile", &format!("FROM {}\n", base_image()));
    for (path, target) in links {
        let target = target.replace("OUTSIDE", outside.to_str().unwrap());
        symlink(target, root.join(path)).unwrap();
    }
    let mut plan = installation.plan(owner());
    plan.base_path = base_path.parse().unwrap();
    plan.dockerfile = dockerfile.parse().unwrap();
    let recorder = Arc::new(Recorder::default());
    let error = installation.engine.build(&plan, recorder.clone()).await.unwrap_err();
    let StepError::Rejected(message) = error else { panic!("{error:?}") };
    assert!(message.ends_with("is a link to a path outside the repository"), "{message}");
    assert!(!message.contains(CANARY) && !recorder.text().contains(CANARY), "{message} {}", recorder.text());
}

#[tokio::test]
async fn a_dockerfile_that_is_a_link_out_shows_nothing() {
    refused(&[("Dockerfile", "OUTSIDE/secret")], "/", "Dockerfile").await;
    refused(&[("Dockerfile", "../outside/Dockerfile")], "/", "Dockerfile").await;
    refused(&[("first", "second"), ("second", "real/../../outside/secret")], "/", "first").await;
}

#[tokio::test]
async fn a_folder_that_is_a_link_out_shows_nothing() {
    refused(&[("app", "OUTSIDE")], "/app", "Dockerfile").await;
    refused(&[("app", "../outside")], "/app", "Dockerfile").await;
    refused(&[("app", "../outside")], "/", "app/Dockerfile").await;
    refused(&[("app", "..")], "/app/outside", "Dockerfile").await;
}

#[tokio::test]
async fn a_list_of_ignored_files_that_is_a_link_out_shows_nothing() {
    refused(&[("real/.dockerignore", "OUTSIDE/secret")], "/real", "Dockerfile").await;
}

#[tokio::test]
async fn a_link_out_that_is_copied_brings_nothing_in() {
    let installation = Installation::new();
    let outside = installation.root().parent().unwrap().join("secret");
    fs::write(&outside, CANARY).unwrap();
    symlink(&outside, installation.root().join("leak")).unwrap();
    symlink("../secret", installation.root().join("relative")).unwrap();
    let text = format!("FROM {}\nCOPY . /all/\nRUN cat /all/leak /all/relative || true\n", base_image());
    installation.write("Dockerfile", &text);
    let recorder = Arc::new(Recorder::default());
    let built = installation.engine.build(&installation.plan(owner()), recorder.clone()).await;
    assert!(built.is_ok(), "{built:?}");
    assert!(!recorder.text().contains(CANARY), "{}", recorder.text());
    for file in ["leak", "relative"] {
        installation.write("Dockerfile", &format!("FROM {}\nCOPY {file} /x\nRUN cat /x\n", base_image()));
        let recorder = Arc::new(Recorder::default());
        let built = installation.engine.build(&installation.plan(owner()), recorder.clone()).await;
        let expected = format!("{built:?} {}", recorder.text());
        assert!(!expected.contains(CANARY), "{expected}");
    }
}
