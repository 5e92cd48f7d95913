//! The quick start of the README, run literally.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use launchway_testkit::server::binary;
use tempfile::TempDir;

const README: &str = include_str!("../../README.md");
const PASSWORD: &str = "a long passphrase";
/// The command in the README that starts the server.
const START: &str = "cargo run";

#[test]
fn the_quick_start_of_the_readme_works() {
    let mut reader = Reader::sit_down();
    let mut seen = Vec::new();
    for block in blocks("## Quick start") {
        match block.contains(START) {
            true => reader.start_the_server(&block),
            false => seen.push(reader.types(&block)),
        }
    }
    let pages = [
        "Hello from Launchway",
        "Hello again",
        "Hello again",
        "Hello from Launchway",
        "Hello from Launchway",
    ];
    let shown: Vec<_> =
        seen.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("Hello")).collect();
    assert_eq!(shown, pages, "{seen:#?}");
    let all = seen.concat();
    assert_eq!(all.matches("That failed, as it should").count(), 1, "{all}");
    assert!(all.contains("Live at http://hello.you-s-team.localhost:"), "{all}");
    let apps = seen.last().unwrap();
    assert!(apps.contains("hello") && apps.contains("running"), "{apps}");
}

/// Returns the fenced command blocks of a section.
fn blocks(section: &str) -> Vec<String> {
    let (_, text) = README.split_once(section).unwrap();
    let (text, _) = text.split_once("\n## ").unwrap();
    let blocks: Vec<_> =
        text.split("```sh\n").skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned()).collect();
    assert!(blocks.len() > 5, "{blocks:?}");
    blocks
}

/// Runs the commands of the README, in a folder of its own and at free ports.
struct Reader {
    home: TempDir,
    binary: PathBuf,
    ports: (u16, u16),
    standing_in: PathBuf,
    server: Option<Child>,
}

impl Reader {
    fn sit_down() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("target/debug");
        fs::create_dir_all(&folder).unwrap();
        symlink(binary(), folder.join("launchway")).unwrap();
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (free(), free());
        let ports = (one.local_addr().unwrap().port(), other.local_addr().unwrap().port());
        let standing_in = home.path().to_owned();
        Self { binary: folder.join("launchway"), home, ports, standing_in, server: None }
    }

    /// Adapts a text of the README to this folder and these ports.
    fn here(&self, text: &str) -> String {
        let (api, front) = self.ports;
        let home = self.home.path().display();
        text.replace("launchway register", &format!("launchway register http://127.0.0.1:{api}"))
            .replace(":8080", &format!(":{api}"))
            .replace(":8000", &format!(":{front}"))
            .replace("/tmp/demo", &format!("{home}/demo"))
            .replace("'target/debug/launchway$'", &format!("'{}$'", self.binary.display()))
    }

    fn start_the_server(&mut self, block: &str) {
        if let Some(mut killed) = self.server.take() {
            assert!(!killed.wait().unwrap().success());
        }
        let block = self.here(block);
        let settings = block.trim().strip_suffix(START).unwrap().trim();
        let (api, front) = self.ports;
        let mut server = Command::new(&self.binary);
        for (name, value) in settings.split_whitespace().map(|setting| setting.split_once('=').unwrap()) {
            server.env(name, value);
        }
        server
            .env("LAUNCHWAY_BIND", format!("127.0.0.1:{api}"))
            .env("LAUNCHWAY_PROXY_BIND", format!("127.0.0.1:{front}"))
            .env("LAUNCHWAY_DATA_DIR", self.home.path().join("launchway-data"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = server.spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("Applications are served at")), "the server did not start");
        self.server = Some(server);
    }

    /// Runs a block of commands and returns its output. The password is typed whenever it is asked for.
    fn types(&mut self, block: &str) -> String {
        let place = self.home.path().join("standing-in");
        let script = format!("{}\npwd > '{}'\n", self.here(block), place.display());
        let path = format!("{}:{}", self.binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .current_dir(&self.standing_in)
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Blocks that ask for nothing do not read it.
        let _ = writeln!(shell.stdin.take().unwrap(), "{PASSWORD}");
        let output = shell.wait_with_output().unwrap();
        let (printed, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{block}\n{printed}\n{said}");
        self.standing_in = Path::new(fs::read_to_string(place).unwrap().trim()).to_owned();
        printed.into_owned()
    }
}

impl Drop for Reader {
    /// Stops the server as Ctrl-C does: the front proxy stops, too.
    fn drop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let ended = Command::new("kill").args(["-INT", &server.id().to_string()]).status();
        if !ended.is_ok_and(|status| status.success()) || server.wait().is_err() {
            let _ = server.kill();
        }
    }
}
