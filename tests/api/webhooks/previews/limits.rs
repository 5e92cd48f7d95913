//! The limit of previews at once, and their time to live.

use launchway_testkit::server::TestServer;
use serde_json::json;

use super::{
    super::{
        code_hosts::Host,
        requests::{Happened, Request},
    },
    DONE, FIRST, Previewed, SECOND, names, previews, request, sent_url, set,
};
use crate::wait::until;

super::super::super::on_both_databases!(
    no_more_previews_run_than_the_limit,
    expired_previews_are_removed_at_the_next_retention,
);

fn no_more_previews_run_than_the_limit(server: TestServer) {
    let harness = Previewed::by(server, Host::GitHub);
    set(&harness.admin, &harness.id, &json!({"limit": 2}));
    let url = sent_url(Host::GitHub);
    let send = |number, happened, head| {
        harness.send(Host::GitHub, happened, &Request { number, ..request(&url, head) })
    };
    assert_eq!(send(1, Happened::Opened, FIRST), DONE);
    assert_eq!(send(2, Happened::Opened, FIRST), DONE);
    let full = "Ignored pull request 3: the application `site` has 2 previews already";
    assert_eq!(send(3, Happened::Opened, FIRST), full);
    assert_eq!(names(&harness.admin), ["pr-1-site", "pr-2-site", "site"]);
    // Those that run are updated.
    assert_eq!(send(2, Happened::Updated, SECOND), DONE);
    // A closed one makes room.
    assert_eq!(send(1, Happened::Closed, FIRST), DONE);
    assert_eq!(send(3, Happened::Updated, SECOND), DONE);
    assert_eq!(names(&harness.admin), ["pr-2-site", "pr-3-site", "site"]);
}

fn expired_previews_are_removed_at_the_next_retention(server: TestServer) {
    let mut harness = Previewed::by(server, Host::GitHub);
    let url = sent_url(Host::GitHub);
    for number in [1, 2] {
        let opened = Request { number, ..request(&url, FIRST) };
        assert_eq!(harness.send(Host::GitHub, Happened::Opened, &opened), DONE);
    }
    let is_sqlite = super::super::is_on_sqlite(&harness.server);
    assert!(harness.server.terminate().success());
    let past = if is_sqlite { "1" } else { "'1970-01-02'" };
    harness.server.execute(&format!("UPDATE previews SET expires_at = {past} WHERE number = 1"));
    harness.server.restart();
    harness.admin = harness.admin.at(harness.server.url());
    until("the removal of the first", || (names(&harness.admin) == ["pr-2-site", "site"]).then_some(()));
    assert_eq!(previews(&harness.admin, &harness.id).len(), 1);
    let audit = harness.admin.get("/api/v1/audit/logs?page_size=100").success().to_string();
    assert!(audit.contains("deleted the application `pr-1-site` (preview)"), "{audit}");
}
