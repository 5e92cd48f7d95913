//! Compatibility of a binary and a database, before and at the start.

use launchway_testkit::server::TestServer;
use serde_json::json;

use crate::backups::{Kept, fail, succeed};

super::on_both_databases!(
    a_database_that_fits_is_up_to_date,
    images_that_would_be_refused_are_listed,
    an_older_database_is_reported_and_migrated,
    a_newer_database_is_refused_by_every_verb_and_stays_as_it_is,
);

fn a_database_that_fits_is_up_to_date(server: TestServer) {
    assert_eq!(succeed(&server, &["upgrade", "check"]), "the database is up to date\n");
}

fn images_that_would_be_refused_are_listed(server: TestServer) {
    let admin = server.admin();
    for (name, image) in [("shop", "registry.refused.example/team/shop:1"), ("page", "nginx:1.27")] {
        let application = json!({
            "name": name, "repository": image, "port": 8080, "environment": "production", "build_pack": "image",
        });
        admin.post("/api/v1/deploy/application", &application).success();
    }
    let said = fail(&server, &["upgrade", "check"]);
    assert!(said.contains("add registry.refused.example to LAUNCHWAY_IMAGE_REGISTRIES"), "{said}");
    assert!(said.contains("1 applications"), "{said}");
    let mut check = server.command(&["upgrade", "check"]);
    let allowed =
        check.env("LAUNCHWAY_IMAGE_REGISTRIES", "public,registry.refused.example").output().unwrap();
    assert_eq!(String::from_utf8(allowed.stdout).unwrap(), "the database is up to date\n");
    let listed = String::from_utf8(server.command(&["upgrade", "check"]).output().unwrap().stdout).unwrap();
    assert!(listed.contains("`shop`") && !listed.contains("nginx"), "{listed}");
}

fn an_older_database_is_reported_and_migrated(mut server: TestServer) {
    server.terminate();
    server.execute(
        "DROP INDEX applications_live_idx;
         DELETE FROM __diesel_schema_migrations WHERE version = '20261115000009';",
    );
    let said = succeed(&server, &["upgrade", "check"]);
    assert!(said.starts_with("1 migrations will run") && said.contains("20261115000009"), "{said}");
    // Asking changed nothing.
    assert_eq!(succeed(&server, &["upgrade", "check"]), said);
    assert!(succeed(&server, &["migrate"]).contains("1 migrations were needed"));
    assert_eq!(succeed(&server, &["upgrade", "check"]), "the database is up to date\n");
}

fn a_newer_database_is_refused_by_every_verb_and_stays_as_it_is(mut server: TestServer) {
    server.admin();
    server.terminate();
    let kept = Kept::of(&server);
    server.execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('20991231000001')");
    for arguments in
        [&["upgrade", "check"][..], &["serve"], &["migrate"], &["audit", "verify"], &["key", "rotate"]]
    {
        let said = fail(&server, arguments);
        assert!(
            said.contains("of a newer version of Launchway") && said.contains("20991231000001"),
            "{said}"
        );
    }
    // A backup of it says so, too.
    let newer = kept.folder().join("newer");
    let newer = newer.to_str().unwrap();
    succeed(&server, &["backup", "create", newer]);
    for arguments in [&["backup", "verify", newer][..], &["backup", "restore", newer, "--key", &kept.key()]] {
        let said = fail(&server, arguments);
        assert!(
            said.contains("schema version 20991231000001, which this version does not support"),
            "{said}"
        );
    }
    server.execute("DELETE FROM __diesel_schema_migrations WHERE version = '20991231000001'");
    server.restart();
    server.client().get("/ready").success();
}

#[test]
fn without_a_database_there_is_nothing_to_check() {
    let mut server = TestServer::on_sqlite();
    server.terminate();
    server.lose_data();
    for arguments in [&["upgrade", "check"][..], &["backup", "create", "/tmp/none"], &["key", "rotate"]] {
        let said = fail(&server, arguments);
        assert!(said.contains("there is no database"), "{arguments:?}: {said}");
    }
    assert!(!server.data_dir().join("launchway.db").exists());
}
