//! Applications with a compose file: each runs on one machine, which has its volumes.

use std::process::Stdio;

use launchway_testkit::{
    client::Client,
    docker::base_image,
    server::{TestServer, binary},
    swarm::SwarmLab,
};
use serde_json::{Value, json};

use super::harness::SwarmHarness;
use crate::{
    docker::deployments::harness::{DEPLOY, text},
    wait::until,
};

const SHOP: &str = "shop.ada-s-team.localhost";

/// Services whose page comes from the volume of the service `db`, which the first version writes.
fn services(page: &str) -> String {
    format!(
        r#"
services:
  web:
    build: .
    stop_signal: SIGKILL
    depends_on: {{db: {{condition: service_healthy}}}}
    ports: ["80:8080"]
  db:
    build: .
    stop_signal: SIGKILL
    command: sh -c "test -s /data/index.html || echo '{page}' > /data/index.html; exec httpd -f -p 9000 -h /data"
    volumes: ["data:/data"]
    healthcheck: {{test: [CMD, wget, -q, -O, "-", "http://127.0.0.1:9000/index.html"], interval: 1s, retries: 30}}
volumes: {{data: }}
"#
    )
}

const PROXY: &str =
    "echo serving; wget -q -O /www/index.html http://db:9000/index.html; exec httpd -f -p 8080 -h /www";

/// Commits a version, and returns the body of a request that deploys it.
fn shop(swarm: &SwarmHarness, name: &str, page: &str) -> Value {
    let dockerfile = format!("FROM {}\nRUN mkdir -p /www\nCMD {PROXY}\n", base_image());
    swarm.repository(name).write("Dockerfile", dockerfile).write("compose.yaml", services(page)).commit();
    let mut spec = swarm.spec(name, 1);
    spec["build_pack"] = json!("docker-compose");
    spec
}

fn page(server: &TestServer, host: &str) -> Result<String, u16> {
    let answer = server.visitor(host).get("/");
    if answer.status == 200 { Ok(answer.text.trim_end().to_owned()) } else { Err(answer.status) }
}

/// Returns the node of a deployment, all of whose services are there.
fn home_of(swarm: &SwarmHarness, nodes: usize, deployment: &str) -> usize {
    let containers = swarm.lab.containers_of(nodes, deployment);
    assert_eq!(containers.len(), 2, "{containers:?}");
    assert_eq!(containers[0].node, containers[1].node, "{containers:?}");
    containers[0].node
}

fn volumes_on(swarm: &SwarmHarness, node: usize) -> usize {
    let listed = swarm.lab.docker(node, &["volume", "ls", "--quiet", "--filter", "name=launchway-"]);
    listed.lines().count()
}

/// Starts another server, on the second manager.
pub(super) fn second_server(swarm: &SwarmHarness) -> TestServer {
    let own = swarm.lab.settings(2);
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    swarm.harness.server.replica(&own)
}

pub(super) fn everywhere(servers: [&TestServer; 2], host: &str, expected: &Result<String, u16>) {
    for server in servers {
        until("the page at a front proxy", || (page(server, host) == *expected).then_some(()));
    }
}

#[test]
fn a_composition_stays_on_the_machine_with_its_volumes() {
    let swarm = SwarmHarness::with_managers(2, 2);
    let (harness, second) = (&swarm.harness, second_server(&swarm));
    let servers = [&harness.server, &second];
    let (id, first) = harness.create_live(&shop(&swarm, "shop", "one"));
    let first_id = text(&first["id"]);
    let home = home_of(&swarm, 2, &first_id);
    let (machine, address) = (format!("lwt-node{home}"), swarm.lab.address(home));
    let story = harness.story_of(&first_id);
    for line in [&format!("The services run on machine {machine}"), &format!("Waiting for http://{address}:")]
    {
        assert!(story.contains(line.as_str()), "{line:?} is not in:\n{story}");
    }
    everywhere(servers, SHOP, &Ok("one".to_owned()));
    until("its output", || harness.story_of(&first_id).contains("serving").then_some(()));
    // The server of the other machine does not see its containers.
    let other = if home == 1 { &second } else { &harness.server };
    let report = other.command(&["doctor"]).stdin(Stdio::null()).output().unwrap().stdout;
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("0 live versions are running, and 1 with a compose file on other"), "{report}");

    // Each version runs there, and finds what the first one wrote.
    for _ in 0..3 {
        shop(&swarm, "shop", "two");
        let next = text(&harness.deployed(&harness.redeploy(&id))["id"]);
        assert_eq!(home_of(&swarm, 2, &next), home);
        everywhere(servers, SHOP, &Ok("one".to_owned()));
    }
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first_id})).success();
    let back = text(&harness.deployed(&text(&back["id"]))["id"]);
    assert_eq!(home_of(&swarm, 2, &back), home);
    everywhere(servers, SHOP, &Ok("one".to_owned()));
    assert_eq!([volumes_on(&swarm, home), volumes_on(&swarm, 3 - home)], [1, 0]);

    // A container that somebody removes is created again there.
    let web = |id: &str| format!("launchway-{id}-1-web");
    swarm.lab.docker(home, &["rm", "--force", &web(&back)]);
    until("other containers", || (page(&second, SHOP) != Ok("one".to_owned())).then_some(()));
    everywhere(servers, SHOP, &Ok("one".to_owned()));
    until("a running application", || {
        (harness.application(&id)["status"]["status"] == "running").then_some(())
    });
    assert_eq!(home_of(&swarm, 2, &back), home);

    let by_id = json!({"id": id});
    let there = harness.admin.at(second.url());
    there.post(&format!("{DEPLOY}/stop"), &by_id).success();
    everywhere(servers, SHOP, &Err(503));
    until("no container", || swarm.lab.containers_of(2, &back).is_empty().then_some(()));
    there.post(&format!("{DEPLOY}/restart"), &by_id).success();
    everywhere(servers, SHOP, &Ok("one".to_owned()));
    assert_eq!(home_of(&swarm, 2, &back), home);

    is_not_reached_by_others(&swarm, &there, &back, home);

    there.delete(&format!("{DEPLOY}?id={id}")).success();
    until("the end of everything", || {
        let of = |what: &str| {
            let label = format!("label=launchway.application={id}");
            let list: &[&str] = if what == "volume" { &["volume", "ls"] } else { &["ps", "--all"] };
            swarm.lab.docker(home, &[list, &["--quiet", "--filter", &label]].concat())
        };
        (of("volume").is_empty() && of("container").is_empty()).then_some(())
    });
    everywhere(servers, SHOP, &Err(404));
}

/// Deploys a composition of another organization, whose containers reach no container of `deployment`.
fn is_not_reached_by_others(swarm: &SwarmHarness, admin: &Client, deployment: &str, home: usize) {
    let published = swarm.lab.published_at(home, deployment);
    assert_eq!(published.len(), 1, "{published:?}");
    assert!(published[0].starts_with(&format!("{}:", swarm.lab.address(home))), "{published:?}");
    let mut targets = published.clone();
    targets.extend(swarm.lab.addresses_of(2, deployment, 8080));
    targets.extend(swarm.lab.addresses_of(2, deployment, 9000));
    let other = admin.post("/api/v1/organizations", &json!({"name": "Another team"})).success();
    let there = admin.with_header("x-organization-id", &text(&other["id"]));
    for (name, spec) in [("other", shop(swarm, "other", "of another")), ("single", single(swarm))] {
        let created = there.post(DEPLOY, &spec).success();
        let own = text(&created["deployments"][0]["id"]);
        until(name, || {
            let now = there.get(&format!("{DEPLOY}/deployments/{own}")).success();
            (now["status"]["status"] == "deployed").then_some(())
        });
        for container in swarm.lab.containers_of(2, &own) {
            for target in &targets {
                // At the address of a bridge, it may reach itself.
                let answer = swarm.lab.fetch_from(&container, target);
                assert!(!answer.ends_with("\r\n\r\none\n"), "{name}: {target} answered {answer:?}");
            }
        }
        if name == "single" {
            let id = text(&created["id"]);
            there.delete(&format!("{DEPLOY}?id={id}")).success();
            until("its end", || swarm.services().is_empty().then_some(()));
        }
    }
    // From this machine, which has no containers of applications, it answers.
    let page = Client::new(&format!("http://{}", published[0])).get("/").text;
    assert_eq!(page.trim_end(), "one");
}

fn single(swarm: &SwarmHarness) -> Value {
    swarm.repository("single").commit_page("of one container");
    swarm.spec("single", 2)
}

#[test]
fn a_composition_of_a_lost_machine_starts_nowhere_else() {
    let mut swarm = SwarmHarness::with_managers(3, 3);
    let mut second = second_server(&swarm);
    let (id, first) = swarm.harness.create_live(&shop(&swarm, "shop", "one"));
    let first = text(&first["id"]);
    let home = home_of(&swarm, 3, &first);
    // The machine is lost with its server and its front proxy.
    let (url, admin) = (second.url().to_owned(), swarm.harness.admin.clone());
    let there = if home == 1 { admin.at(&url) } else { admin };
    match home {
        1 => swarm.harness.server.kill(),
        _ => second.kill(),
    }
    swarm.lab.cut(home);
    let reason = format!(
        "it runs on machine lwt-node{home}, which is not reachable; it starts nowhere else because its volumes are there"
    );
    let state = || there.get(&format!("{DEPLOY}?id={id}")).success();
    until("an application that says so", || {
        let now = state();
        let says = now.to_string().contains(&reason);
        (now["status"]["status"] == "failed" && says).then_some(())
    });

    let requested = there.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
    let waiting = text(&requested["id"]);
    let story = || {
        let path = format!("{DEPLOY}/deployments/{waiting}/logs?page_size=1000&embed=none");
        there.get(&path).success()["logs"].to_string()
    };
    until("a deployment that says so", || story().contains(&reason).then_some(()));
    let others: Vec<usize> = (1..=3).filter(|node| *node != home).collect();
    for node in &others {
        assert_eq!(swarm.lab.docker(*node, &["ps", "--all", "--quiet"]), "", "node {node}");
        assert_eq!(volumes_on(&swarm, *node), 0, "node {node}");
    }

    // It continues once the machine is back.
    swarm.lab.rejoin(home);
    match home {
        1 => swarm.harness.server.restart(),
        _ => second.restart(),
    }
    until("the deployment that waited", || {
        let now = there.get(&format!("{DEPLOY}/deployments/{waiting}")).success();
        (now["status"]["status"] == "deployed").then_some(())
    });
    assert_eq!(home_of(&swarm, 3, &waiting), home);
    until("a running application", || (state()["status"]["status"] == "running").then_some(()));
    assert_eq!(story().matches(&reason).count(), 1, "{}", story());
}

#[test]
fn a_composition_from_before_the_swarm_keeps_its_volumes() {
    // No other engine of this machine has networks there.
    let pool = "10.255.0.0/16";
    let lab = SwarmLab::with_managers(2, 2, binary());
    lab.route_to_containers(1, pool);
    let one_machine =
        [("LAUNCHWAY_ENGINE", "docker"), ("LAUNCHWAY_REGISTRY", ""), ("LAUNCHWAY_NETWORK_POOL", pool)];
    let mut swarm = SwarmHarness::on(lab, &one_machine);
    let (id, _) = swarm.harness.create_live(&shop(&swarm, "shop", "one"));
    shop(&swarm, "shop", "two");
    let live = text(&swarm.harness.deployed(&swarm.harness.redeploy(&id))["id"]);
    assert_eq!(page(&swarm.harness.server, SHOP), Ok("one".to_owned()));
    let by_id = json!({"id": id});
    swarm.harness.admin.post(&format!("{DEPLOY}/stop"), &by_id).success();
    until("no container", || swarm.lab.containers_of(2, &live).is_empty().then_some(()));

    let registry = swarm.lab.registry();
    swarm.harness.server.set("LAUNCHWAY_ENGINE", "swarm");
    swarm.harness.server.set("LAUNCHWAY_REGISTRY", &registry);
    swarm.harness.server.restart();
    let second = second_server(&swarm);
    let there = swarm.harness.admin.at(second.url());
    there.post(&format!("{DEPLOY}/restart"), &by_id).success();
    // An empty volume would have the page of the second version.
    everywhere([&swarm.harness.server, &second], SHOP, &Ok("one".to_owned()));
    assert_eq!(home_of(&swarm, 2, &live), 1);
    assert_eq!([volumes_on(&swarm, 1), volumes_on(&swarm, 2)], [1, 0]);
    until("a running application", || {
        let now = there.get(&format!("{DEPLOY}?id={id}")).success();
        (now["status"]["status"] == "running").then_some(())
    });
    let address = format!("{}:", swarm.lab.address(1));
    assert!(swarm.lab.published_at(1, &live)[0].starts_with(&address));
}
