//! Whether a binary and a database fit, before and at the start.

use launchway_testkit::server::TestServer;

use crate::backups::{Kept, fail, succeed};

super::on_both_databases!(
    a_database_that_fits_is_up_to_date,
    an_older_database_is_told_of_and_brought_up_to_date,
    a_newer_database_is_refused_by_every_verb_and_stays_as_it_is,
);

fn a_database_that_fits_is_up_to_date(server: TestServer) {
    assert_eq!(succeed(&server, &["upgrade", "check"]), "the database is up to date\n");
}

fn an_older_database_is_told_of_and_brought_up_to_date(mut server: TestServer) {
    server.terminate();
    server.execute(
        "DROP INDEX applications_live_idx;
         DELETE FROM __diesel_schema_migrations WHERE version = '20261115000009';",
    );
    let said = succeed(&server, &["upgrade", "check"]);
    assert!(said.starts_with("1 migrations will be taken") && said.contains("20261115000009"), "{said}");
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
        assert!(said.contains("tables of version 20991231000001, which this one does not know"), "{said}");
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
