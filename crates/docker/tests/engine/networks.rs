//! One network for each organization.

use std::sync::Arc;

use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::deployments::{Container, Deployer, ImageBuilder as _, ImageName};
use launchway_testkit::docker::{FakeDocker, base_image, docker};

use crate::{
    installation::{Installation, owner, owner_in, plan},
    recorder::Recorder,
};

const SERVER: &str = "mkdir -p /www; echo hello > /www/index.html; exec httpd -f -p 8080 -h /www";

/// Returns whether one container reaches a page of another in at least one of several tries.
async fn reaches(from: &Container, to: &Container, tries: usize) -> bool {
    let url = format!("http://{}:8080/", to.address);
    for _ in 0..tries {
        let script = format!("timeout 1 wget -q -O - {url} || echo failed");
        if docker(&["exec", from.id.as_str(), "sh", "-c", &script]).contains("hello") {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    false
}

#[tokio::test]
async fn organizations_do_not_reach_each_other() {
    let installation = Installation::new();
    let (ours, theirs) = (owner(), owner());
    let one = installation.container(ours, SERVER).await;
    let sibling = installation.container(owner_in(ours.organization), SERVER).await;
    let stranger = installation.container(theirs, SERVER).await;
    assert!(reaches(&stranger, &stranger, 20).await);
    assert!(reaches(&one, &sibling, 20).await);
    assert!(reaches(&sibling, &one, 20).await);
    assert!(!reaches(&one, &stranger, 2).await);
    assert!(!reaches(&stranger, &one, 2).await);
    assert_eq!(installation.traces.networks().len(), 2);
}

#[tokio::test]
async fn a_network_is_from_the_pool_and_its_containers_have_no_other() {
    let installation = Installation::new();
    let owner = owner();
    let container = installation.container(owner, "sleep 600").await;
    let pool = DockerOptions::new(installation.instance).network_pool;
    let std::net::IpAddr::V4(address) = container.address else { panic!("{container:?}") };
    assert!(pool.contains(&address));
    let format = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}},{{end}}";
    let networks = docker(&["inspect", "--format", format, container.id.as_str()]);
    assert_eq!(networks, format!("launchway-{},", owner.organization));
    let format = r#"{{index .Labels "launchway.instance"}} {{index .Labels "launchway.organization"}}"#;
    let labels = docker(&["network", "inspect", "--format", format, &installation.traces.networks()[0]]);
    assert_eq!(labels, format!("{} {}", installation.instance, owner.organization));
}

#[tokio::test]
async fn those_who_come_first_at_the_same_moment_share_one_network() {
    let installation = Installation::new();
    let owner = owner();
    let image = installation.image(owner, "sleep 600").await;
    // Two servers of the same installation, of which neither knows of the other.
    let other = Arc::new(DockerEngine::new(DockerOptions::new(installation.instance)));
    let mut starts = tokio::task::JoinSet::new();
    for number in 0..6 {
        let engine = if number % 2 == 0 { installation.engine.clone() } else { other.clone() };
        let plan = plan(owner_in(owner.organization), image.clone());
        starts.spawn(async move { engine.start(&plan).await });
    }
    let started = starts.join_all().await;
    assert!(started.iter().all(Result::is_ok), "{started:?}");
    let mut addresses: Vec<_> = started.into_iter().map(|container| container.unwrap().address).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!((addresses.len(), installation.traces.networks().len()), (6, 1));
}

#[tokio::test]
async fn a_network_is_looked_for_once() {
    let fake = FakeDocker::running(
        r#"cat >/dev/null
        id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        case "$1 $2" in
        'network ls') echo $id ;;
        'network inspect') echo '{"id":"'$id'","created":"2026-01-01T00:00:00Z","subnets":[]}' ;;
        'run '*) echo $id ;;
        'container inspect') echo '{"id":"'$id'","name":"/x","networks":{"n":{"IPAddress":"10.192.0.2"}}}' ;;
        esac"#,
    );
    let installation = Installation::with(|options| options.program = fake.program());
    let first = owner();
    for owner in [first, owner_in(first.organization)] {
        let image = ImageName::of(owner.application, owner.deployment);
        installation.engine.start(&plan(owner, image)).await.unwrap();
    }
    let questions = fake.calls().into_iter().filter(|call| call.arguments[0] == "network");
    assert_eq!(questions.count(), 2);
}

/// The networks of an engine after `docker swarm init`, as Docker 20.10 lists them: the id of `ingress` is Swarm's.
const IN_A_SWARM: &str = r#"{"id":"1a64ccb6061533282c13e9e0501f4b7215b23cf994a65c0a159df72d0ac7bc8d","name":"bridge","created":"2026-11-16T10:44:43.854349115Z","labels":{},"subnets":[{"Subnet":"172.17.0.0/16"}]}
{"id":"142e87f3e174986a962dcde0027e337087725508aa8f3c850c49b4c632f1c9e4","name":"host","created":"2026-11-16T10:44:43.764078903Z","labels":{},"subnets":[]}
{"id":"jfxld5xlhxu62it2nmxfh6ki2","name":"ingress","created":"2026-11-16T10:44:45.187220422Z","labels":{},"subnets":[{"Gateway":"10.0.0.1","Subnet":"10.0.0.0/24"}]}"#;

#[tokio::test]
async fn an_engine_in_a_swarm_gets_networks_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let created = folder.path().join("created").display().to_string();
    let ids = IN_A_SWARM.lines().map(|line| line.split('"').nth(3).unwrap()).collect::<Vec<_>>().join(" ");
    let fake = FakeDocker::running(&format!(
        r#"cat >/dev/null
        id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        case "$*" in
        'network ls '*label=*) test ! -e {created} || echo $id ;;
        'network ls '*) printf '%s\n' {ids} ;;
        'network inspect '*$id) echo '{{"id":"'$id'","created":"2026-01-01T00:00:00Z","subnets":[]}}' ;;
        'network inspect '*) cat <<'END'
{IN_A_SWARM}
END
        ;;
        'network create '*) touch {created}; echo $id ;;
        'run '*) echo $id ;;
        'container inspect '*) echo '{{"id":"'$id'","name":"/x","networks":{{"n":{{"IPAddress":"10.0.1.2"}}}}}}' ;;
        esac"#
    ));
    let installation = Installation::with(|options| {
        options.program = fake.program();
        options.network_pool = "10.0.0.0/16".parse().unwrap();
    });
    let owner = owner();
    let image = ImageName::of(owner.application, owner.deployment);
    installation.engine.start(&plan(owner, image)).await.unwrap();
    let calls = fake.calls();
    let create = calls.iter().find(|call| call.arguments[..2] == ["network", "create"]).unwrap();
    let subnet = create.arguments.iter().skip_while(|argument| *argument != "--subnet").nth(1).unwrap();
    assert!(subnet.starts_with("10.0.") && subnet != "10.0.0.0/24", "{create:?}");
}

#[tokio::test]
async fn a_network_that_somebody_removed_is_made_anew() {
    let installation = Installation::new();
    let owner = owner();
    let image = installation.image(owner, "sleep 600").await;
    let lost = installation.traces.networks();
    docker(&["network", "rm", &lost[0]]);

    let container = installation.engine.start(&plan(owner, image.clone())).await.unwrap();
    let anew = installation.traces.networks();
    assert!(anew.len() == 1 && anew != lost, "{anew:?}");
    assert_eq!(installation.traces.containers(), [container.id.as_str()]);

    Deployer::remove(&*installation.engine, owner.deployment).await.unwrap();
    docker(&["network", "rm", &anew[0]]);
    let output = Arc::new(Recorder::default());
    let command = "echo well".parse().unwrap();
    installation.engine.run_once(&plan(owner, image), &command, output.clone()).await.unwrap();
    assert!(output.text().contains("well"));
    assert_eq!(installation.traces.containers(), Vec::<String>::new());

    docker(&["network", "rm", &installation.traces.networks()[0]]);
    installation.write("Dockerfile", &format!("FROM {}\nRUN echo step\n", base_image()));
    installation.engine.build(&installation.plan(owner), output).await.unwrap();
    assert_eq!(installation.traces.networks().len(), 1);
}

/// A pool of four networks that no other test uses, by the bytes that vary.
fn pool_of_its_own() -> (u8, u8) {
    let bytes = *uuid::Uuid::from(owner().deployment).as_bytes();
    (160 + bytes[14] % 16, bytes[15] & 0b1111_1100)
}

/// A bridge of the machine that is unknown to the engine, such as another engine or a VPN creates.
struct Bridge(String);

impl Bridge {
    fn with(name: String, address: &str) -> Self {
        let bridge = Self(name);
        let name = &bridge.0;
        on_the_machine(&format!(
            "ip link add {name} type bridge && ip addr add {address} dev {name} && ip link set {name} up"
        ));
        bridge
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        on_the_machine(&format!("ip link del {}", self.0));
    }
}

fn on_the_machine(script: &str) {
    let as_its_admin = ["run", "--rm", "--cap-add", "NET_ADMIN", "--network", "host"];
    docker(&[&as_its_admin[..], &[base_image(), "sh", "-c", script]].concat());
}

#[tokio::test]
async fn a_subnet_that_the_machine_reaches_already_is_left_alone() {
    let (second, third) = pool_of_its_own();
    let _bridge = Bridge::with(format!("lw-{second}-{third}"), &format!("10.{second}.{third}.1/24"));
    let pool = format!("10.{second}.{third}.0/22");
    let installation = Installation::with(|options| options.network_pool = pool.parse().unwrap());
    let container = installation.container(owner(), "sleep 600").await;
    let expected = format!("10.{second}.{}.", third + 1);
    assert!(container.address.to_string().starts_with(&expected), "{container:?}");
}

#[tokio::test]
async fn a_subnet_that_somebody_has_is_left_alone() {
    let (second, third) = pool_of_its_own();
    let pool = format!("10.{second}.{third}.0/22");
    let installation = Installation::with(|options| options.network_pool = pool.parse().unwrap());
    let owners = [owner(), owner(), owner(), owner()];
    for (number, owner) in (0..).zip(owners) {
        let container = installation.container(owner, "sleep 600").await;
        let expected = format!("10.{second}.{}.", third + number);
        assert!(container.address.to_string().starts_with(&expected), "{container:?}");
    }
    let image = installation.image(owners[0], "sleep 600").await;
    let full = installation.engine.start(&plan(owner(), image)).await.unwrap_err();
    assert_eq!(full.to_string(), "the address pool has no room for another network");
}
