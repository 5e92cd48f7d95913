//! The units are valid for systemd, and restrict an attacker.

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Output},
};

use crate::{packaging, read, root};

const UNITS: [&str; 2] = ["launchway.service", "launchway-proxy.service"];
/// The packet filter of a node of a Swarm.
const NODE: &str = "launchway-node.service";
/// The slice of builds, in which systemd creates the control groups of the engine.
const BUILD_SLICE: &str = "launchway-builds.slice";

/// The highest allowed exposure of a unit, in tenths of the score of `systemd-analyze security`: 0 is none,
/// 100 is a service without any restriction.
const MOST_EXPOSED: &str = "20";
/// That of the one that runs as root, because it changes the packet filter.
const ROOT_MOST_EXPOSED: &str = "25";

fn analyze(arguments: &[&str]) -> Output {
    let output = Command::new("systemd-analyze").args(arguments).output();
    output.unwrap_or_else(|error| panic!("systemd-analyze: {error}: install the package systemd"))
}

/// Returns the errors that systemd reports for units of these texts.
fn problems(texts: &[(&str, String)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["verify".to_owned()];
    for (name, text) in texts {
        let path = folder.path().join(name);
        // The program has to be there, and is not on a machine that only tests.
        fs::write(&path, text.replace("=/usr/bin/launchway", "=/bin/true")).unwrap();
        arguments.push(path.display().to_string());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    String::from_utf8(analyze(&arguments).stderr).unwrap()
}

fn unit(name: &str) -> String {
    read(&format!("systemd/{name}"))
}

/// Returns the value of a line of a unit.
pub(crate) fn value_of(unit_name: &str, key: &str) -> String {
    let text = unit(unit_name);
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("{unit_name} has no {key}")).to_owned()
}

/// The values of all lines of a unit with this key.
pub(crate) fn values_of(unit_name: &str, key: &str) -> Vec<String> {
    let text = unit(unit_name);
    let lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    lines.map(str::to_owned).collect()
}

#[test]
fn systemd_understands_every_line() {
    let texts = UNITS.into_iter().chain([NODE, BUILD_SLICE]).map(|name| (name, unit(name)));
    assert_eq!(problems(&texts.collect::<Vec<_>>()), "");
    let mistaken = unit(UNITS[0]).replace("ProtectSystem=strict", "ProtectSystem=very");
    assert!(problems(&[(UNITS[0], mistaken)]).contains("protect system"), "mistakes are reported");
}

#[test]
fn the_packet_filter_is_there_before_containers_start() {
    assert_eq!(values_of(NODE, "Before"), ["docker.service"]);
    assert!(!values_of(NODE, "After").join(" ").contains("docker"), "it would wait for the engine");
    // A stop of the unit, as when the package is removed, must not stop the engine.
    assert_eq!(values_of(NODE, "RequiredBy"), Vec::<String>::new());
    assert_eq!(values_of(NODE, "WantedBy"), ["multi-user.target docker.service"]);
    assert_eq!(values_of(NODE, "Requires"), Vec::<String>::new());
}

#[test]
fn units_are_hardly_exposed() {
    let rated = UNITS.map(|name| (name, MOST_EXPOSED)).into_iter().chain([(NODE, ROOT_MOST_EXPOSED)]);
    for (name, most_exposed) in rated {
        let path = packaging(&format!("systemd/{name}")).display().to_string();
        let threshold = format!("--threshold={most_exposed}");
        let rated = analyze(&["security", "--offline=true", &threshold, &path]);
        let table = String::from_utf8(rated.stdout).unwrap();
        let missing: Vec<&str> = table.lines().filter(|line| line.starts_with('✗')).collect();
        assert!(rated.status.success(), "{}\n{}", table.lines().last().unwrap(), missing.join("\n"));
    }
}

#[test]
fn only_the_user_of_the_server_may_use_the_engine() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("etc")).unwrap();
    let (folder, file) = (root.path().display(), packaging("systemd/sysusers.conf"));
    // By standard input: with a root, paths are looked for in there.
    let made = Command::new("systemd-sysusers")
        .args([&format!("--root={folder}"), "-"])
        .stdin(fs::File::open(file).unwrap())
        .output()
        .expect("this test needs systemd-sysusers: install the package systemd");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let users = fs::read_to_string(root.path().join("etc/passwd")).unwrap();
    let groups = fs::read_to_string(root.path().join("etc/group")).unwrap();
    for name in UNITS {
        let (user, group) = (value_of(name, "User"), value_of(name, "Group"));
        let entry = users.lines().find(|line| line.starts_with(&format!("{user}:"))).unwrap();
        assert!(entry.contains(&format!(":/var/lib/{}:", value_of(name, "StateDirectory"))), "{entry}");
        assert!(groups.lines().any(|line| line.starts_with(&format!("{group}:"))), "{groups}");
        assert_eq!(values_of(name, "SupplementaryGroups"), Vec::<String>::new());
    }
    let docker = groups.lines().find(|line| line.starts_with("docker:")).unwrap();
    assert!(docker.ends_with(&format!(":{}", value_of(UNITS[0], "User"))), "{docker}");
}

#[test]
fn the_front_proxy_gets_only_settings_that_concern_it() {
    let known = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let known = known.lines().filter_map(|line| line.strip_prefix("| `LAUNCHWAY_")?.split('`').next());
    let known: BTreeSet<String> = known.map(|name| format!("LAUNCHWAY_{name}")).collect();
    let unset = values_of("launchway-proxy.service", "UnsetEnvironment").join(" ");
    let unset: BTreeSet<String> = unset.split_whitespace().map(str::to_owned).collect();
    let passed: Vec<&str> = known.difference(&unset).map(String::as_str).collect();
    assert_eq!(
        passed,
        [
            "LAUNCHWAY_BIND",
            "LAUNCHWAY_CONFIG",
            "LAUNCHWAY_LOG",
            "LAUNCHWAY_LOG_FORMAT",
            "LAUNCHWAY_NETWORK_POOL",
            "LAUNCHWAY_PROXY_ACCESS_LOG",
            "LAUNCHWAY_PROXY_BIND",
            "LAUNCHWAY_PROXY_CONTROL_USER",
            "LAUNCHWAY_PROXY_DIR",
            "LAUNCHWAY_PROXY_DRAIN",
            "LAUNCHWAY_PROXY_TLS_BIND",
            "LAUNCHWAY_TRUSTED_PROXIES",
        ],
        "a setting of the server belongs to UnsetEnvironment= of launchway-proxy.service"
    );
    assert!(unset.is_subset(&known), "{:?}", unset.difference(&known));
}
