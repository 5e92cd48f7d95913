//! Bodies that are too large, too slow or malformed.

use std::time::{Duration, Instant};

use launchway_testkit::{
    client::Connection,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

const MEBIBYTE: usize = 1024 * 1024;

#[test]
fn a_body_of_a_mebibyte_is_read_and_one_byte_more_is_not() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    let mut connection = caller.connect();
    connection.send(caller.head(MEBIBYTE)).send(theme("dark", MEBIBYTE));
    assert_eq!(connection.answer().success()["theme"], "dark");

    let mut connection = caller.connect();
    connection.send(caller.head(MEBIBYTE + 1)).send(theme("light", MEBIBYTE + 1));
    connection.answer().failure(413, "payload_too_large");
    assert_eq!(caller.theme(), "dark");
}

#[test]
fn rejects_a_body_by_its_declared_length_before_it_is_sent() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    for length in [MEBIBYTE + 1, 1_000_000_000, usize::MAX >> 1] {
        let mut connection = caller.connect();
        connection.send(caller.head(length));
        connection.answer().failure(413, "payload_too_large");
    }
}

#[test]
fn a_body_in_chunks_has_the_same_limit() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    let chunked = |body: &[u8]| {
        let mut connection = caller.connect();
        connection.send(caller.chunked_head());
        for chunk in body.chunks(64 * 1024 - 7) {
            connection.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
        }
        connection.send("0\r\n\r\n");
        connection.answer()
    };
    assert_eq!(chunked(&theme("dark", MEBIBYTE)).success()["theme"], "dark");
    chunked(&theme("light", MEBIBYTE + 1)).failure(413, "payload_too_large");
    assert_eq!(chunked(&theme("tiny", 20)).success()["theme"], "tiny");
}

#[test]
fn an_endless_body_is_cut_off() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    let mut connection = caller.connect();
    connection.send(caller.chunked_head());
    let chunk = format!("{:x}\r\n{}\r\n", 64 * 1024, " ".repeat(64 * 1024));
    // Twice what is read; the server stops taking it on the way.
    for _ in 0..32 {
        connection.send(&chunk);
    }
    connection.answer().failure(413, "payload_too_large");
    assert_eq!(caller.theme(), "light");
}

#[test]
fn a_body_that_does_not_come_in_time_is_given_up() {
    let server = TestServer::configured(&[("LAUNCHWAY_BODY_TIMEOUT", "300ms")]);
    let caller = Caller::of(&server);
    for sent in ["", "{\"theme\": "] {
        let mut connection = caller.connect();
        let began = Instant::now();
        connection.send(caller.head(17)).send(sent);
        connection.answer().failure(408, "request_timeout");
        assert!(began.elapsed() >= Duration::from_millis(300));
        // What comes too late is not taken for another request.
        connection.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert_eq!(connection.try_answer(), None);
    }
    // Slow progress does not extend the timeout.
    let mut connection = caller.connect();
    connection.send(caller.chunked_head());
    let answer = std::thread::scope(|scope| {
        let mut sending = Connection::clone(&connection);
        let (stop, stopped) = std::sync::mpsc::channel();
        scope.spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(20)).is_err() {
                sending.send("1\r\n \r\n");
            }
        });
        let answer = connection.answer();
        stop.send(()).unwrap();
        answer
    });
    answer.failure(408, "request_timeout");
    assert_eq!(caller.theme(), "light");
}

#[test]
fn a_body_that_ends_early_changes_nothing() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    // Complete JSON, but fewer bytes than declared.
    let mut connection = caller.connect();
    connection.send(caller.head(100)).send("{\"theme\": \"dark\"}").stop_sending();
    if let Some(answer) = connection.try_answer() {
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    let mut connection = caller.connect();
    connection.send(caller.chunked_head()).send("11\r\n{\"theme\": \"dark\"}\r\n").stop_sending();
    if let Some(answer) = connection.try_answer() {
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    let mut connection = caller.connect();
    connection.send(caller.head(100)).send("{\"theme\": \"dark\"}");
    drop(connection);
    assert_eq!(caller.theme(), "light");
}

#[test]
fn what_follows_a_body_is_not_part_of_it() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    let mut connection = caller.connect();
    // The next request is in the same write.
    let body = r#"{"theme": "dark"}"#;
    connection
        .send(format!("{}{body}GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n", caller.head(body.len())));
    assert_eq!(connection.answer().success()["theme"], "dark");
    assert_eq!(connection.answer().success()["status"], "ok");
}

#[test]
fn a_body_that_nobody_reads_is_not_taken_for_the_next_request() {
    let server = TestServer::on_sqlite();
    server.admin();
    let smuggled = "DELETE /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for path in ["/api/v1/user/settings/theme", "/nothing"] {
        let mut connection = server.connect();
        connection.send(format!(
            "PATCH {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            smuggled.len()
        ));
        assert!([401, 404].contains(&connection.answer().status));
        connection.send(smuggled).send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
        // Either the connection is closed, or the next answer is to the next request.
        if let Some(answer) = connection.try_answer() {
            assert_eq!(answer.success()["status"], "ok");
        }
    }
}

#[test]
fn who_asks_before_sending_is_encouraged() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    let mut connection = caller.connect();
    let head = caller.head(17).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    connection.send(head).send("{\"theme\": \"dark\"}");
    assert_eq!(connection.answer().success()["theme"], "dark");
}

#[test]
fn two_lengths_that_contradict_each_other_are_no_request() {
    let server = TestServer::on_sqlite();
    let caller = Caller::of(&server);
    for lengths in [
        "content-length: 17\r\ncontent-length: 18",
        "content-length: 17\r\ntransfer-encoding: chunked",
        "content-length: -1",
        "content-length: +17",
    ] {
        let mut connection = caller.connect();
        let head = caller.head(17).replace("content-length: 17", lengths);
        connection.send(head).send("{\"theme\": \"dark\"}");
        assert_eq!(connection.answer().status, 400, "{lengths}");
    }
    assert_eq!(caller.theme(), "light");
}

/// A caller who changes the theme on raw connections.
struct Caller<'a> {
    server: &'a TestServer,
    token: String,
}

impl<'a> Caller<'a> {
    fn of(server: &'a TestServer) -> Self {
        let body = json!({"email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD});
        let session = server.client().post("/api/v1/auth/register", &body).success();
        Self { server, token: session["access_token"].as_str().unwrap().to_owned() }
    }

    fn connect(&self) -> Connection {
        self.server.connect()
    }

    fn head(&self, length: usize) -> String {
        self.head_with(&format!("content-length: {length}"))
    }

    fn chunked_head(&self) -> String {
        self.head_with("transfer-encoding: chunked")
    }

    fn head_with(&self, header: &str) -> String {
        let token = &self.token;
        format!(
            "PATCH /api/v1/user/settings/theme HTTP/1.1\r\nhost: localhost\r\n\
             authorization: Bearer {token}\r\n{header}\r\n\r\n"
        )
    }

    /// Returns the current theme.
    fn theme(&self) -> String {
        let settings = self.server.client().with_token(&self.token).get("/api/v1/user/settings").success();
        settings["theme"].as_str().unwrap().to_owned()
    }
}

/// A change of theme of exactly that many bytes.
fn theme(name: &str, length: usize) -> Vec<u8> {
    let change = json!({"theme": name}).to_string();
    format!("{change}{}", " ".repeat(length - change.len())).into_bytes()
}
