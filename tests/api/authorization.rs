//! Authorization: every mounted operation, called by every kind of caller.

mod table;
mod world;

use std::collections::BTreeSet;

use launchway_testkit::server::TestServer;
use serde_json::Value;

use self::{
    table::{ROWS, Row},
    world::{Who, World},
};

super::on_both_databases!(every_operation_answers_everyone_as_the_table_says);

fn every_operation_answers_everyone_as_the_table_says(server: TestServer) {
    let world = World::new(&server);
    let mut differences = Vec::new();
    for row in ROWS {
        for (who, expected) in Who::ALL.into_iter().zip(row.expected) {
            let answer = world.ask(who, row);
            let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
            // Some successes have an empty `error`.
            let code = body["error"].as_str().filter(|code| !code.is_empty());
            let code = code.map(|code| format!(" {code}")).unwrap_or_default();
            let got = format!("{}{code}", answer.status);
            if got != expected {
                differences
                    .push(format!("{} asked by {who:?}: expected {expected}, got {got}", row.operation));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_table_names_every_operation_and_no_other() {
    let server = TestServer::on_sqlite();
    let document = server.client().get("/api/v1/openapi.json").json();
    let mounted: BTreeSet<String> = operations(&document).collect();
    let listed: BTreeSet<String> = ROWS.iter().map(|Row { operation, .. }| (*operation).to_owned()).collect();
    let missing: Vec<_> = mounted.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&mounted).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "not in the table: {missing:?}; not mounted: {unknown:?}"
    );
}

fn operations(document: &Value) -> impl Iterator<Item = String> {
    document["paths"].as_object().unwrap().iter().flat_map(|(path, item)| {
        item.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
    })
}
