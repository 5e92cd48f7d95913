//! Shutdown: requests in flight are finished, and nothing is lost.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::Connection,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

use crate::wait::until;

const READY: &str = "/ready";
/// The limit of idle connections that web servers often have is 5 seconds.
const LONGER_THAN_SHORT_LIMITS: Duration = Duration::from_secs(7);
/// The time that running requests get at shutdown.
const GRACE: Duration = Duration::from_secs(30);

super::on_both_databases!(a_running_request_is_finished);

fn a_running_request_is_finished(mut server: TestServer) {
    let body = json!({"email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD});
    let session = server.client().post("/api/v1/auth/register", &body).success();
    let token = session["access_token"].as_str().unwrap();
    let mut under_way = server.connect();
    under_way.send(format!(
        "PATCH /api/v1/user/settings/theme HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {token}\r\ncontent-length: 17\r\n\r\n{{\"theme\": "
    ));
    until("the request", || is_being_served(&server).then_some(()));
    server.signal("TERM");
    // Whoever asks now is refused, whether by an answer or by the lack of one.
    until("the end of readiness", || {
        let answer = server.client().try_send("GET", READY, None);
        answer.map_or(true, |answer| answer.status == 503).then_some(())
    });
    under_way.send("\"dark\"}");
    assert_eq!(under_way.answer().success()["theme"], "dark");
    drop(under_way);
    assert_eq!(server.wait().code(), Some(0));

    server.restart();
    let settings = server.client().with_token(token).get("/api/v1/user/settings").success();
    assert_eq!(settings["theme"], "dark");
}

#[test]
fn an_idle_server_stops_at_either_signal() {
    for name in ["TERM", "INT"] {
        let mut server = TestServer::on_sqlite();
        server.client().get("/health").success();
        server.signal(name);
        assert_eq!(server.wait().code(), Some(0), "{name}");
        assert!(server.log().contains("stopped"));
    }
}

/// Clients keep connections for their next request, and do not send one again that got no response.
#[test]
fn an_idle_connection_is_kept_until_the_server_stops() {
    const REQUEST: &str = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut server = TestServer::on_sqlite();
    let mut idle = server.connect();
    idle.send(REQUEST).answer().success();
    sleep(LONGER_THAN_SHORT_LIMITS);
    idle.send(REQUEST).answer().success();
    let told = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert!(told.elapsed() < GRACE, "{:?}", told.elapsed());
    assert!(idle.send(REQUEST).try_answer().is_none(), "the connection is closed");
}

/// Returns whether the server has accepted two connections: this one and the one before.
fn is_being_served(server: &TestServer) -> bool {
    // Each worker accepts requests in their order, and there are few workers: once as many later ones were
    // answered, the earlier one is in flight.
    (0..8).all(|_| {
        let mut connection = Connection::open(server.address());
        connection.send("GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        connection.answer().status == 200
    })
}
