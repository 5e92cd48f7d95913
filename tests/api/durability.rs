//! Acknowledged changes survive a crash of the process.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use launchway_testkit::{
    client::Client,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::wait::until;

const ROUNDS: usize = 5;

super::on_both_databases!(
    every_acknowledged_change_is_found_again_after_a_sudden_end,
    a_registration_that_was_acknowledged_is_found_again,
);

/// A field that one writer changes, one value after another.
struct Field {
    path: &'static str,
    name: &'static str,
    value: fn(usize) -> Value,
}

const FIELDS: [Field; 4] = [
    Field { path: "/api/v1/user/settings/theme", name: "theme", value: |n| json!(format!("t{n}")) },
    Field { path: "/api/v1/user/settings/font", name: "font_family", value: |n| json!(format!("f{n}")) },
    Field { path: "/api/v1/user/settings/language", name: "language", value: |n| json!(format!("en-{n}")) },
    Field { path: "/api/v1/user/name", name: "name", value: |n| json!(format!("ada {n}")) },
];

/// The knowledge of a writer when the server is down.
struct Known {
    /// The number of the last change that was acknowledged.
    acknowledged: usize,
    /// The names of tokens that were acknowledged.
    tokens: Vec<String>,
}

fn every_acknowledged_change_is_found_again_after_a_sudden_end(mut server: TestServer) {
    let mut admin = server.admin();
    let mut last = [0; FIELDS.len()];
    let mut tokens = Vec::new();
    for (field, last) in FIELDS.iter().zip(&mut last) {
        change(&admin, field, 1).unwrap();
        *last = 1;
    }
    for round in 0..ROUNDS {
        let known = kill_while_writing(&mut server, &admin, &last, round);
        server.restart();
        admin = admin.at(server.url());
        let found = state(&admin);
        for ((field, known), last) in FIELDS.iter().zip(&known).zip(&mut last) {
            let acknowledged = (field.value)(known.acknowledged);
            // A change in flight may or may not have been made.
            let under_way = (field.value)(known.acknowledged + 1);
            let value = &found[field.name];
            assert!(
                *value == acknowledged || *value == under_way,
                "{}: {value} instead of {acknowledged}",
                field.name
            );
            *last = known.acknowledged + 1;
        }
        tokens.extend(known.into_iter().flat_map(|known| known.tokens));
        let listed = admin.get("/api/v1/auth/tokens").success();
        let listed: Vec<_> =
            listed.as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap()).collect();
        for token in &tokens {
            assert!(listed.contains(&token.as_str()), "{token} is lost");
        }
    }
    assert!(!tokens.is_empty());
    server.kill();
    is_sound(&server);
}

fn a_registration_that_was_acknowledged_is_found_again(mut server: TestServer) {
    server.admin();
    server.kill();
    server.restart();
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    server.kill();
    is_sound(&server);
}

/// Changes every field from a thread of its own, and kills the server meanwhile.
fn kill_while_writing(server: &mut TestServer, admin: &Client, last: &[usize], round: usize) -> Vec<Known> {
    let acknowledged = AtomicUsize::new(0);
    // At another time in each round.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let enough = 20 + (nanos as usize / 1000) % 60;
    std::thread::scope(|scope| {
        let writers: Vec<_> = FIELDS
            .iter()
            .zip(last)
            .enumerate()
            .map(|(number, (field, last))| {
                let acknowledged = &acknowledged;
                scope.spawn(move || write(admin, field, *last, &format!("{round}-{number}"), acknowledged))
            })
            .collect();
        until("enough changes", || (acknowledged.load(Ordering::Relaxed) >= enough).then_some(()));
        server.kill();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    })
}

/// Makes one change after another until the server is down.
fn write(admin: &Client, field: &Field, last: usize, name: &str, acknowledged: &AtomicUsize) -> Known {
    let mut known = Known { acknowledged: last, tokens: Vec::new() };
    loop {
        if change(admin, field, known.acknowledged + 1).is_err() {
            return known;
        }
        known.acknowledged += 1;
        acknowledged.fetch_add(1, Ordering::Relaxed);
        if known.acknowledged.is_multiple_of(4) {
            let name = format!("{name}-{}", known.acknowledged);
            let body = json!({"name": name}).to_string();
            let Ok(answer) = admin.try_send("POST", "/api/v1/auth/tokens", Some(&body)) else { return known };
            answer.success();
            known.tokens.push(name);
        }
    }
}

fn change(admin: &Client, field: &Field, number: usize) -> Result<(), String> {
    let mut body = json!({});
    body[field.name] = (field.value)(number);
    let answer = admin.try_send("PATCH", field.path, Some(&body.to_string()));
    answer.map_err(|error| error.to_string())?.success();
    Ok(())
}

fn state(admin: &Client) -> BTreeMap<&'static str, Value> {
    let settings = admin.get("/api/v1/user/settings").success();
    let mut state: BTreeMap<_, _> =
        ["theme", "font_family", "language"].map(|name| (name, settings[name].clone())).into();
    state.insert("name", settings["user"]["username"].clone());
    state
}

/// Asserts that SQLite finds no corruption in its file. PostgreSQL itself was not killed.
fn is_sound(server: &TestServer) {
    if server.data_dir().join("launchway.db").exists() {
        assert_eq!(server.query("SELECT integrity_check AS value FROM pragma_integrity_check"), ["ok"]);
        let broken = "SELECT \"table\" AS value FROM pragma_foreign_key_check";
        assert_eq!(server.query(broken), Vec::<String>::new());
    }
}
