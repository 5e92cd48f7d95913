//! The command lines themselves: no text of a user is an option.

use std::{fs, sync::Arc};

use launchway_domain::deployments::{Deployer as _, ImageBuilder as _, ImageName};
use launchway_testkit::docker::{FakeCall, FakeDocker};
use proptest::prelude::*;

use crate::{
    installation::{Installation, owner, plan, variables},
    recorder::Recorder,
};

/// A docker that has every object and always succeeds.
const WILLING: &str = r#"cat >/dev/null
id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
case "$1 $2" in
'build --help') echo '--memory-swap' ;;
'network ls') echo $id ;;
'network inspect') echo '{"id":"'$id'","created":"2026-01-01T00:00:00Z","subnets":[{"Subnet":"10.192.0.0/24"}]}' ;;
'create '* | 'run '*) echo $id ;;
'container inspect') echo '{"id":"'$id'","name":"/x","state":{"Running":true},"networks":{"n":{"IPAddress":"10.192.0.2"}}}' ;;
esac"#;

/// The options that docker is given, each with its number of arguments.
const OPTIONS: &[(&str, usize)] = &[
    ("--pull", 1),
    ("--name", 1),
    ("--network", 1),
    ("--ip", 1),
    ("--restart", 1),
    ("--security-opt", 1),
    ("--cap-drop", 1),
    ("--cap-add", 1),
    ("--pids-limit", 1),
    ("--memory", 1),
    ("--memory-swap", 1),
    ("--cpu-shares", 1),
    ("--cpu-period", 1),
    ("--cpu-quota", 1),
    ("--cgroup-parent", 1),
    ("--log-driver", 1),
    ("--log-opt", 1),
    ("--label", 1),
    ("--env-file", 1),
    ("--env", 1),
    ("--entrypoint", 1),
    ("--force-rm", 0),
    ("--no-healthcheck", 0),
    ("--cache-from", 1),
    ("--build-arg", 1),
    ("--tag", 1),
    ("--file", 1),
];

/// Returns a command line without our options: its command and its operands.
fn operands(call: &FakeCall) -> Vec<String> {
    let mut rest = call.arguments.iter();
    let mut operands = vec![rest.next().unwrap().clone()];
    while let Some(argument) = rest.next() {
        match OPTIONS.iter().find(|(name, _)| name == argument) {
            Some((_, values)) => {
                for _ in 0..*values {
                    rest.next().unwrap();
                }
            }
            None => {
                operands.push(argument.clone());
                break;
            }
        }
    }
    // Behind the first operand docker knows no options.
    operands.extend(rest.cloned());
    operands
}

fn the_call<'a>(calls: &'a [FakeCall], command: &str) -> &'a FakeCall {
    let mut found = calls.iter().filter(|call| call.arguments[0] == command && call.arguments[1] != "--help");
    let call = found.next().unwrap();
    assert!(found.next().is_none());
    call
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn nothing_that_people_wrote_becomes_an_option(
        name in "[A-Z_]{1,10}",
        value in "(--privileged|-v=/:/host|\\PC{0,20}|a\nb)",
        command in "(--privileged|-x|;id|\\PC{1,20})",
        folder in "(--output|-|[a-z -]{1,10})",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fake = FakeDocker::running(WILLING);
        let installation = Installation::with(|options| options.program = fake.program());
        let Ok(base_path) = folder.parse::<launchway_domain::applications::BasePath>() else { return Ok(()) };
        installation.write(format!("{}/Dockerfile", base_path.relative()).trim_start_matches('/'), "FROM scratch");
        let owner = owner();
        let image = ImageName::of(owner.application, owner.deployment);
        let mut build = installation.plan(owner);
        (build.base_path, build.variables) = (base_path, variables(&[(&name, &value)]));
        runtime.block_on(installation.engine.build(&build, Arc::new(Recorder::default()))).unwrap();
        let calls = fake.calls();
        let context = fs::canonicalize(installation.root().join(build.base_path.relative())).unwrap();
        let built = operands(the_call(&calls, "build"));
        prop_assert_eq!(&built[..], ["build".to_owned(), context.to_str().unwrap().to_owned()]);

        let fake = FakeDocker::running(WILLING);
        let installation = Installation::with(|options| options.program = fake.program());
        let mut plan = plan(owner, image.clone());
        plan.environment = variables(&[(&name, &value)]);
        let parsed = command.parse().unwrap();
        let run = installation.engine.run_once(&plan, &parsed, Arc::new(Recorder::default()));
        runtime.block_on(run).unwrap();
        let calls = fake.calls();
        let create = the_call(&calls, "create");
        let made = operands(create);
        prop_assert_eq!(&made[..], ["create".to_owned(), image.as_str().to_owned(), "-c".to_owned(), "--".to_owned(), command]);
        let secret = value.len() > 3;
        let before_command = &create.arguments[..create.arguments.len() - 1];
        prop_assert!(!secret || before_command.iter().all(|argument| !argument.contains(&value)));
    }
}

#[tokio::test]
async fn a_container_is_made_by_exactly_these_words() {
    let fake = FakeDocker::running(WILLING);
    let installation = Installation::with(|options| options.program = fake.program());
    let owner = owner();
    let image = ImageName::of(owner.application, owner.deployment);
    let mut plan = plan(owner, image.clone());
    plan.environment = variables(&[("PLAIN", "a"), ("LINES", "a\nb")]);
    installation.engine.start(&plan).await.unwrap();
    let calls = fake.calls();
    let run = the_call(&calls, "run");
    let network = "a".repeat(64);
    let mut expected = format!(
        "run --detach --pull never --name launchway-{}-1 --network {network} --restart no \
         --no-healthcheck --security-opt no-new-privileges --cap-drop ALL --ip 10.192.0.128 --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add FOWNER --cap-add \
         FSETID --cap-add KILL --cap-add NET_BIND_SERVICE --cap-add SETGID --cap-add SETUID --pids-limit 512 \
         --memory 1073741824 --memory-swap 1073741824 --cpu-shares 512 --log-driver json-file --log-opt max-size=10m --log-opt \
         max-file=3 --label launchway.instance={} --label launchway.organization={} --label \
         launchway.application={} --label launchway.deployment={} --label launchway.attempt=1 --label launchway.service= --label launchway.address=10.192.0.128 --label launchway.port={} --label launchway.copy=1 --label ",
        owner.deployment,
        installation.instance,
        owner.organization,
        owner.application,
        owner.deployment,
        plan.port.get(),
    );
    let joined = run.arguments.join(" ");
    let call =
        joined.strip_prefix(&expected).unwrap_or_else(|| panic!("{joined}")).split(' ').next().unwrap();
    assert!(call.starts_with("launchway.call="), "{call}");
    expected += &format!("{call} --env-file /dev/stdin --env LINES {}", image.as_str());
    assert_eq!(joined, expected);
    assert!(run.environment.contains(&"LINES=a\nb".to_owned()));
    let names: Vec<_> =
        run.environment.iter().filter_map(|pair| pair.split_once('=')).map(|(name, _)| name).collect();
    let known = [
        "PATH",
        "HOME",
        "DOCKER_CONFIG",
        "DOCKER_HOST",
        "DOCKER_CERT_PATH",
        "DOCKER_TLS_VERIFY",
        "LINES",
        "PWD",
    ];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
}
