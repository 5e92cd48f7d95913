//! Several servers of one installation on one PostgreSQL database.

mod artifacts;

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixListener,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use launchway_testkit::{client::Client, server::TestServer};
use serde_json::{Value, json};

use crate::wait::until;

/// Returns the replicas that `admin` sees, and which of them lead.
fn replicas(admin: &Client) -> (Vec<Value>, Vec<String>) {
    let cluster = admin.get("/api/v1/cluster").success();
    let all = cluster["replicas"].as_array().unwrap().clone();
    let leaders = all.iter().filter(|one| one["is_leader"] == true);
    let leaders = leaders.map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    (all, leaders)
}

fn own_id(admin: &Client) -> String {
    admin.get("/api/v1/cluster").success()["replica_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_second_server_shares_the_installation() {
    let first = TestServer::on_postgres();
    let admin = first.admin();
    let second = first.replica(&[]);
    let there = admin.at(second.url());
    there.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    assert_eq!(admin.get("/api/v1/user/settings").success()["theme"], "dark");
    let (all, leaders) = replicas(&there);
    assert_eq!((all.len(), leaders), (2, vec![own_id(&admin)]));
    assert!(all.iter().all(|one| one["is_alive"] == true && one["engine"].is_null()), "{all:?}");
    assert_ne!(own_id(&admin), own_id(&there));
    for client in [&admin, &there] {
        client.get("/ready").success();
    }
}

#[test]
fn another_replica_leads_after_a_kill_and_after_a_stop() {
    let mut first = TestServer::on_postgres();
    let admin = first.admin();
    let mut second = first.replica(&[]);
    let third = first.replica(&[]);
    let there = admin.at(third.url());
    let ids = [own_id(&admin), own_id(&admin.at(second.url())), own_id(&there)];
    first.kill();
    let killed = Instant::now();
    until("another leader", || replicas(&there).1.first().filter(|leader| **leader != ids[0]).cloned());
    assert!(killed.elapsed() < Duration::from_secs(25), "{:?}", killed.elapsed());
    if replicas(&there).1 == [ids[1].clone()] {
        assert!(second.terminate().success());
        // It leaves at once: nobody waits until its term has ended.
        until("the third leads", || (replicas(&there).1 == [ids[2].clone()]).then_some(()));
        let is_alive = |one: &Value| one["id"] == ids[1].as_str() && one["is_alive"] == true;
        assert!(!replicas(&there).0.iter().any(is_alive), "it has left");
    }
    until("the first is dead", || {
        replicas(&there)
            .0
            .iter()
            .any(|one| one["id"] == ids[0].as_str() && one["is_alive"] == false)
            .then_some(())
    });
}

#[test]
fn a_restarted_server_is_the_same_replica() {
    let mut server = TestServer::on_postgres();
    let admin = server.admin();
    let id = own_id(&admin);
    server.kill();
    server.restart();
    let admin = admin.at(server.url());
    assert_eq!((own_id(&admin), replicas(&admin).0.len()), (id.clone(), 1));
    until("it leads again", || (replicas(&admin).1 == [id.clone()]).then_some(()));
}

#[test]
fn one_server_on_sqlite_lists_no_replicas_and_no_nodes() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let cluster = admin.get("/api/v1/cluster").success();
    assert_eq!(cluster, json!({"replica_id": null, "routes_epoch": 0, "clock_offset_ms": 0, "replicas": []}));
    assert_eq!(admin.get("/api/v1/cluster/nodes").success(), json!([]));
}

#[test]
fn the_cluster_is_for_administrators_of_the_installation() {
    let server = TestServer::on_postgres();
    server.admin();
    let other = server.other_tenant("admin");
    let other = server.log_in(other.email, launchway_testkit::server::ADMIN_PASSWORD);
    for path in ["/api/v1/cluster", "/api/v1/cluster/nodes"] {
        other.get(path).failure(403, "forbidden");
        server.client().get(path).failure(401, "unauthenticated");
    }
}

/// Answers every request at a socket as an engine with that id, until the test ends.
fn engine(folder: &Path, id: &'static str) -> String {
    let path = folder.join(id);
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { break };
            let mut request = [0; 4096];
            let read = connection.read(&mut request).unwrap_or_default();
            let is_info = request[..read].starts_with(b"GET /info");
            let body = if is_info { format!("{{\"ID\": \"{id}\"}}") } else { "[]".to_owned() };
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = write!(connection, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("unix://{}", path.display())
}

#[test]
fn servers_with_different_engines_do_not_share_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (engine(folder.path(), "ENGINE-A"), engine(folder.path(), "ENGINE-B"));
    let first = TestServer::configured_on_postgres(&[("DOCKER_HOST", &one)]);
    let admin = first.admin();
    let same = first.replica(&[]);
    assert!(replicas(&admin).0.iter().all(|one| one["engine"] == "ENGINE-A"));
    let data = folder.path().join("data");
    let mut command = first.command(&["serve"]);
    command.env("LAUNCHWAY_DATA_DIR", &data).env("DOCKER_HOST", &other);
    command.env("LAUNCHWAY_SECRET_KEY_FILE", first.data_dir().join("secret.key"));
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for expected in ["another container engine (ENGINE-A)", "LAUNCHWAY_DATABASE_URL"] {
        assert!(told.contains(expected), "{told}");
    }
    let living = replicas(&admin.at(same.url())).0.into_iter().filter(|one| one["is_alive"] == true);
    assert_eq!(living.count(), 2, "the refused one is not registered");
}

#[test]
fn a_copy_of_a_data_directory_is_no_second_replica() {
    let mut first = TestServer::on_postgres();
    let admin = first.admin();
    let copy = tempfile::tempdir().unwrap();
    for name in ["server-id", "instance-id", "secret.key"] {
        fs::copy(first.data_dir().join(name), copy.path().join(name)).unwrap();
    }
    let mut command = first.command(&["serve"]);
    command.env("LAUNCHWAY_DATA_DIR", copy.path()).stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::null());
    let mut second = command.spawn().unwrap();
    assert_eq!(first.wait().code(), Some(1));
    assert!(first.log().contains("its data directory is a copy"), "{}", first.log());
    second.kill().unwrap();
    second.wait().unwrap();
    first.restart();
    admin.at(first.url()).get("/api/v1/user").success();
}
