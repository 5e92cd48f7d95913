//! A database of a version that wrote no id.

use std::fs;

use launchway_testkit::server::WITH_A_FRONT;

use super::id_in;
use crate::{
    backups::succeed,
    docker::deployments::stage::{Stage, spec, text},
    docker::front::{page, site},
};

const STORED: [&str; 2] = [
    "SELECT lower(hex(id)) AS value FROM installation_identity",
    "SELECT replace(id::text, '-', '') AS value FROM installation_identity",
];

fn an_earlier_database_takes_the_id_over(start: fn(&[(&str, &str)]) -> Stage) {
    let mut stage = start(&[WITH_A_FRONT]);
    let repository = stage.repository("site");
    repository.write("index.html", "a site").commit();
    stage.create_live(&site("site", &repository));
    let repository = stage.repository("web");
    repository.commit_page("a container");
    let (_, deployment) = stage.create_live(&spec("web", &repository));
    let container = text(&deployment["container_id"]);
    let proxy = stage.server.front_process();
    let id = id_in(stage.server.data_dir());
    assert!(stage.server.terminate().success());
    // As the version before left both.
    stage.server.execute(
        "DROP TABLE installation_identity;
         DELETE FROM __diesel_schema_migrations WHERE version = '20261116000001';",
    );
    fs::remove_file(stage.server.data_dir().join("server-id")).unwrap();
    let message = succeed(&stage.server, &["upgrade", "check"]);
    assert!(message.contains("20261116000001"), "{message}");

    stage.server.restart();
    stage.reconnect();
    let query = STORED[usize::from(!stage.server.is_on_sqlite())];
    assert_eq!(stage.server.query(query), [id.replace('-', "")]);
    assert_eq!(id_in(stage.server.data_dir()), id);
    let server = fs::read_to_string(stage.server.data_dir().join("server-id")).unwrap();
    assert_eq!(server.trim(), id, "it takes back the jobs that the version before left");
    assert!(stage.server.log().contains("database took the installation id over"), "{}", stage.server.log());
    // Nothing was started again for it.
    assert_eq!(stage.server.front_process(), proxy);
    assert_eq!(stage.engine.containers(), [container]);
    assert_eq!(page(&stage, "site.ada-s-team.localhost"), "a site");
    assert_eq!(page(&stage, "web.ada-s-team.localhost"), "a container");
}

#[test]
fn an_earlier_sqlite_database_takes_the_id_over() {
    an_earlier_database_takes_the_id_over(Stage::on_sqlite);
}

#[test]
fn an_earlier_postgres_database_takes_the_id_over() {
    an_earlier_database_takes_the_id_over(Stage::on_postgres);
}
