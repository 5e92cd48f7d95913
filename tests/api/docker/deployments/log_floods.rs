//! A container that prints without end fills neither the database nor the log of another.

use serde_json::Value;

use super::{
    harness::{DEPLOY, Harness, spec, text},
    repository::web_server_by,
};
use crate::wait::until;

/// The size limit of a log in this test.
const SIZE: u64 = 2 << 20;

#[test]
fn a_flood_of_output_is_cut_and_said_on_sqlite() {
    flood(Harness::on_sqlite(&SETTINGS));
}

#[test]
fn a_flood_of_output_is_cut_and_said_on_postgres() {
    flood(Harness::on_postgres(&SETTINGS));
}

const SETTINGS: [(&str, &str); 2] =
    [("LAUNCHWAY_APPLICATION_LOG_SIZE", "2m"), ("LAUNCHWAY_APPLICATION_LOG_RATE", "128k")];

fn flood(harness: Harness) {
    let repository = harness.repository("flood");
    // At most 60,000 lines of 1,000 bytes, after which it is silent.
    let line = "x".repeat(1000);
    let program = format!(
        "(n=0; while [ $n -lt 60000 ]; do echo $n {line}; n=$((n+1)); done) & exec httpd -f -p 8080 -h /www"
    );
    repository.write("index.html", "a page").write("Dockerfile", web_server_by("", &program)).commit();
    let (id, _) = harness.create_live(&spec("flood", &repository));
    let ask = |query: &str| harness.admin.get(&format!("{DEPLOY}/logs/{id}?embed=none&{query}")).success();
    let found = |words: &str| -> Vec<Value> {
        let page = ask(&format!("level=warn&page_size=100&search_term={words}"));
        page["logs"].as_array().unwrap().clone()
    };
    until("a line about dropped lines", || (!found("were%20dropped").is_empty()).then_some(()));
    until("a line about removed lines", || (!found("were%20removed").is_empty()).then_some(()));
    let mut bytes = 0;
    let mut after: Option<String> = None;
    loop {
        let place = after.as_ref().map(|id| format!("&after={id}")).unwrap_or_default();
        let page = ask(&format!("page_size=1000&page=1{place}"));
        let lines = page["logs"].as_array().unwrap();
        if after.is_none() {
            // Newest first without a position; the walk begins at the oldest line that is left.
            let pages = page["total_pages"].as_u64().unwrap();
            let oldest = ask(&format!("page_size=1000&page={pages}"));
            after = oldest["logs"].as_array().unwrap().last().map(|line| text(&line["id"]));
            continue;
        }
        bytes += lines.iter().map(|line| text(&line["log"]).len() as u64 + 100).sum::<u64>();
        match lines.last() {
            Some(line) if bytes < 4 * SIZE => after = Some(text(&line["id"])),
            _ => break,
        }
    }
    // What came during the walk is counted, too: as much as the rate allows in that time.
    assert!(bytes <= 2 * SIZE, "{bytes} bytes are kept");
    assert!(bytes > SIZE / 4, "{bytes} bytes are kept");
}
