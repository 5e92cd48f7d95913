//! Without its database the server rejects requests cleanly, keeps running, and recovers.

use launchway_testkit::{
    client::Answer,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

use crate::{
    auth::credentials,
    wait::{at_once, until},
};

#[test]
fn the_server_recovers_after_its_database_was_unavailable() {
    let mut server = TestServer::on_postgres();
    let admin = server.admin();
    let user = admin.get("/api/v1/user").success();
    server.lose_database();

    let login = credentials(ADMIN_EMAIL, ADMIN_PASSWORD);
    let answers = at_once(6, |number| match number {
        0 => admin.get("/api/v1/user"),
        1 => admin.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})),
        2 => server.client().get("/api/v1/auth/is-admin-registered"),
        3 => server.client().post("/api/v1/auth/login", &login),
        4 => server.client().with_token("garbage").get("/api/v1/user"),
        _ => server.client().get("/ready"),
    });
    for answer in &answers {
        is_unavailable(answer);
    }
    server.client().get("/health").success();
    let log = server.log();
    for answer in &answers {
        assert!(log.contains(&answer.headers["x-request-id"]), "the log does not tell of {answer:?}:\n{log}");
    }

    server.regain_database();
    until("the database", || (server.client().get("/ready").status == 200).then_some(()));
    assert_eq!(admin.get("/api/v1/user").success(), user);
    admin.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    assert!(server.terminate().success());
}

#[test]
fn connections_that_were_cut_are_replaced_unnoticed() {
    let server = TestServer::on_postgres();
    let admin = server.admin();
    let user = admin.get("/api/v1/user").success();
    server.lose_database();
    server.regain_database();
    assert_eq!(admin.get("/api/v1/user").success(), user);
    admin.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

#[track_caller]
fn is_unavailable(answer: &Answer) {
    let message = answer.failure(503, "unavailable");
    let seconds: u64 = answer.headers["retry-after"].parse().unwrap();
    assert!(seconds >= 1);
    for detail in ["postgres", "launchway_", "127.0.0.1", "FATAL", "SQL", "connection"] {
        assert!(!message.contains(detail), "{message}");
    }
}
