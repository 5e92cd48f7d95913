//! A database of a version that wrote no id.

use std::fs;

use launchway_testkit::server::WITH_A_FRONT;

use super::id_in;
use crate::{
    backups::succeed,
    docker::deployments::harness::{Harness, spec, text},
    docker::front::{page, site},
};

const STORED: [&str; 2] = [
    "SELECT lower(hex(id)) AS value FROM installation_identity",
    "SELECT replace(id::text, '-', '') AS value FROM installation_identity",
];

fn an_earlier_database_takes_the_id_over(start: fn(&[(&str, &str)]) -> Harness) {
    let mut harness = start(&[WITH_A_FRONT]);
    let repository = harness.repository("site");
    repository.write("index.html", "a site").commit();
    harness.create_live(&site("site", &repository));
    let repository = harness.repository("web");
    repository.commit_page("a container");
    let (_, deployment) = harness.create_live(&spec("web", &repository));
    let container = text(&deployment["container_id"]);
    let proxy = harness.server.front_process();
    let id = id_in(harness.server.data_dir());
    assert!(harness.server.terminate().success());
    // As the version before left both.
    harness.server.execute(
        "DROP TABLE installation_identity;
         DELETE FROM __diesel_schema_migrations WHERE version = '20261116000001';",
    );
    fs::remove_file(harness.server.data_dir().join("server-id")).unwrap();
    let message = succeed(&harness.server, &["upgrade", "check"]);
    assert!(message.contains("20261116000001"), "{message}");

    harness.server.restart();
    harness.reconnect();
    let query = STORED[usize::from(!harness.server.is_on_sqlite())];
    assert_eq!(harness.server.query(query), [id.replace('-', "")]);
    assert_eq!(id_in(harness.server.data_dir()), id);
    let server = fs::read_to_string(harness.server.data_dir().join("server-id")).unwrap();
    assert_eq!(server.trim(), id, "it takes back the jobs that the version before left");
    assert!(
        harness.server.log().contains("database took the installation id over"),
        "{}",
        harness.server.log()
    );
    // Nothing was started again for it.
    assert_eq!(harness.server.front_process(), proxy);
    assert_eq!(harness.engine.containers(), [container]);
    assert_eq!(page(&harness, "site.ada-s-team.localhost"), "a site");
    assert_eq!(page(&harness, "web.ada-s-team.localhost"), "a container");
}

#[test]
fn an_earlier_sqlite_database_takes_the_id_over() {
    an_earlier_database_takes_the_id_over(Harness::on_sqlite);
}

#[test]
fn an_earlier_postgres_database_takes_the_id_over() {
    an_earlier_database_takes_the_id_over(Harness::on_postgres);
}
