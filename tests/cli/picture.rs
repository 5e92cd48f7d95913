//! The picture at the top of the README, recorded from a deployment on a terminal.

use std::{env, fs, time::Duration};

use launchway_testkit::repository::web_server;

use crate::{animation::Recording, harness::Harness, person::Person, terminal::Terminal};

const SIZE: (u16, u16) = (26, 100);
/// The typing speed.
const STROKE: Duration = Duration::from_millis(70);

/// To regenerate the picture: `LAUNCHWAY_TEST_PICTURE=docs/pictures/deploy.svg cargo nextest run -p
/// launchway-tests --test cli picture`, in the workspace's root.
#[test]
fn records_a_deployment_as_a_picture() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    repository.write("Dockerfile", web_server("RUN echo installing && sleep 2 && echo installed"));
    repository.write("index.html", "Hello from Launchway\n").commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    let mut recording = Recording { rows: SIZE.0, columns: SIZE.1, pieces: Vec::new() };
    for command in ["deploy --yes", "apps"] {
        type_in(&mut recording, &format!("launchway {command}"));
        let arguments: Vec<_> = command.split(' ').collect();
        let left = Terminal::sized(SIZE, &ada, &arguments).ends();
        assert!(left.status.success(), "{}", left.text());
        let begun = recording.end();
        recording.pieces.extend(left.pieces.into_iter().map(|(at, bytes)| (begun + at, bytes)));
    }
    recording.pieces.push((recording.end() + STROKE, b"\x1b[32m$\x1b[0m ".to_vec()));
    let svg = recording.picture("A terminal: launchway deploy, from the command to the address");
    // Where the test has its repositories is of no interest.
    let svg = svg.replace(&harness.folder().display().to_string(), "~");

    // With reduced motion, the end is shown, too.
    let is_text = |line: &&str| line.starts_with("<text");
    let stays: Vec<_> = svg.lines().filter(is_text).filter(|line| !line.contains(" gone\"")).collect();
    let stays = words(&stays.join("\n"));
    for text in ["✓ Built in", "Live at http://shop.ada-s-team.localhost:", "running"] {
        assert!(stays.contains(text), "{text:?} in\n{stays}");
    }
    // The live line was removed.
    assert!(words(&svg).contains("Building, 1 s") && !stays.contains("Building, 1 s"), "{stays}");
    if let Some(file) = env::var_os("LAUNCHWAY_TEST_PICTURE") {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        fs::write(std::path::Path::new(root).join(file), svg).unwrap();
    }
}

/// Returns a picture without its markup.
fn words(svg: &str) -> String {
    svg.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect()
}

fn type_in(recording: &mut Recording, command: &str) {
    recording.pieces.push((recording.end() + STROKE, b"\x1b[32m$\x1b[0m ".to_vec()));
    for key in command.bytes() {
        recording.pieces.push((recording.end() + STROKE, vec![key]));
    }
    recording.pieces.push((recording.end() + 5 * STROKE, b"\r\n".to_vec()));
}
