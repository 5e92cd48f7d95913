//! The Debian package: the files of its table exist, and match the units.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{packaging, read, root, units::value_of};

/// Returns the table that `cargo deb` uses.
fn table() -> toml::Table {
    let manifest: toml::Table = fs::read_to_string(folder().join("Cargo.toml")).unwrap().parse().unwrap();
    manifest["package"]["metadata"]["deb"].as_table().unwrap().clone()
}

/// Returns the folder that paths of the table are relative to.
fn folder() -> PathBuf {
    root().join("crates/server")
}

/// Returns source and destination of each asset.
fn assets() -> Vec<(String, String)> {
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let table = table();
    let assets = table["assets"].as_array().unwrap().iter();
    assets.map(|asset| (text(&asset[0]), text(&asset[1]))).collect()
}

/// Returns the installed path of an asset.
fn destination(from: &str, to: &str) -> String {
    let name = Path::new(from).file_name().unwrap().to_str().unwrap();
    if to.ends_with('/') { format!("/{to}{name}") } else { format!("/{to}") }
}

#[test]
fn every_asset_is_there() {
    for (from, _) in assets().into_iter().filter(|(from, _)| !from.starts_with("target/")) {
        let found = match from.strip_suffix("/*.md") {
            Some(pages) => folder().join(pages).read_dir().unwrap().count() > 0,
            None => folder().join(&from).is_file(),
        };
        assert!(found, "{from} is not there");
    }
}

#[test]
fn units_use_the_installed_program_and_settings() {
    let installed: BTreeSet<String> = assets().iter().map(|(from, to)| destination(from, to)).collect();
    for unit in ["launchway.service", "launchway-proxy.service"] {
        assert!(installed.contains(&format!("/usr/lib/systemd/system/{unit}")), "{installed:?}");
        let start = value_of(unit, "ExecStart");
        assert!(installed.contains(start.split_whitespace().next().unwrap()), "{start}: {installed:?}");
        let settings = value_of(unit, "EnvironmentFile");
        assert_eq!(settings, "-/etc/launchway/launchway.env");
        let documentation = value_of(unit, "Documentation");
        let page = documentation.strip_prefix("file:///usr/share/doc/launchway/").unwrap();
        assert!(root().join("docs").join(page).is_file(), "{documentation}");
    }
    assert!(installed.contains("/usr/lib/systemd/system/launchway-node.service"), "{installed:?}");
    let prepare = value_of("launchway-node.service", "ExecStart");
    let expected = "/usr/bin/launchway node prepare --address ${NODE_ADDRESS} --network ${NODE_NETWORK} \
                    --packet-filter-only";
    assert_eq!(prepare, expected);
    // The script after an installation copies it: as a file of the package, an upgrade could replace it.
    assert!(installed.contains("/usr/share/launchway/launchway.env"), "{installed:?}");
    assert!(!table().contains_key("conf-files"));
}

#[test]
fn the_scripts_are_programs_that_a_shell_can_read() {
    let scripts = folder().join(table()["maintainer-scripts"].as_str().unwrap());
    assert_eq!(scripts.canonicalize().unwrap(), packaging("debian"));
    for name in ["postinst", "prerm", "postrm"] {
        let path = scripts.join(name);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o111, 0o111, "{name} is no program");
        let checked = Command::new("sh").arg("-n").arg(&path).status().unwrap();
        assert!(checked.success(), "{name}");
    }
}

#[test]
fn the_settings_that_are_offered_exist() {
    let known = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let offered = read("launchway.env");
    let names = offered.lines().filter_map(|line| line.strip_prefix("#LAUNCHWAY_")?.split_once('='));
    let names: Vec<String> = names.map(|(name, _)| format!("`LAUNCHWAY_{name}`")).collect();
    assert!(!names.is_empty());
    assert!(names.iter().all(|name| known.contains(name.as_str())), "{names:?}");
}
