//! The script that runs after an installation and an upgrade, on copies of the folders that it changes.
//!
//! Needs root, and `unshare` and `setpriv` of util-linux.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use crate::packaging;

/// Gives the script a machine of its own: users in a copy of `/etc`, empty state and units, and a `systemctl` that notes
/// what it is asked.
const MACHINE: &str = r#"
set -e
cp -a /etc "$FOLDER/etc"
mkdir -p "$FOLDER/etc/launchway" "$FOLDER/lib" "$FOLDER/run/systemd/system" "$FOLDER/sysusers"
cp "$SYSUSERS" "$FOLDER/sysusers/launchway.conf"
echo 'LAUNCHWAY_LOG=info' > "$FOLDER/etc/launchway/launchway.env"
chmod 644 "$FOLDER/etc/launchway/launchway.env"
mount --bind "$FOLDER/etc" /etc
mount --bind "$FOLDER/lib" /var/lib
mount --bind "$FOLDER/run" /run
mount --bind "$FOLDER/sysusers" /usr/lib/sysusers.d
# The user of an installation that is upgraded.
systemd-sysusers /usr/lib/sysusers.d/launchway.conf 2> /dev/null
# The process of the unit of the front proxy.
setpriv --reuid="$USER_OF_PROXY" --clear-groups sleep 60 < /dev/null > /dev/null 2>&1 &
MAIN_PROCESS=$!
export MAIN_PROCESS
trap 'kill $MAIN_PROCESS' EXIT
while [ "$(stat --format=%U /proc/$MAIN_PROCESS)" = root ]; do sleep 0.01; done
PATH="$FOLDER/bin:$PATH" sh "$SCRIPT" configure 0.1.0
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

/// Runs the script while the unit of the front proxy runs a process of this user, in this state.
fn configure(user: &str, is_enabled: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("systemctl"), SYSTEMCTL).unwrap();
    fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let text = |path: &Path| path.display().to_string();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", MACHINE])
        .env("FOLDER", folder.path())
        .env("SCRIPT", text(&packaging("debian/postinst")))
        .env("SYSUSERS", text(&packaging("systemd/sysusers.conf")))
        .env("USER_OF_PROXY", user)
        .env("IS_ENABLED", is_enabled)
        .output()
        .unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}");
    Outcome { printed, asked: fs::read_to_string(folder.path().join("asked")).unwrap() }
}

#[test]
fn an_upgrade_makes_the_folder_and_restarts_an_old_proxy() {
    let outcome = configure("launchway", "enabled");
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
    let outcome = configure("launchway-proxy", "enabled");
    assert!(outcome.asked.contains("try-restart launchway.service"), "{outcome:?}");
    assert!(!outcome.asked.contains("try-restart launchway-proxy.service"), "{outcome:?}");
}

#[test]
fn an_upgrade_names_who_masked_the_unit_of_the_proxy() {
    let outcome = configure("launchway-proxy", "masked");
    assert!(outcome.printed.contains("set LAUNCHWAY_PROXY_DIR= in"), "{outcome:?}");
    assert!(!outcome.printed.contains("/var/lib/launchway-proxy 750"), "{outcome:?}");
}
