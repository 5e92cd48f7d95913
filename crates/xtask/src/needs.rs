//! The requirements of the commands, as a table, and checks for them.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{engine, postgres};

/// The path on Debian.
const BUSYBOX: &str = "/bin/busybox";

/// A requirement of the machine.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) packages: &'static [&'static str],
    is_met: Option<fn() -> bool>,
}

impl Need {
    /// A requirement that is met by a program of this name on the path.
    const fn new(name: &'static str, purpose: &'static str, packages: &'static [&'static str]) -> Self {
        Self { name, purpose, packages, is_met: None }
    }

    /// Replaces the check for a program.
    const fn met_if(self, is_met: fn() -> bool) -> Self {
        Self { is_met: Some(is_met), ..self }
    }

    fn is_met(&self) -> bool {
        self.is_met.map_or_else(|| has_program(self.name), |is_met| is_met())
    }
}

const TABLE: &[Need] = &[
    Need::new("git", "tests fetch from repositories", &["git"]),
    Need::new("a C compiler", "SQLite and libpq are built from source", &["gcc", "libc6-dev"])
        .met_if(|| ["cc", "gcc", "clang"].into_iter().any(has_program)),
    Need::new("the PostgreSQL server", "the database tests run on it as well as on SQLite", &["postgresql"])
        .met_if(|| postgres::binaries().is_some()),
    Need::new("the Docker engine", "deployment tests build and run containers", &["docker.io"])
        .met_if(|| has_program("docker") && (has_program("dockerd") || engine::answers())),
    Need::new(
        "docker-registry",
        "the nodes of a Docker Swarm in tests pull images from it",
        &["docker-registry"],
    ),
    Need::new("docker-compose", "deployment tests run the services of compose files", &["docker-compose"]),
    Need::new(
        "a static busybox at /bin/busybox",
        "the containers of deployment tests are made of it, without a registry",
        &["busybox-static"],
    )
    .met_if(|| is_program(Path::new(BUSYBOX)) && is_static(BUSYBOX)),
    Need::new("sshd", "tests fetch from private repositories by SSH", &["openssh-server"]),
    Need::new("aiosmtpd", "tests send mail to it, with the Python of the system", &["python3-aiosmtpd"]),
    Need::new("curl", "tests fetch pages over TLS with it", &["curl"]),
    Need::new("pebble", "tests get certificates from it", &["pebble"]),
    Need::new("pkill", "the quick start of the README kills the server with it", &["procps"]),
    Need::new(
        "caddy",
        "tests put it in front of applications, and the benchmark beside the front proxy",
        &["caddy"],
    ),
    Need::new("nginx", "the benchmark compares the front proxy with it", &["nginx-light"]),
    Need::new("haproxy", "the benchmark compares the front proxy with it", &["haproxy"]),
    Need::new("openssl", "the benchmark makes a certificate with it", &["openssl"]),
    Need::new(
        "systemd-analyze",
        "tests have it read and rate the units, and expand their filters; nothing is started by it",
        &["systemd"],
    ),
    Need::new(
        "nft",
        "tests load the optional rules of the packet filter in network namespaces of their own",
        &["nftables"],
    ),
    Need::new("chromium", "tests open the dashboard and the API reference in it", &["chromium"]),
    Need::new("chromedriver", "tests drive the browser with it", &["chromium-driver"]),
    Need::new("npm", "tests get axe-core by it, which checks that pages are accessible", &["npm"]),
    Need::new("ip", "tests and fault campaigns make network namespaces with it", &["iproute2"]),
    Need::new("wrk", "it makes the load of benchmarks, and of tests that no request fails", &["wrk"]),
    Need::new(
        "strace",
        "fault campaigns make system calls fail with it, and rebuild disks from what it saw",
        &["strace"],
    ),
    Need::new("faketime", "fault campaigns move the clock of a server with its library", &["faketime"]),
];

/// Returns the requirements that this machine does not meet.
pub(crate) fn missing() -> Vec<&'static Need> {
    TABLE.iter().filter(|need| !need.is_met()).collect()
}

/// Returns the folders in which programs are searched.
pub(crate) fn program_folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // An ordinary user's path lacks these two, which contain daemons.
    env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect()
}

/// Returns whether one of the folders has this program.
pub(crate) fn has_program(name: &str) -> bool {
    program_folders().iter().any(|folder| is_program(&folder.join(name)))
}

/// Returns whether this is an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Returns whether a program needs no shared libraries, which an empty container does not have.
fn is_static(program: &str) -> bool {
    let asked = Command::new("ldd").arg(program).stdin(Stdio::null()).output();
    asked.is_ok_and(|output| !output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_machine_has_is_found() {
        assert!(has_program("sh"));
    }

    #[test]
    fn what_no_machine_has_is_not_found() {
        assert!(!has_program("launchway-no-such-program"));
    }

    #[test]
    fn a_folder_is_no_program() {
        assert!(!is_program(Path::new("/usr")));
    }

    #[test]
    fn a_program_with_libraries_is_not_static() {
        assert!(!is_static("/bin/sh"));
        assert!(is_static(BUSYBOX));
    }

    #[test]
    fn every_need_names_a_package() {
        assert!(TABLE.iter().all(|need| !need.packages.is_empty()));
    }
}
