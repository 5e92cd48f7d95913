//! Following a log across reconnects and restarts of the server.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use launchway_testkit::{
    repository::{Repository, web_server},
    wait::until,
};
use serde_json::{Value, json};

use crate::{
    harness::{DEPLOY, Harness, text},
    person::{CommandOutput, Person},
    tunnel::Tunnel,
};

/// A repository with a slow build that prints lines.
fn talkative(harness: &Harness, lines: u32) -> Repository {
    let repository = harness.repository("shop");
    let talk = format!("RUN for n in $(seq {lines}); do echo \"Step number $n\"; sleep 0.05; done");
    repository.write("Dockerfile", web_server(&talk)).write("index.html", "a page\n").commit();
    repository
}

/// Creates the application without deploying it by the command line; returns its id.
fn application(harness: &Harness, repository: &Repository) -> String {
    let spec = json!({"name": "shop", "repository": repository.path(), "branch": "main", "port": 8080,
        "environment": "production", "build_pack": "dockerfile", "health_check_path": "/"});
    let made = harness.admin.post(DEPLOY, &spec).success();
    let first = text(&made["deployments"][0]["id"]);
    harness.admin.post(&format!("{DEPLOY}/cancel-deployment"), &json!({"id": first})).success();
    text(&made["id"])
}

/// A user who connects to the server by another URL.
fn by_way_of(harness: &Harness, url: &str) -> Person {
    let token = harness.admin.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    Person::new().with("LAUNCHWAY_URL", url).with("LAUNCHWAY_TOKEN", token["token"].as_str().unwrap())
}

/// Returns the lines of the log in the output.
fn lines_in(said: &str) -> Vec<String> {
    let line = |line: &str| match line.strip_prefix("✓ ") {
        Some(last) if last.starts_with("Deployed in ") => Some(last.to_owned()),
        _ => line.strip_prefix("  ").map(str::to_owned),
    };
    said.lines().filter_map(line).collect()
}

/// Returns the newest deployment, and the number of deployments.
fn newest(harness: &Harness, application: &str) -> (String, u64) {
    let path = format!("{DEPLOY}/deployments?id={application}&page_size=1");
    let listed = harness.admin.at(harness.server.url()).get(&path).success();
    (text(&listed["deployments"][0]["id"]), listed["pagination"]["total_count"].as_u64().unwrap())
}

/// A process that follows the application's log, and has printed its first line.
struct Follower {
    process: Child,
    ids: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    fn of(person: &Person) -> Self {
        let mut command = person.command(&["logs", "shop", "-f", "--output", "json"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ids = Arc::new(Mutex::new(Vec::new()));
        let read = Arc::clone(&ids);
        // Always read, so that it never has to wait for a reader.
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap();
                read.lock().unwrap().push(text(&line["id"]));
            }
        });
        let follower = Self { process, ids };
        follower.read(1);
        follower
    }

    /// Returns the ids of the lines, once there are `count`.
    fn read(&self, count: usize) -> Vec<String> {
        until("enough lines", || (self.ids.lock().unwrap().len() >= count).then_some(()));
        self.ids.lock().unwrap().clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn fifty_broken_connections_cost_no_line_and_double_none() {
    let harness = Harness::new();
    let repository = talkative(&harness, 300);
    let id = application(&harness, &repository);
    let tunnel = Tunnel::to(harness.server.address());
    let script = by_way_of(&harness, tunnel.url());
    let deploy = script.command(&["deploy", &id]);
    thread::scope(|scope| {
        let deploy = scope.spawn(|| { deploy }.output().unwrap());
        until("the deployment", || (newest(&harness, &id).1 == 2).then_some(()));
        let followers = [Follower::of(&script), Follower::of(&script)];
        tunnel.cut(60);
        let output = CommandOutput::new(&["deploy"], deploy.join().unwrap());
        output.succeeded();
        // Who follows is cut also when nothing comes any more.
        until("fifty cuts", || (tunnel.cuts() >= 50).then_some(()));
        let kept = harness.lines_of(&newest(&harness, &id).0);
        assert!(kept.len() > 300);
        assert_eq!(lines_in(&output.stderr), kept);
        // What was asked for once was carried out once, in spite of everything.
        assert_eq!(newest(&harness, &id).1, 2);

        let path = format!("{DEPLOY}/logs/{id}?page_size=1000&embed=none");
        let all = harness.admin.get(&path).success();
        let mut ids: Vec<_> = all["logs"].as_array().unwrap().iter().map(|line| text(&line["id"])).collect();
        ids.reverse();
        for follower in &followers {
            assert_eq!(follower.read(ids.len()), ids);
        }
    });
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_followed_on() {
    let mut harness = Harness::new();
    let repository = talkative(&harness, 80);
    let id = application(&harness, &repository);
    let address = harness.server.address().to_owned();
    harness.server.set("LAUNCHWAY_BIND", &address);
    let script = by_way_of(&harness, harness.server.url());
    let mut command = script.command(&["deploy", "shop"]);
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("Step number 5\n") {
        assert_ne!(said.read_line(&mut text).unwrap(), 0, "{text}");
    }
    harness.server.kill();
    while !text.contains("does not answer") {
        assert_ne!(said.read_line(&mut text).unwrap(), 0, "{text}");
    }
    harness.server.restart();
    assert_eq!(harness.server.address(), address);
    said.read_to_string(&mut text).unwrap();
    let mut output = process.wait_with_output().unwrap();
    output.stderr = text.into_bytes();
    let printed = CommandOutput::new(&["deploy", "shop"], output);
    assert!(printed.succeeded().starts_with("Live at http://shop."), "{printed}");
    let kept = harness.lines_of(&newest(&harness, &id).0);
    assert!(kept.iter().any(|line| line == "Attempt 2"), "{kept:?}");
    assert_eq!(lines_in(&printed.stderr), kept);
}
