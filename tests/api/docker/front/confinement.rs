//! Under the system call filters of the packaged units everything works as before. `strace` takes the place
//! of systemd: it makes every call fail that a filter does not allow.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use super::{harness, page, site};
use crate::docker::deployments::harness::spec;

/// A tracer, which is stopped when dropped.
struct Confined(Child);

impl Confined {
    /// Confines a process, and its future children, as a unit does.
    fn by(unit: &str, process: u32) -> Self {
        let forbidden = forbidden_by(unit);
        assert!(forbidden.contains("mount") && !forbidden.contains("openat"), "{forbidden:?}");
        let names: Vec<String> = forbidden.iter().map(|name| format!("?{name}")).collect();
        let names = names.join(",");
        let mut tracer = Command::new("strace")
            .args(["-f", "-e", &format!("trace={names}"), "-e", &format!("inject={names}:error=EPERM")])
            .args(["-p", &process.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("strace: {error}: install the package strace"));
        let mut lines = BufReader::new(tracer.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("attached"), "{first}");
        // Reading on keeps the tracer from blocking.
        std::thread::spawn(move || lines.for_each(drop));
        Self(tracer)
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        // Interrupted, and not killed: it has to detach from its tracees.
        let _asked = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status();
        let _ended = self.0.wait();
    }
}

/// Returns the system calls that the filter of a unit forbids, as systemd reads it: the first line is the
/// allow list, and each further one adds or, with `~`, removes calls.
fn forbidden_by(unit: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("packaging/systemd").join(unit)).unwrap();
    let mut allowed = BTreeSet::new();
    for filter in text.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (takes_away, names) = match filter.strip_prefix('~') {
            Some(names) => (true, names),
            None => (false, filter),
        };
        for name in names.split_whitespace().flat_map(calls_of) {
            if takes_away {
                allowed.remove(&name)
            } else {
                allowed.insert(name)
            };
        }
    }
    calls_of("@known").into_iter().filter(|name| !allowed.contains(name)).collect()
}

/// Returns the system calls of a name in a filter: itself, or those of a group.
fn calls_of(name: &str) -> BTreeSet<String> {
    if !name.starts_with('@') {
        return BTreeSet::from([name.to_owned()]);
    }
    let listed = Command::new("systemd-analyze").args(["syscall-filter", name]).output();
    let listed =
        listed.unwrap_or_else(|error| panic!("systemd-analyze: {error}: install the package systemd"));
    assert!(listed.status.success(), "{name}: {}", String::from_utf8_lossy(&listed.stderr));
    let text = String::from_utf8(listed.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix("    ")).map(str::trim);
    names.filter(|name| !name.starts_with('#')).flat_map(calls_of).collect()
}

#[test]
fn the_units_let_a_server_and_its_front_proxy_work() {
    let harness = harness();
    let front = harness.server.front_process().unwrap();
    let _server = Confined::by("launchway.service", harness.server.process_id());
    let _front = Confined::by("launchway-proxy.service", front);

    let files = harness.repository("files");
    files.write("index.html", "from files").commit();
    harness.create_live(&site("files", &files));
    assert_eq!(page(&harness, "files.ada-s-team.localhost"), "from files");

    let image = harness.repository("image");
    image.commit_page("from a container");
    harness.create_live(&spec("image", &image));
    assert_eq!(page(&harness, "image.ada-s-team.localhost"), "from a container");
}
