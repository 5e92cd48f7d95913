//! Finding and invoking the compose client.

use launchway_domain::deployments::StepError;
use launchway_testkit::docker::{FakeCall, FakeDocker, base_image};

use super::{Composing, plan};
use crate::installation::owner;

/// A docker that has every object, and `version` as its plugin.
fn willing(version: &str) -> String {
    format!(
        r#"id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
case "$1 $2" in
'compose version') {version} ;;
'build --help') echo '--memory-swap' ;;
'network ls') echo $id ;;
'network inspect') echo '{{"id":"'$id'","created":"2026-01-01T00:00:00Z","subnets":[{{"Subnet":"10.192.0.0/24"}}]}}' ;;
'image ls') echo sha256:$id ;;
'image inspect') echo '{{"triggers":null,"os":"linux","architecture":"amd64"}}' ;;
'ps --all') echo $id ;;
'container inspect') echo '{{"id":"'$id'","name":"/x","labels":{{"launchway.service":"web","launchway.place":"0","launchway.web":"true"}},"state":{{"Running":true}},"networks":{{"n":{{"IPAddress":"10.192.0.2"}}}}}}' ;;
esac
cat >/dev/null"#
    )
}

const FILE: &str = "services: {web: {image: some/thing:1, expose: [8080], environment: {A: $SECRET}}}";

fn ups(fake: &FakeDocker) -> Vec<FakeCall> {
    fake.calls().into_iter().filter(|call| call.arguments.contains(&"up".to_owned())).collect()
}

async fn run(composing: &Composing) -> Result<(), StepError> {
    let mut plan = plan(owner());
    plan.environment =
        crate::installation::variables(&[("SECRET", "hunter2"), ("DOCKER_HOST", "tcp://evil")]);
    composing.installation.write("compose.yaml", FILE);
    composing.compose(&plan).await?;
    composing.start(&plan).await.map(drop)
}

#[tokio::test]
async fn the_plugin_is_preferred() {
    let docker = FakeDocker::running(&willing("echo v2.26.1"));
    let program = FakeDocker::running("echo 1.29.2");
    let composing = Composing::with(|options| {
        options.program = docker.program();
        options.compose_program = program.program();
    });
    run(&composing).await.unwrap();
    let ups = ups(&docker);
    assert_eq!((ups.len(), program.calls().len()), (1, 0));
    let words = ups[0].arguments.join(" ");
    assert!(words.starts_with("compose --project-name launchway-"), "{words}");
    assert!(words.ends_with("-1 --file - up --detach --no-build"), "{words}");
}

#[tokio::test]
async fn the_program_is_taken_without_the_plugin() {
    let docker = FakeDocker::running(&willing("echo unknown >&2; exit 125"));
    let program = FakeDocker::running("cat >/dev/null; echo 1.29.2");
    let composing = Composing::with(|options| {
        options.program = docker.program();
        options.compose_program = program.program();
    });
    run(&composing).await.unwrap();
    let ups = ups(&program);
    assert_eq!(ups.len(), 1);
    assert!(ups[0].arguments.join(" ").ends_with("--file - up --detach --no-build"));
    for call in &ups {
        let reveals = |text: &String| text.contains("hunter2") || text.contains("evil");
        assert!(!call.arguments.iter().any(reveals) && !call.environment.iter().any(reveals), "{call:?}");
    }
}

#[tokio::test]
async fn without_either_it_says_how_to_get_one() {
    let docker =
        FakeDocker::running(&willing("echo \"docker: 'compose' is not a docker command.\" >&2; exit 1"));
    let composing = Composing::with(|options| {
        options.program = docker.program();
        options.compose_program = "no-such-compose".into();
    });
    let message = run(&composing).await.unwrap_err();
    assert_eq!(
        message,
        StepError::Rejected(
            "neither `docker compose` nor `docker-compose` is installed on the server: install the package \
             `docker-compose-plugin` of docker.com, or `docker-compose` of Debian"
                .to_owned()
        )
    );
    assert!(docker.calls().iter().all(|call| call.arguments[0] == "compose"), "nothing was built or started");
}

#[tokio::test]
async fn rejects_a_hostile_file_before_calling_the_engine() {
    let docker = FakeDocker::running(&willing("echo v2.26.1"));
    let composing = Composing::with(|options| options.program = docker.program());
    let base = base_image();
    composing.installation.write("large.env", &format!("A='{}'\n", "x".repeat(200 * 1024)));
    composing.installation.write("small.env", "A=1\n");
    // The same file under many names.
    let often = |file: &str, times: usize| {
        let names: Vec<_> = (0..times).map(|number| format!("{}{file}", "./".repeat(number))).collect();
        format!("env_file: [{}]", names.join(", "))
    };
    for (line, expected) in [
        (
            often("large.env", 6).as_str(),
            "the files that `env_file` names are more than 100, or have more than",
        ),
        (&often("small.env", 101), "the files that `env_file` names are more than 100, or have more than"),
        ("privileged: true", "may not have `privileged`"),
        ("volumes: ['/var/run/docker.sock:/x']", "may not mount a folder or file of this machine"),
        ("env_file: /etc/passwd", "the file `/etc/passwd` is a link to a path outside the repository"),
        ("env_file: ../../x", "the file `../../x` is a link to a path outside the repository"),
        ("env_file: nothing.env", "there is no file `nothing.env` in the repository"),
    ] {
        let file = format!("services:\n  web:\n    image: {base}\n    expose: [8080]\n    {line}\n");
        composing.installation.write("compose.yaml", &file);
        let refused = composing.compose(&plan(owner())).await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let asked: Vec<_> = docker.calls().into_iter().map(|call| call.arguments[..2].join(" ")).collect();
    assert!(asked.iter().all(|call| call == "compose version"), "{asked:?}");
}

#[tokio::test]
async fn the_file_is_found_by_its_usual_names_or_by_its_own() {
    let docker = FakeDocker::running(&willing("echo v2.26.1"));
    let composing = Composing::with(|options| options.program = docker.program());
    let file = |image: &str| format!("services: {{{image}: {{image: some/thing, expose: [8080]}}}}");
    let message = composing.compose(&plan(owner())).await.unwrap_err().to_string();
    assert_eq!(
        message,
        "there is no compose file in `/`: looked for `compose.yaml`, `compose.yml`, `docker-compose.yaml`, `docker-compose.yml`"
    );
    for name in ["docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml"] {
        let service = name.replace('.', "-");
        composing.installation.write(name, &file(&service));
        assert_eq!(composing.compose(&plan(owner())).await.unwrap().web.as_str(), service);
    }
    composing.installation.write("deploy/own.yml", &file("own"));
    let source = launchway_domain::deployments::ComposeSource {
        base_path: "/deploy".parse().unwrap(),
        file: "own.yml".parse().unwrap(),
        ..composing.source()
    };
    let output = std::sync::Arc::new(crate::recorder::Recorder::default());
    use launchway_domain::deployments::Composer as _;
    let composed = composing.compositions.compose(&plan(owner()), &source, output).await;
    assert_eq!(composed.unwrap().web.as_str(), "own");
}
