//! Dockerfiles that would read the image of another organization.

use std::sync::Arc;

use launchway_docker::Builder;
use launchway_domain::deployments::{ImageBuilder as _, ImageName, StepError};
use launchway_testkit::docker::{base_image, docker};

use crate::{
    builds::by_buildkit,
    installation::{Installation, owner, variables},
    recorder::Recorder,
};

/// A text that must never be seen.
const CANARY: &str = "CANARY-90b7e3";

/// The image of another organization, by its name and by its id.
struct Theirs {
    name: ImageName,
    id: String,
}

impl Theirs {
    async fn in_installation(installation: &Installation) -> Self {
        installation.write("Dockerfile", &format!("FROM {}\nRUN echo {CANARY} > /secret\n", base_image()));
        let plan = installation.plan(owner());
        let name = installation.engine.build(&plan, Arc::new(Recorder::default())).await.unwrap();
        let id = docker(&["image", "inspect", "--format", "{{.Id}}", name.as_str()]).replace("sha256:", "");
        Self { name, id }
    }
}

/// An image with a trigger that belongs to no deployment; removed on drop.
struct Trap(String);

impl Trap {
    fn new(installation: &Installation, trigger: &str) -> Self {
        let name = format!("launchway-test/trap:{}", installation.instance);
        let container = docker(&["create", base_image()]);
        docker(&["commit", "--change", &format!("ONBUILD {trigger}"), &container, &name]);
        docker(&["rm", &container]);
        Self(name)
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        docker(&["image", "rm", &self.0]);
    }
}

/// Builds it, and returns the reason of the rejection; checks that nothing of the other organization was
/// seen.
async fn refusal(installation: &Installation, dockerfile: &str, pairs: &[(&str, &str)]) -> String {
    installation.write("Dockerfile", dockerfile);
    let mut plan = installation.plan(owner());
    plan.variables = variables(pairs);
    let recorder = Arc::new(Recorder::default());
    let built = installation.engine.build(&plan, recorder.clone()).await;
    assert!(!recorder.text().contains(CANARY), "{dockerfile}: {}", recorder.text());
    match built {
        Err(StepError::Rejected(message)) if !message.contains(CANARY) => message,
        other => panic!("{dockerfile}: {other:?}"),
    }
}

async fn nothing_of_theirs_is_read(installation: Installation) {
    let theirs = Theirs::in_installation(&installation).await;
    let (base, id) = (base_image(), theirs.id.as_str());
    for beginning in [id, &id[..12], &id[..6]] {
        for dockerfile in [
            format!("FROM {beginning}\nRUN cat /secret\n"),
            format!("FROM {base}\nCOPY --from={beginning} /secret /x\nRUN cat /x\n"),
            format!("ARG X={beginning}\nFROM $X\nRUN cat /secret\n"),
            format!("FROM {base}\nONBUILD COPY --from={beginning} /secret /x\n"),
        ] {
            let message = refusal(&installation, &dockerfile, &[]).await;
            assert!(message.contains("could be the beginning of an image's id"), "{message}");
        }
        let message = refusal(&installation, "ARG X\nFROM $X\nRUN cat /secret\n", &[("X", beginning)]).await;
        assert!(message.contains("could be the beginning of an image's id"), "{message}");
    }
    for name in [theirs.name.as_str(), &format!("docker.io/{}", theirs.name.as_str())] {
        let message = refusal(&installation, &format!("FROM {name}\nRUN cat /secret\n"), &[]).await;
        assert_eq!(message, format!("there is no image `{name}`"));
        let copied = format!("FROM {base}\nCOPY --from={name} /secret /x\nRUN cat /x\n");
        assert_eq!(refusal(&installation, &copied, &[]).await, format!("there is no image `{name}`"));
    }
    let message = refusal(&installation, &format!("FROM sha256:{id}\n"), &[]).await;
    assert!(message.ends_with("is not a name of an image"), "{message}");
}

#[tokio::test]
async fn the_legacy_builder_reads_nothing_of_others() {
    nothing_of_theirs_is_read(Installation::with(|options| options.builder = Builder::Legacy)).await;
}

#[tokio::test]
async fn buildkit_reads_nothing_of_others() {
    nothing_of_theirs_is_read(Installation::with(by_buildkit)).await;
}

#[tokio::test]
async fn a_base_does_not_bring_in_what_the_dockerfile_may_not() {
    let installation = Installation::new();
    let theirs = Theirs::in_installation(&installation).await;
    let trap = Trap::new(&installation, &format!("COPY --from={} /secret /x", &theirs.id[..12]));
    let message = refusal(&installation, &format!("FROM {}\nRUN cat /x\n", trap.0), &[]).await;
    assert!(message.contains("could be the beginning of an image's id"), "{message}");
    // The same image as one that was built elsewhere, from a registry that does not exist.
    let elsewhere = format!("127.0.0.1:9/{}", trap.0);
    docker(&["tag", &trap.0, &elsewhere]);
    let recorder = Arc::new(Recorder::default());
    let obtained = installation.engine.obtain(&owner(), &elsewhere.parse().unwrap(), recorder).await;
    docker(&["image", "rm", &elsewhere]);
    let Err(StepError::Rejected(message)) = obtained else { panic!("{obtained:?}") };
    assert!(message.contains("could be the beginning of an image's id"), "{message}");
}

#[tokio::test]
async fn a_harmless_trigger_runs() {
    let installation = Installation::new();
    let trap = Trap::new(&installation, "RUN echo trig''gered");
    installation.write("Dockerfile", &format!("FROM {}\n", trap.0));
    let recorder = Arc::new(Recorder::default());
    let built = installation.engine.build(&installation.plan(owner()), recorder.clone()).await;
    assert!(built.is_ok() && recorder.text().contains("triggered"), "{built:?} {}", recorder.text());
}

#[tokio::test]
async fn a_base_that_does_not_exist_is_reported() {
    let message = refusal(&Installation::new(), "FROM 127.0.0.1:9/no/such:image\n", &[]).await;
    assert!(message.starts_with("there is no image `127.0.0.1:9/no/such:image`: "), "{message}");
}

#[tokio::test]
async fn ordinary_stages_are_built_by_either_builder() {
    for installation in
        [Installation::with(|options| options.builder = Builder::Legacy), Installation::with(by_buildkit)]
    {
        let (name, tag) = base_image().split_once(':').unwrap();
        installation.write(
            "Dockerfile",
            &format!(
                "ARG TAG=none\nARG BASE={name}:${{TAG}}\nFROM ${{BASE}} AS abc123\nRUN echo 1 > /one\n\
                 FROM {name}:{tag}\nRUN echo 2 > /two\nFROM abc123 AS last\nCOPY --from=abc123 /one /x\n\
                 COPY --from=1 /two \\\n  # comment\n  /y\nRUN cat /one /x /y\n"
            ),
        );
        let mut plan = installation.plan(owner());
        plan.variables = variables(&[("TAG", tag)]);
        let recorder = Arc::new(Recorder::default());
        let built = installation.engine.build(&plan, recorder.clone()).await;
        assert!(built.is_ok(), "{built:?} {}", recorder.text());
    }
}
