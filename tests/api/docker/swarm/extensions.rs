//! Extensions: those of an organization run on one machine, which has their volumes.

use launchway_testkit::{client::Client, docker::base_image, server::TestServer};
use serde_json::{Value, json};

use super::{
    compositions::{everywhere, second_server},
    harness::{SwarmHarness, WEB},
};
use crate::{
    docker::deployments::harness::text,
    extensions::{
        EXTENSIONS, definition,
        docker::{check, service},
        end_of, execution, forked, started,
    },
    wait::until,
};

const PAGES: &str = "pages.example";

fn run(client: &Client, key: &str) {
    let done = end_of(client, &started(client, key, &json!({})));
    assert_eq!(done["status"], "completed", "{}", text(&done["execution_log"]));
}

/// Returns the names of the containers of extensions on a node.
fn containers_on(swarm: &SwarmHarness, node: usize) -> Vec<String> {
    let list = ["ps", "--all", "--filter", "label=launchway.application=", "--format", "{{.Names}}"];
    swarm.lab.docker(node, &list).lines().map(str::to_owned).collect()
}

fn volumes_on(swarm: &SwarmHarness, node: usize) -> usize {
    let listed = swarm.lab.docker(node, &["volume", "ls", "--quiet", "--filter", "name=launchway-x-"]);
    listed.lines().count()
}

/// A definition with two services, of which one is routed to.
fn composition() -> String {
    let file = format!(
        "services:\n  db:\n    image: {image}\n    command: sh -c 'echo of the database > /data/index.html; exec httpd -f -p 9000 -h /data'\n    \
         volumes: ['data:/data']\n  web:\n    image: {image}\n    \
         command: sh -c 'until wget -q -O /tmp/index.html http://db:9000/; do sleep 0.2; done; exec httpd -f -p 8080 -h /tmp'\n\
         volumes: {{data: }}\n",
        image = base_image()
    );
    let steps = json!([
        {"name": "Up", "type": "docker_compose", "properties": {"action": "up", "project": "shop", "content": file}},
        {"name": "Name", "type": "proxy", "properties": {"action": "add", "domain": "shop.example", "container": "shop-web", "port": 8080}},
    ]);
    definition(&json!({}), &steps, &json!([]))
}

#[test]
fn extensions_run_on_one_machine_and_are_reached_from_all() {
    let swarm = SwarmHarness::with_managers(2, 2);
    let (harness, second) = (&swarm.harness, second_server(&swarm));
    let servers: [&TestServer; 2] = [&harness.server, &second];
    let there = harness.admin.at(second.url());

    // The machine that gets the first request is the one of all of them.
    let key = forked(&there, &service("hello", check("hello")));
    run(&there, &key);
    everywhere(servers, PAGES, &Ok("hello".to_owned()));
    let shop = forked(&harness.admin, &composition());
    run(&harness.admin, &shop);
    everywhere(servers, "shop.example", &Ok("of the database".to_owned()));
    assert_eq!([containers_on(&swarm, 1).len(), containers_on(&swarm, 2).len()], [0, 3]);
    assert_eq!([volumes_on(&swarm, 1), volumes_on(&swarm, 2)], [0, 2]);

    // Applications of the organization reach it by its name, on whichever machine they run.
    let proxy = "until wget -q -O /www/index.html http://pages:8080/; do sleep 0.2; done; exec httpd -f -p 8080 -h /www";
    let dockerfile = format!("FROM {}\nRUN mkdir -p /www\nCMD {proxy}\n", base_image());
    swarm.repository("web").write("Dockerfile", dockerfile).commit();
    let (_, deployed) = harness.create_live(&swarm.spec("web", 2));
    let copies = swarm.lab.containers_of(2, &text(&deployed["id"]));
    assert_eq!(copies.iter().map(|copy| copy.node).collect::<Vec<_>>(), [1, 2]);
    everywhere(servers, WEB, &Ok("hello".to_owned()));
    is_not_reached_by_others(&swarm, &there);

    // A container that is restarted is reached again, and another run replaces it, with its volume, on the same machine.
    let [pages] =
        &containers_on(&swarm, 2).into_iter().filter(|name| name.ends_with("-pages")).collect::<Vec<_>>()[..]
    else {
        panic!("there is one container of that name");
    };
    swarm.lab.docker(2, &["restart", "--time", "0", pages]);
    everywhere(servers, PAGES, &Ok("hello".to_owned()));
    run(&harness.admin, &key);
    everywhere(servers, PAGES, &Ok("hello".to_owned()));
    assert_eq!([volumes_on(&swarm, 1), volumes_on(&swarm, 2)], [0, 2]);

    // A drained machine would disconnect it: only what may run elsewhere is moved.
    let drained = harness.server.command(&["node", "drain", "lwt-node2"]).output().unwrap();
    let told = String::from_utf8_lossy(&[drained.stdout, drained.stderr].concat()).into_owned();
    assert!(drained.status.success() && told.contains("lwt-node2 is paused instead of drained"), "{told}");
    everywhere(servers, PAGES, &Ok("hello".to_owned()));
    everywhere(servers, WEB, &Ok("hello".to_owned()));
    assert!(harness.server.command(&["node", "activate", "lwt-node2"]).status().unwrap().success());

    for key in [&key, &shop] {
        harness.admin.post(&format!("{EXTENSIONS}/{key}/uninstall"), &json!({"volumes": true})).success();
    }
    until("the end of everything", || {
        (containers_on(&swarm, 2).is_empty() && volumes_on(&swarm, 2) == 0).then_some(())
    });
    everywhere(servers, PAGES, &Err(404));
    // Nothing is left of them: the next one may run elsewhere.
    let key = forked(&harness.admin, &service("again", check("again")));
    run(&harness.admin, &key);
    everywhere(servers, PAGES, &Ok("again".to_owned()));
    assert_eq!([containers_on(&swarm, 1).len(), containers_on(&swarm, 2).len()], [1, 0]);
}

/// Runs a container of another organization on the same machine, which reaches nothing of the extension.
fn is_not_reached_by_others(swarm: &SwarmHarness, admin: &Client) {
    let format = "{{range .NetworkSettings.Ports}}{{range .}}{{.HostIp}}:{{.HostPort}} {{end}}{{end}}\
                  {{range .NetworkSettings.Networks}}{{.IPAddress}}:8080 {{end}}";
    let pages = containers_on(swarm, 2).into_iter().find(|name| name.ends_with("-pages")).unwrap();
    let targets = swarm.lab.docker(2, &["inspect", "--format", format, &pages]);
    let targets: Vec<&str> = targets.split_whitespace().collect();
    assert_eq!(targets.len(), 2, "{targets:?}");
    let other = admin.post("/api/v1/organizations", &json!({"name": "Another team"})).success();
    let there = admin.with_header("x-organization-id", &text(&other["id"]));
    let ask: Vec<String> = targets.iter().map(|target| format!("wget -T 2 -qO- http://{target}/")).collect();
    let script = format!("if {}; then exit 1; fi; echo not reached", ask.join(" || "));
    let steps = json!([{"name": "Ask", "type": "docker", "properties": {
        "action": "run", "name": "ask", "image": base_image(), "command": ["sh", "-c", script], "detach": "false",
    }}]);
    run(&there, &forked(&there, &definition(&json!({}), &steps, &json!([]))));
    // From this machine, which has no containers of applications, it answers.
    assert_eq!(Client::new(&format!("http://{}", targets[0])).get("/").text.trim_end(), "hello");
}

#[test]
fn an_extension_of_a_lost_machine_starts_nowhere_else() {
    let swarm = SwarmHarness::with_managers(3, 3);
    let mut second = second_server(&swarm);
    let (harness, there) = (&swarm.harness, swarm.harness.admin.at(second.url()));
    let key = forked(&there, &service("hello", check("hello")));
    run(&there, &key);
    let page = |expected: Result<&str, u16>| {
        until("the page", || {
            let answer = harness.server.visitor(PAGES).get("/");
            let now = if answer.status == 200 { Ok(answer.text.trim_end()) } else { Err(answer.status) };
            (now == expected).then_some(())
        });
    };
    page(Ok("hello"));

    second.kill();
    swarm.lab.cut(2);
    page(Err(503));
    let waiting = started(&harness.admin, &key, &json!({}));
    let story = || -> Value { execution(&harness.admin, &waiting) };
    let reason = "it runs on machine lwt-node2, which is not reachable; it starts nowhere else because its volumes are there";
    until("a run that says so", || story().to_string().contains(reason).then_some(()));
    for node in [1, 3] {
        assert_eq!((containers_on(&swarm, node), volumes_on(&swarm, node)), (Vec::new(), 0), "node {node}");
    }

    swarm.lab.rejoin(2);
    second.restart();
    until("the end of the run that waited", || {
        let now = story();
        assert_ne!(now["status"], "failed", "{now}");
        (now["status"] == "completed").then_some(())
    });
    page(Ok("hello"));
    assert_eq!((containers_on(&swarm, 2).len(), volumes_on(&swarm, 2)), (1, 1));
}
