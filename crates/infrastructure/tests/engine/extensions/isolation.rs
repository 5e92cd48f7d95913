//! Nothing of another organization, extension or deployment is ever reached.

use launchway_domain::{
    deployments::{Deployer as _, EngineInventory as _, StepError},
    extensions::{Action, ComposeAction, ComposeText, DockerAction, ExtensionRunner as _},
};
use launchway_testkit::docker::{FakeDocker, base_image, docker};

use super::{Extending, is_running, organization, run_it, scripted, spec};
use crate::installation::{Installation, owner, owner_in, plan, variables};

fn verbs(name: &str) -> [Action; 3] {
    [DockerAction::Start, DockerAction::Stop, DockerAction::Remove]
        .map(|verb| Action::Docker(verb(name.parse().unwrap())))
}

#[tokio::test]
async fn containers_of_others_are_not_reached() {
    let (extending, ours, theirs) = (Extending::new(), organization(), organization());
    let run = extending.begin(ours, "postgres").await;
    extending.done(&run, 1, &run_it(spec("db"))).await;
    let name = extending.engine_name(&run, "db").await;
    for (whose, extension) in [(theirs, "postgres"), (ours, "redis")] {
        let other = extending.begin(whose, extension).await;
        for (order, verb) in (1..).zip(verbs("db")) {
            let done = extending.perform(&other, order, &verb).await;
            assert!(matches!(done, Err(StepError::Rejected(_)) | Ok(0)), "{done:?}");
            extending.revert(&other, order, &verb).await.unwrap();
        }
        let down = Action::Compose(ComposeAction::Down { project: "db".parse().unwrap() });
        extending.done(&other, 4, &down).await;
        extending.runner.finish(&other).await.unwrap();
        extending.runner.uninstall(whose, &extension.parse().unwrap(), true).await.unwrap();
        assert!(
            extending
                .runner
                .container(&other, &"db".parse().unwrap(), 80_u16.try_into().unwrap())
                .await
                .is_err()
        );
        assert!(is_running(&name));
    }
    // One of the same extension that another run made is theirs to stop, but not to lead traffic to.
    let later = extending.begin(ours, "postgres").await;
    let expected = "this run has created no running container `db`";
    let found = extending.runner.container(&later, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await;
    assert_eq!(found, Err(StepError::Rejected(expected.to_owned())));
}

#[tokio::test]
async fn a_name_that_another_extension_answers_to_is_refused() {
    let (extending, ours) = (Extending::new(), organization());
    let run = extending.begin(ours, "postgres").await;
    extending.done(&run, 1, &run_it(spec("db"))).await;
    let other = extending.begin(ours, "mariadb").await;
    let expected = "the name `db` is used by another resource of this organization: choose another";
    let refused = Err(StepError::Rejected(expected.to_owned()));
    assert_eq!(extending.perform(&other, 1, &run_it(spec("db"))).await, refused);
    let file = format!("services: {{db: {{image: '{}'}}}}", base_image());
    let up = ComposeAction::Up { project: "shop".parse().unwrap(), file: ComposeText::Inline(file) };
    assert_eq!(extending.perform(&other, 2, &Action::Compose(up)).await.map(drop), refused.map(|_: i32| ()));
    let elsewhere = extending.begin(organization(), "mariadb").await;
    extending.done(&elsewhere, 1, &run_it(spec("db"))).await;
}

#[tokio::test]
async fn an_organization_reaches_only_its_own_containers_by_name() {
    let (extending, ours, theirs) = (Extending::new(), organization(), organization());
    let serve = || run_it(scripted("web", "echo hello > /www/index.html; exec httpd -f -p 8080 -h /www"));
    let run = extending.begin(ours, "site").await;
    extending.done(&run, 1, &serve()).await;
    let address = extending
        .runner
        .container(&run, &"web".parse().unwrap(), 80_u16.try_into().unwrap())
        .await
        .unwrap()
        .address;
    let ask = |whose, at: String| {
        let (extending, at) = (&extending, at);
        async move {
            let asking = extending.begin(whose, "asker").await;
            let mut task = scripted(
                "ask",
                &format!(
                    "for i in 1 2 3; do timeout 2 wget -q -O - http://{at}:8080/ && exit 0; done; exit 9"
                ),
            );
            task.is_detached = false;
            extending.perform(&asking, 1, &run_it(task)).await
        }
    };
    assert_eq!(ask(ours, "web".to_owned()).await, Ok(0));
    assert_eq!(ask(theirs, "web".to_owned()).await, Ok(9));
    assert_eq!(ask(theirs, address.to_string()).await, Ok(9));
    // A container of an application of the same organization reaches it, too.
    let application = extending.installation.container(owner_in(ours), "sleep 600").await;
    let script = "timeout 2 wget -q -O - http://web:8080/";
    assert_eq!(docker(&["exec", application.id.as_str(), "sh", "-c", script]), "hello");
}

#[tokio::test]
async fn images_of_deployments_are_nobodys_to_run() {
    let extending = Extending::new();
    let image = extending.installation.image(owner(), "sleep 600").await;
    let id = docker(&["image", "inspect", "--format", "{{.Id}}", image.as_str()]);
    let tag = format!("leaked-{}:latest", &id[7..23]);
    docker(&["tag", image.as_str(), &tag]);
    let run = extending.begin(organization(), "thief").await;
    let short = &id[7..19];
    for reference in [image.as_str(), &tag, &id, short, &format!("docker.io/library/{id}")] {
        let Ok(image) = reference.parse() else { continue };
        let mut wanted = spec("db");
        wanted.image = image;
        let stolen = extending.perform(&run, 1, &run_it(wanted.clone())).await;
        assert!(matches!(stolen, Err(StepError::Rejected(_))), "{reference}: {stolen:?}");
        let file = format!("services: {{db: {{image: '{reference}'}}}}");
        let up = ComposeAction::Up { project: "shop".parse().unwrap(), file: ComposeText::Inline(file) };
        let stolen = extending.perform(&run, 2, &Action::Compose(up)).await;
        assert!(matches!(stolen, Err(StepError::Rejected(_))), "{reference}: {stolen:?}");
    }
    docker(&["image", "rm", &tag]);
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn volumes_outlive_containers_and_go_only_when_that_is_wanted() {
    let (extending, ours) = (Extending::new(), organization());
    let with_data = |name: &str, script: &str| {
        let mut wanted = scripted(name, script);
        wanted.volumes = vec!["data:/data".to_owned().try_into().unwrap()];
        wanted.is_detached = false;
        run_it(wanted)
    };
    let (first, second) = (extending.begin(ours, "store").await, extending.begin(ours, "store").await);
    extending.done(&first, 1, &with_data("write", "echo kept > /data/x")).await;
    extending.done(&second, 1, &with_data("read", "grep kept /data/x")).await;
    let other = extending.begin(ours, "other").await;
    assert_eq!(extending.perform(&other, 1, &with_data("read", "test -e /data/x")).await, Ok(1));
    extending.done(&first, 2, &run_it(spec("db"))).await;
    let store = "store".parse().unwrap();
    for _ in 0..2 {
        extending.runner.uninstall(ours, &store, false).await.unwrap();
    }
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
    assert_eq!(extending.installation.traces.volumes().len(), 2);
    for _ in 0..2 {
        extending.runner.uninstall(ours, &store, true).await.unwrap();
    }
    assert_eq!(extending.installation.traces.volumes().len(), 1, "that of the other extension");
}

#[tokio::test]
async fn a_volume_that_somebody_else_made_is_not_used() {
    let (extending, ours) = (Extending::new(), organization());
    let run = extending.begin(ours, "store").await;
    extending.done(&run, 1, &run_it(spec("db"))).await;
    let container = extending.engine_name(&run, "db").await;
    let volume = format!("{}-data", container.trim_end_matches("-db"));
    docker(&["volume", "create", &volume]);
    let mut wanted = spec("other");
    wanted.volumes = vec!["data:/data".to_owned().try_into().unwrap()];
    let refused = extending.perform(&run, 2, &run_it(wanted)).await;
    docker(&["volume", "rm", &volume]);
    assert!(
        matches!(&refused, Err(StepError::Rejected(message)) if message.contains("belongs to another owner")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn deployments_and_extensions_do_not_see_each_other() {
    let (extending, ours) = (Extending::new(), organization());
    let owner = owner_in(ours);
    let engine = &extending.installation.engine;
    // An image may come with any label.
    let claims = "LABEL launchway.extension=postgres launchway.execution=x launchway.step=1 \
                  launchway.project= launchway.alias=app";
    extending.installation.write(
        "Dockerfile",
        &format!("FROM {}\n{claims}\nCMD [\"/bin/sh\", \"-c\", \"sleep 600\"]\n", base_image()),
    );
    use launchway_domain::deployments::ImageBuilder as _;
    let output = std::sync::Arc::new(crate::recorder::Recorder::default());
    let image = engine.build(&extending.installation.plan(owner), output).await.unwrap();
    let application = engine.start(&plan(owner, image)).await.unwrap();
    let run = extending.begin(ours, "postgres").await;
    let mut wanted = spec("db");
    wanted.volumes = vec!["data:/data".to_owned().try_into().unwrap()];
    extending.done(&run, 1, &run_it(wanted)).await;
    let file = format!("services: {{web: {{image: '{}', command: sleep 600}}}}", base_image());
    let up = ComposeAction::Up { project: "shop".parse().unwrap(), file: ComposeText::Inline(file) };
    extending.done(&run, 2, &Action::Compose(up)).await;

    let found = engine.everything().await.unwrap();
    assert!(found.iter().all(|found| found.owner == owner), "{found:?}");
    assert_eq!(engine.containers().await.unwrap().len(), 1);
    let db =
        extending.runner.container(&run, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await.unwrap();
    for found in &found {
        launchway_domain::deployments::EngineInventory::remove(&**engine, found).await.unwrap_or_default();
    }
    engine.stop(&application.id).await.unwrap();
    assert!(is_running(&db.name) && is_running(&extending.engine_name(&run, "shop-web").await));

    let again =
        engine.start(&plan(owner, extending.installation.image(owner, "sleep 600").await)).await.unwrap();
    extending.runner.uninstall(ours, &"postgres".parse().unwrap(), true).await.unwrap();
    assert_eq!(extending.installation.traces.containers(), [again.id.as_str()]);
}

/// A docker that has every object and always succeeds.
const WILLING: &str = r#"cat >/dev/null
id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
case "$1 $2" in
'network ls') echo $id ;;
'network inspect') echo '{"id":"'$id'","created":"2026-01-01T00:00:00Z","subnets":[{"Subnet":"10.192.0.0/24"}]}' ;;
'image inspect') echo '{"id":"sha256:'$id'","labels":null}' ;;
'create '* | 'run '*) echo $id ;;
esac"#;

#[tokio::test]
async fn command_lines_contain_no_values_and_no_options_of_users() {
    let fake = FakeDocker::running(WILLING);
    let installation = Installation::with(|options| options.program = fake.program());
    let extending = Extending::with(installation, |_| {});
    let run = extending.begin(organization(), "postgres").await;
    let mut wanted = spec("db");
    wanted.command = vec!["--privileged".to_owned(), "--volume=/:/host".to_owned()];
    wanted.environment = variables(&[("PASSWORD", "hunter2"), ("LINES", "hunter3\n")]);
    wanted.ports = vec!["18913:80/udp".to_owned().try_into().unwrap()];
    extending.done(&run, 1, &run_it(wanted)).await;
    let calls = fake.calls();
    assert!(calls.iter().all(|call| !call.arguments.iter().any(|word| word.contains("hunter"))));
    let call = calls.iter().find(|call| call.arguments[0] == "run").unwrap();
    let image = call.arguments.iter().position(|word| word.starts_with("sha256:")).unwrap();
    assert_eq!(call.arguments[image + 1..], ["--privileged", "--volume=/:/host"]);
    let joined = call.arguments[..image].join(" ");
    assert!(joined.contains("--network-alias db --publish 127.0.0.1:18913:80/udp"), "{joined}");
    assert!(!joined.contains("--privileged") && joined.contains("--restart unless-stopped"), "{joined}");
}
