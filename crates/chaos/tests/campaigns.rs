//! The short form of every campaign, except `conformance`, which needs a program that few machines have, and `swarm`, which
//! takes ten minutes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{path::Path, process::Command};

#[test]
fn kills_of_a_server_on_sqlite_lose_nothing() {
    passes("kills-sqlite");
}

#[test]
fn kills_of_a_server_on_postgres_lose_nothing() {
    passes("kills-postgres");
}

#[test]
fn a_death_or_an_error_in_any_write_loses_nothing() {
    passes("crash-points");
}

#[test]
fn a_full_disk_that_gets_space_again_stops_nothing() {
    passes("full-disk");
}

#[test]
fn a_power_cut_loses_nothing() {
    passes("power-cuts");
}

#[test]
fn outages_of_postgres_lose_nothing() {
    passes("outages");
}

#[test]
fn a_clock_that_jumps_a_day_stops_nothing() {
    passes("clock-jumps");
}

#[test]
fn applications_survive_restarts_and_kills_of_the_engine() {
    passes("engine");
}

#[test]
fn an_engine_that_hangs_holds_up_nothing_else() {
    passes("hung-engine");
}

#[test]
fn a_restart_under_load_fails_no_request() {
    passes("restarts");
}

#[test]
fn several_servers_share_one_database() {
    passes("replicas");
}

#[test]
fn a_hostile_tenant_takes_nothing_from_another() {
    passes("tenants");
}

#[test]
fn slow_clients_hold_nobody_up() {
    passes("slow-clients");
}

#[test]
fn nobody_gets_in_by_guessing() {
    passes("guesses");
}

#[test]
fn no_secret_is_found_where_it_does_not_belong() {
    passes("canaries");
}

#[test]
fn no_text_in_any_place_is_more_than_a_text() {
    passes("injections");
}

fn passes(campaign: &str) {
    let own = Path::new(env!("CARGO_BIN_EXE_launchway-chaos"));
    let [server, verifier] = ["launchway", "launchway-verify"].map(|name| own.with_file_name(name));
    for binary in [&server, &verifier] {
        let path = binary.display();
        assert!(
            binary.exists(),
            "{path} is missing: run `cargo xtask test`, or `cargo build --workspace` first"
        );
    }
    let output = Command::new(own)
        .arg(campaign)
        .arg("--server")
        .arg(server)
        .arg("--verifier")
        .arg(verifier)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{campaign}:\n{}", String::from_utf8_lossy(&text));
}
