//! Installs missing requirements, or prints the command that does.

use std::{
    env, ffi::OsString, fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path, process::Command,
};

use anyhow::{Result, bail, ensure};
use fs_err as fs;

use crate::{
    needs::{self, Need},
    scratch::Scratch,
    workspace::{self, cargo},
};

/// Debian's settings for the cluster that its package would create and start.
const CREATE_CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";
/// The script that Debian's packages run before they start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Ensures that the machine has what tests and benchmarks need.
///
/// Installs only when asked to, on Debian, as root; otherwise fails with the command to type.
pub(crate) fn ensure(install: bool) -> Result<()> {
    let missing = needs::missing();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().flat_map(|need| need.packages).copied().collect();
    ensure!(install, advice(&missing, &packages));
    if !is_debian() || !is_root()? {
        bail!("{}\n`--install` works on Debian as root only", advice(&missing, &packages));
    }
    apt(&packages)?;
    let missing = needs::missing();
    ensure!(missing.is_empty(), advice(&missing, &packages));
    Ok(())
}

/// Ensures that cargo has the subcommand `name` (`fuzz`, `deb`) in the expected version.
pub(crate) fn ensure_subcommand(name: &str, version: &str) -> Result<()> {
    let package = format!("cargo-{name}");
    // Finds an installation of another version, too, and leaves one of this version as it is.
    if needs::has_program(&package) {
        let told = workspace::output(&mut cargo(&format!("{name} --version")))?;
        if told.split_whitespace().last() == Some(version) {
            return Ok(());
        }
    }
    workspace::run(&mut cargo(&format!("install {package} --version {version} --locked")))
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> Result<bool> {
    Ok(workspace::output(Command::new("id").arg("-u"))? == "0")
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists() && needs::has_program("apt-get")
}

fn apt(packages: &[&str]) -> Result<()> {
    if packages.contains(&"postgresql") {
        keep_cluster_away()?;
    }
    let _quiet = keep_services_quiet()?;
    workspace::run(Command::new("apt-get").arg("update"))?;
    workspace::run(
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive")
            // There is no user to answer when a package finds settings that it did not write.
            .env("UCF_FORCE_CONFFOLD", "1"),
    )
}

/// Configures Debian's package not to create a cluster, unless the machine's owner has configured it
/// already.
fn keep_cluster_away() -> Result<()> {
    let file = Path::new(CREATE_CLUSTER);
    if file.exists() {
        return Ok(());
    }
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    Ok(fs::write(file, "create_main_cluster = false\n")?)
}

/// Configures Debian's packages not to start services, for as long as the value lives: an SSH server is not
/// wanted here, and without an init system, the start and with it the installation would fail.
fn keep_services_quiet() -> Result<Option<Scratch>> {
    let file = Path::new(POLICY);
    if file.exists() {
        return Ok(None);
    }
    // The file must be removed however we end.
    let farewell = ["rm", "-f", POLICY].map(OsString::from);
    let scratch = Scratch::create(&env::temp_dir(), "install", &farewell)?;
    fs::write(file, "#!/bin/sh\nexit 101\n")?;
    fs::set_permissions(file, Permissions::from_mode(0o755))?;
    Ok(Some(scratch))
}

fn advice(missing: &[&Need], packages: &[&str]) -> String {
    let mut lines: Vec<_> =
        missing.iter().map(|need| format!("missing: {} ({})", need.name, need.purpose)).collect();
    let command = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    lines.push(format!("on Debian, as root: apt-get update && {command}"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_of_a_machine_that_has_everything() {
        // A machine that runs the tests meets their requirements.
        assert!(ensure(false).is_ok());
    }

    #[test]
    fn advice_names_the_packages_in_one_command() {
        let advice = advice(&[], &["git", "postgresql"]);
        assert!(advice.ends_with("apt-get install -y --no-install-recommends git postgresql"), "{advice}");
    }
}
