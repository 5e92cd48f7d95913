//! Sites, compositions and backups belong to the installation, not to the server that made them.

use launchway_testkit::{
    postgres::FreshDatabase,
    server::{TestServer, WITH_A_FRONT},
};
use serde_json::json;

use crate::{
    backups::{Kept, succeed},
    docker::deployments::harness::Harness,
    docker::front::{page, site},
    wait::until,
};

const HOST: &str = "site.ada-s-team.localhost";

/// Waits until the front proxy of a server serves this page.
#[track_caller]
fn serves(server: &TestServer, expected: &str) {
    until(&format!("`{expected}` at {}", server.url()), || {
        let answer = server.visitor(HOST).get("/");
        (answer.status == 200 && answer.text.trim_end() == expected).then_some(())
    });
}

#[test]
fn a_site_is_served_by_every_server() {
    let mut harness = Harness::on_postgres(&[WITH_A_FRONT]);
    let second = harness.server.replica(&[]);
    let repository = harness.repository("site");
    repository.write("index.html", "the first page").commit();
    let (application, first) = harness.create_live(&site("site", &repository));
    for server in [&harness.server, &second] {
        serves(server, "the first page");
    }
    repository.write("index.html", "the second page").commit();
    harness.deployed(&harness.redeploy(&application));
    for server in [&harness.server, &second] {
        serves(server, "the second page");
    }

    // A server that comes later, and one that works alone.
    let third = harness.server.replica(&[]);
    serves(&third, "the second page");
    harness.server.kill();
    harness.server.kill_front();
    harness.admin = harness.admin.at(third.url());
    let back = json!({"id": first["id"]});
    let back = harness.admin.post("/api/v1/deploy/application/rollback", &back).success();
    harness.deployed(back["id"].as_str().unwrap());
    for server in [&second, &third] {
        serves(server, "the first page");
    }
}

#[test]
fn a_backup_of_any_server_is_complete() {
    let mut harness = Harness::on_postgres(&[WITH_A_FRONT]);
    let repository = harness.repository("site");
    repository.write("index.html", "a site").commit();
    // Neither has served the site when the backup is made: no proxy asks it to.
    let second = harness.server.replica(&[("LAUNCHWAY_PROXY_BIND", "off")]);
    harness.create_live(&site("site", &repository));
    let kept = Kept::of(&second);
    drop(second);

    harness.server.kill();
    harness.server.kill_front();
    harness.server.lose_data();
    harness.server.use_database(Some(FreshDatabase::create()));
    succeed(&harness.server, &["backup", "restore", &kept.file(), "--key", &kept.key()]);
    harness.server.restart();
    assert_eq!(page(&harness, HOST), "a site");
}
