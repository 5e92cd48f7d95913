//! Migration from one database to the other by one command, while applications are served.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use launchway_testkit::{client::Client, postgres::FreshDatabase, server::TestServer};

use crate::{
    backups::{PopulatedServer, fail, succeed},
    docker::deployments::harness::Harness,
};

/// Requests both applications repeatedly while `work` runs; returns the number of requests and of failures.
fn while_visited(front: &str, work: impl FnOnce()) -> (usize, usize) {
    let is_over = AtomicBool::new(false);
    let (asked, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for host in ["site.ada-s-team.localhost", "web.ada-s-team.localhost"] {
            let (is_over, asked, failed) = (&is_over, &asked, &failed);
            let visitor = Client::new(&format!("http://{front}")).with_header("host", host);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = visitor.try_send("GET", "/", None);
                    asked.fetch_add(1, Ordering::Relaxed);
                    let is_right = answer.is_ok_and(|answer| answer.status == 200);
                    failed.fetch_add(usize::from(!is_right), Ordering::Relaxed);
                }
            });
        }
        work();
        is_over.store(true, Ordering::Relaxed);
    });
    (asked.into_inner(), failed.into_inner())
}

#[test]
fn sqlite_becomes_postgres_and_back_and_visitors_notice_nothing() {
    let mut populated = PopulatedServer::on(Harness::on_sqlite);
    populated.is_reached();
    let before = populated.answers();
    let front = populated.harness.server.front().to_owned();
    let proxy = populated.harness.server.front_process().unwrap();
    let target = FreshDatabase::create();
    let url = target.url();
    let (asked, failed) = while_visited(&front, || {
        let server = &mut populated.harness.server;
        let said = fail(server, &["database", "move", "--to", &url]);
        assert!(said.contains("another Launchway is running"), "{said}");
        assert!(server.terminate().success());
        let said = succeed(server, &["database", "move", "--to", &url]);
        assert!(
            said.contains("  1 rows  users") && said.contains("LAUNCHWAY_DATABASE_URL=postgres://"),
            "{said}"
        );
        // Once is enough.
        let said = fail(server, &["database", "move", "--to", &url]);
        assert!(said.contains("the database is not empty"), "{said}");
        server.use_database(Some(target));
        server.restart();
        populated.harness.reconnect();
        populated.is_reached();
    });
    assert!(asked > 100, "{asked}");
    assert_eq!(failed, 0, "of {asked}");
    assert_eq!(populated.harness.server.front_process(), Some(proxy));
    assert_eq!(populated.answers(), before);
    assert!(!succeed(&populated.harness.server, &["audit", "verify"]).contains("BROKEN"));
    let again = populated.harness.redeploy(&populated.application);
    populated.harness.deployed(&again);

    // And back, to another file than before, which is still there.
    let before = populated.answers();
    let server = &mut populated.harness.server;
    server.terminate();
    let file = server.data_dir().join("back.db");
    let url = format!("sqlite://{}", file.display());
    succeed(server, &["database", "move", "--to", &url]);
    server.use_database(None);
    server.set("LAUNCHWAY_DATABASE_URL", &url);
    server.restart();
    populated.harness.reconnect();
    assert_eq!(populated.answers(), before);
    assert!(!succeed(&populated.harness.server, &["audit", "verify"]).contains("BROKEN"));
}

#[test]
fn what_cannot_be_moved_is_reported_and_changes_nothing() {
    let mut server = TestServer::on_sqlite();
    let admin = server.admin();
    server.terminate();
    let own = format!("sqlite://{}", server.data_dir().join("launchway.db").display());
    for (url, expected) in [
        ("mysql://db/x", "--to must be"),
        (own.as_str(), "the current database"),
        ("sqlite:///nowhere/at/all.db", "cannot make the database"),
        ("postgres://nobody@127.0.0.1:1/none", "cannot open the database"),
    ] {
        let said = fail(&server, &["database", "move", "--to", url]);
        assert!(said.contains(expected), "{url}: {said}");
    }
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();
}
