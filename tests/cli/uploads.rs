//! Uploads: only what changed is sent, and a cut connection loses little.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD};

use crate::{harness::Harness, person::Person, relay::Relay, terminal::Terminal};

const MIB: u64 = 1024 * 1024;
/// The size of a part: what a cut connection may lose.
const PART: u64 = 4 * MIB;

/// Returns bytes that no compression makes small.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Returns a user who reaches the server through a relay, in a new folder with a page.
fn through_relay(harness: &Harness) -> (Relay, Person, PathBuf) {
    let relay = Relay::to(harness.server.address());
    let folder = harness.folder().join("shop");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("index.html"), "a page\n").unwrap();
    let ada = Person::new().standing_in(&folder);
    let login = ["login", relay.url(), "--email", ADMIN_EMAIL];
    ada.runs_with(&login, &format!("{ADMIN_PASSWORD}\n")).succeeded();
    (relay, ada, folder)
}

fn page(harness: &Harness, path: &str) -> Vec<u8> {
    harness.server.visitor("shop.ada-s-team.localhost").get(path).text.into_bytes()
}

/// Deploys 10,000 files twice, with one change, and returns the bytes of all requests of each.
fn sent_twice(name: impl Fn(usize) -> String, content: impl Fn(usize) -> Vec<u8>) -> (u64, u64) {
    let harness = Harness::new();
    let (relay, ada, folder) = through_relay(&harness);
    for number in 0..9_999 {
        let path = folder.join(name(number));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content(number)).unwrap();
    }
    let before = relay.sent();
    // Without the requests that follow the log.
    let deployed = ada.runs(&["deploy", "--yes", "--detach"]);
    deployed.succeeded();
    assert!(deployed.stderr.contains("Uploading 10001 files"), "{deployed}");
    let first = relay.sent() - before;
    fs::write(folder.join(name(4_711)), "another text\n").unwrap();
    let before = relay.sent();
    let deployed = ada.runs(&["deploy", "--detach"]);
    deployed.succeeded();
    assert!(deployed.stderr.contains(": 1 new or changed"), "{deployed}");
    let second = relay.sent() - before;
    let listed = ada.runs(&["deployments", "--output", "json"]).json();
    let commits: Vec<_> = listed["deployments"].as_array().unwrap().iter().collect();
    let git = |arguments: &[&str]| {
        let id = commits[0]["application_id"].as_str().unwrap();
        let mut git = ada.program("git");
        let output = git.args(arguments).current_dir(harness.server.data_dir().join(format!("git/{id}.git")));
        String::from_utf8(output.output().unwrap().stdout).unwrap()
    };
    let [new, old] = [0, 1].map(|number| commits[number]["commit_hash"].as_str().unwrap());
    assert_eq!(git(&["diff", "--name-only", old, new]).trim(), name(4_711));
    assert_eq!(git(&["show", &format!("{new}:{}", name(4_711))]), "another text\n");
    (first, second)
}

#[test]
fn one_of_10000_files_is_sent_again() {
    let (first, second) =
        sent_twice(|number| format!("{}/{number}.txt", number / 100), |number| noise(number as u64, 1000));
    println!("10,000 files of 1,000 bytes: {first} bytes, and {second} after one change");
    assert!(second * 50 <= first, "{second} of {first}");
}

#[test]
fn one_of_10000_tiny_files_in_one_folder_is_sent_again() {
    let (first, second) =
        sent_twice(|number| format!("page-{number}.txt"), |number| format!("page {number}\n").into_bytes());
    println!("10,000 files of 10 bytes: {first} bytes, and {second} after one change");
    assert!(second * 50 <= first, "{second} of {first}");
}

/// Writes files of 1 MiB, and returns their bytes.
fn write_large(folder: &std::path::Path) -> u64 {
    for number in 0..24 {
        fs::write(folder.join(format!("{number:02}.bin")), noise(number, MIB as usize)).unwrap();
    }
    24 * MIB
}

#[test]
fn a_cut_connection_loses_one_part() {
    let harness = Harness::new();
    let (relay, ada, folder) = through_relay(&harness);
    let bytes = write_large(&folder);
    // Once, and the same run goes on.
    let before = relay.sent();
    relay.cut_after(bytes / 2);
    let deployed = ada.runs(&["deploy", "--yes"]);
    deployed.succeeded();
    assert!(deployed.stderr.contains("trying again"), "{deployed}");
    let sent = relay.sent() - before;
    println!("{bytes} bytes with one cut: {sent} bytes");
    assert_eq!(relay.cuts(), 1);
    assert!(sent > bytes && sent <= bytes + PART + MIB, "{sent}");
    assert_eq!(page(&harness, "/index.html"), b"a page\n");
}

#[test]
fn a_killed_client_goes_on_where_it_was() {
    let harness = Harness::new();
    let (relay, ada, folder) = through_relay(&harness);
    let bytes = write_large(&folder);
    let before = relay.sent();
    relay.slow_down(Duration::from_millis(2));
    let mut command = ada.command(&["deploy", "--yes"]);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    relay.await_sent(before + bytes / 2);
    run.kill().unwrap();
    run.wait().unwrap();
    relay.slow_down(Duration::ZERO);
    ada.runs(&["deploy", "--yes"]).succeeded();
    let sent = relay.sent() - before;
    println!("{bytes} bytes with a killed client: {sent} bytes");
    assert!(sent > bytes && sent <= bytes + PART + MIB, "{sent}");
    assert_eq!(page(&harness, "/index.html"), b"a page\n");
}

#[test]
fn a_killed_server_has_what_it_acknowledged() {
    let mut harness = Harness::new();
    let (relay, ada, folder) = through_relay(&harness);
    let bytes = write_large(&folder);
    let before = relay.sent();
    relay.slow_down(Duration::from_millis(2));
    let mut command = ada.command(&["deploy", "--yes"]);
    let run = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    relay.await_sent(before + bytes / 2);
    harness.server.kill();
    harness.server.restart();
    relay.forward_to(harness.server.address());
    relay.slow_down(Duration::ZERO);
    let output = run.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("trying again"), "{text}");
    let sent = relay.sent() - before;
    println!("{bytes} bytes with a killed server: {sent} bytes");
    assert!(sent > bytes && sent <= bytes + PART + MIB, "{sent}");
    assert_eq!(page(&harness, "/index.html"), b"a page\n");
    let deployments = ada.runs(&["deployments", "--output", "json"]).json();
    assert_eq!(deployments["deployments"].as_array().unwrap().len(), 1, "{deployments}");
}

#[test]
fn a_terminal_shows_the_progress_of_an_upload() {
    let harness = Harness::new();
    let (relay, ada, folder) = through_relay(&harness);
    write_large(&folder);
    relay.slow_down(Duration::from_millis(1));
    let ada = ada.with("NO_COLOR", "1");
    let left = Terminal::of(&ada, &["deploy", "--yes"]).ends();
    assert!(left.status.success(), "{}", left.text());
    let numbers = ["  0%  0 bytes of 24 MiB, 0 of 26 files", "100%  24 MiB of 24 MiB, 26 of 26 files"];
    for numbers in numbers {
        assert!(left.raw.contains(numbers), "{numbers}: {}", left.raw);
    }
    assert!(!left.text().contains('█'), "{}", left.text());
    let colours = ["\u{1b}[3", "\u{1b}[1m", "\u{1b}[2m"];
    assert!(colours.iter().all(|colour| !left.raw.contains(colour)), "{}", left.raw);
    // Without a terminal there are plain lines.
    fs::write(folder.join("index.html"), "the second page\n").unwrap();
    let second = ada.runs(&["deploy"]);
    second.succeeded();
    assert!(!second.stderr.contains(['█', '\r', '\u{1b}']), "{second}");
    assert!(second.stderr.contains("Uploading 26 files, 24 MiB: 1 new or changed"), "{second}");
}

#[test]
fn the_version_names_the_digest_of_its_upload() {
    let harness = Harness::new();
    let (relay, ada, folder) = through_relay(&harness);
    let first = ada.runs(&["deploy", "--yes"]);
    first.succeeded();
    let digest = first.stderr.lines().find_map(|line| line.strip_prefix("Source digest sha256:"));
    let digest = digest.unwrap_or_else(|| panic!("{first}")).to_owned();
    assert_eq!(digest.len(), 64);
    let listed = ada.runs(&["deployments"]);
    assert!(listed.succeeded().contains(&format!("upload {}", &digest[..12])), "{listed}");
    // The same files again are not sent at all.
    let before = relay.sent();
    let second = ada.runs(&["deploy", "--output", "json"]).json();
    assert_eq!(second["source_digest"], format!("sha256:{digest}"));
    assert!(relay.sent() - before < 20_000, "{}", relay.sent() - before);
    fs::write(folder.join("bad\u{7f}name"), "x").unwrap();
    let refused = ada.runs(&["deploy"]);
    assert!(refused.failed(2).contains("control characters"), "{refused}");
}
