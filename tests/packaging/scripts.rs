//! The script that runs after an installation and an upgrade, on copies of the folders that it changes.
//!
//! Needs root, `unshare` and `setpriv` of util-linux, `ss` of iproute2, and `busybox`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use crate::packaging;

/// Gives the script a machine of its own: users in a copy of `/etc`, empty state and units, and a `systemctl` that notes
/// what it is asked.
const MACHINE: &str = r#"
set -e
cp -a /etc "$FOLDER/etc"
mkdir -p "$FOLDER/lib" "$FOLDER/run/systemd/system" "$FOLDER/sysusers" "$FOLDER/share/launchway"
cp "$SYSUSERS" "$FOLDER/sysusers/launchway.conf"
cp "$TEMPLATE" "$FOLDER/share/launchway/launchway.env"
if [ -n "$SETTINGS" ]; then
    mkdir -p "$FOLDER/etc/launchway"
    echo "$SETTINGS" > "$FOLDER/etc/launchway/launchway.env"
    chmod 644 "$FOLDER/etc/launchway/launchway.env"
fi
mount --bind "$FOLDER/etc" /etc
mount --bind "$FOLDER/lib" /var/lib
mount --bind "$FOLDER/run" /run
mount --bind "$FOLDER/sysusers" /usr/lib/sysusers.d
mount --bind "$FOLDER/share" /usr/share
# The user of an installation that is upgraded.
systemd-sysusers /usr/lib/sysusers.d/launchway.conf 2> /dev/null
# The process of the unit of the front proxy.
setpriv --reuid="$USER_OF_PROXY" --clear-groups sleep 60 < /dev/null > /dev/null 2>&1 &
MAIN_PROCESS=$!
export MAIN_PROCESS
trap 'kill $MAIN_PROCESS $LISTENER' EXIT
if [ -n "$TAKEN_PORT" ]; then
    busybox nc -l -p "$TAKEN_PORT" < /dev/null > /dev/null 2>&1 &
    LISTENER=$!
    while [ -z "$(ss --no-header --listening --tcp "sport = :$TAKEN_PORT")" ]; do sleep 0.01; done
fi
while [ "$(stat --format=%U /proc/$MAIN_PROCESS)" = root ]; do sleep 0.01; done
PATH="$FOLDER/bin:$PATH" sh "$SCRIPT" configure "$OLD_VERSION"
grep --no-messages '^LAUNCHWAY' /etc/launchway/launchway.env || true
stat --format='%n %a %U %G' /var/lib/launchway-proxy /etc/launchway/launchway.env 2> /dev/null || true
"#;

const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$FOLDER/asked"
case "$1" in
show) echo "$MAIN_PROCESS" ;;
is-enabled) echo "$IS_ENABLED" ;;
esac
"#;

/// The output of the script, and the commands that it gave systemd.
#[derive(Debug)]
struct Outcome {
    printed: String,
    asked: String,
}

/// The machine that the script runs on.
#[derive(Debug, Clone, Copy)]
struct Machine {
    /// The user of the process of the unit of the front proxy.
    user: &'static str,
    /// The state of that unit.
    is_enabled: &'static str,
    /// The version that is upgraded; empty for a fresh installation.
    old_version: &'static str,
    /// The settings before; empty if there is no file.
    settings: &'static str,
    /// A port that another program listens on, or nothing.
    taken_port: &'static str,
}

const UPGRADED: Machine = Machine {
    user: "launchway-proxy",
    is_enabled: "enabled",
    old_version: "0.1.0",
    settings: "LAUNCHWAY_LOG=info",
    taken_port: "",
};
const FRESH: Machine = Machine { is_enabled: "disabled", old_version: "", settings: "", ..UPGRADED };

fn configure(machine: Machine) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("systemctl"), SYSTEMCTL).unwrap();
    fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let text = |path: &Path| path.display().to_string();
    let output = Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", MACHINE])
        .env("FOLDER", folder.path())
        .env("SCRIPT", text(&packaging("debian/postinst")))
        .env("SYSUSERS", text(&packaging("systemd/sysusers.conf")))
        .env("TEMPLATE", text(&packaging("launchway.env")))
        .env("USER_OF_PROXY", machine.user)
        .env("IS_ENABLED", machine.is_enabled)
        .env("OLD_VERSION", machine.old_version)
        .env("SETTINGS", machine.settings)
        .env("TAKEN_PORT", machine.taken_port)
        .output()
        .unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}");
    Outcome { printed, asked: fs::read_to_string(folder.path().join("asked")).unwrap() }
}

#[test]
fn an_upgrade_makes_the_folder_and_restarts_an_old_proxy() {
    let outcome = configure(Machine { user: "launchway", ..UPGRADED });
    for line in [
        "/var/lib/launchway-proxy 750 launchway-proxy launchway",
        "/etc/launchway/launchway.env 640 root root",
    ] {
        assert!(outcome.printed.contains(line), "{line:?}: {outcome:?}");
    }
    let (reload, server) =
        (outcome.asked.find("daemon-reload"), outcome.asked.find("try-restart launchway.service"));
    let proxy = outcome.asked.find("--no-block try-restart launchway-proxy.service");
    // An old server that still runs would start a proxy in the place of the one that ends.
    assert!(reload.is_some() && reload < server && server < proxy, "{outcome:?}");
}

#[test]
fn an_upgrade_leaves_a_proxy_of_its_own_user_to_the_server() {
    let outcome = configure(UPGRADED);
    for unit in ["launchway.service", "launchway-node.service"] {
        assert!(outcome.asked.contains(&format!("try-restart {unit}")), "{outcome:?}");
    }
    assert!(!outcome.asked.contains("try-restart launchway-proxy.service"), "{outcome:?}");
}

#[test]
fn an_upgrade_names_who_masked_the_unit_of_the_proxy() {
    let outcome = configure(Machine { is_enabled: "masked", ..UPGRADED });
    assert!(outcome.printed.contains("set LAUNCHWAY_PROXY_DIR= in"), "{outcome:?}");
    assert!(!outcome.printed.contains("/var/lib/launchway-proxy 750"), "{outcome:?}");
}

#[test]
fn a_fresh_installation_serves_by_http_and_https() {
    let outcome = configure(FRESH);
    let settings: Vec<&str> = outcome.printed.lines().filter(|line| line.starts_with("LAUNCHWAY")).collect();
    assert_eq!(
        settings,
        ["LAUNCHWAY_PROXY_BIND=0.0.0.0:80", "LAUNCHWAY_PROXY_TLS_BIND=0.0.0.0:443"],
        "{outcome:?}"
    );
    assert!(outcome.printed.contains("/etc/launchway/launchway.env 640 root root"), "{outcome:?}");
}

#[test]
fn a_fresh_installation_leaves_ports_to_other_programs() {
    for taken_port in ["80", "443"] {
        let outcome = configure(Machine { taken_port, ..FRESH });
        assert!(outcome.printed.contains("another program listens on port 80 or 443"), "{outcome:?}");
        assert!(!outcome.printed.contains("\nLAUNCHWAY"), "{outcome:?}");
        assert!(outcome.printed.contains("/etc/launchway/launchway.env 640 root root"), "{outcome:?}");
    }
}

#[test]
fn neither_an_upgrade_nor_own_settings_turn_https_on() {
    let removed = Machine { settings: "", ..UPGRADED };
    let prepared = Machine { settings: UPGRADED.settings, ..FRESH };
    for (machine, kept) in [(UPGRADED, true), (removed, false), (prepared, true)] {
        let outcome = configure(machine);
        assert!(!outcome.printed.contains("LAUNCHWAY_PROXY"), "{outcome:?}");
        assert_eq!(outcome.printed.contains("LAUNCHWAY_LOG=info"), kept, "{outcome:?}");
    }
}
