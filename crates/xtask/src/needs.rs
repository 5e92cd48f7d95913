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
    detection: Detection,
    pub(crate) packages: &'static [&'static str],
}

#[derive(Debug)]
enum Detection {
    /// Any one of these programs is on the path.
    Program(&'static [&'static str]),
    /// `initdb`, `pg_ctl` and `postgres` are in one folder, on the path or where Debian puts them.
    PostgresServer,
    /// The command line of docker is on the path, with an engine that answers or can be started.
    DockerEngine,
    /// A statically linked busybox, for base images.
    StaticBusybox,
}

const TABLE: &[Need] = &[
    Need {
        name: "git",
        purpose: "tests fetch from repositories",
        detection: Detection::Program(&["git"]),
        packages: &["git"],
    },
    Need {
        name: "a C compiler",
        purpose: "SQLite and libpq are built from source",
        detection: Detection::Program(&["cc", "gcc", "clang"]),
        packages: &["gcc", "libc6-dev"],
    },
    Need {
        name: "the PostgreSQL server",
        purpose: "the database tests run on it as well as on SQLite",
        detection: Detection::PostgresServer,
        packages: &["postgresql"],
    },
    Need {
        name: "the Docker engine",
        purpose: "deployment tests build and run containers",
        detection: Detection::DockerEngine,
        packages: &["docker.io"],
    },
    Need {
        name: "docker compose",
        purpose: "deployment tests run the services of compose files",
        detection: Detection::Program(&["docker-compose"]),
        packages: &["docker-compose"],
    },
    Need {
        name: "a static busybox at /bin/busybox",
        purpose: "the containers of deployment tests are made of it, without a registry",
        detection: Detection::StaticBusybox,
        packages: &["busybox-static"],
    },
    Need {
        name: "the SSH server",
        purpose: "tests fetch from private repositories by SSH",
        detection: Detection::Program(&["sshd"]),
        packages: &["openssh-server"],
    },
    Need {
        name: "the mail server aiosmtpd, for the Python of the system",
        purpose: "tests send mail to it",
        detection: Detection::Program(&["aiosmtpd"]),
        packages: &["python3-aiosmtpd"],
    },
    Need {
        name: "curl",
        purpose: "tests fetch pages over TLS with it",
        detection: Detection::Program(&["curl"]),
        packages: &["curl"],
    },
    Need {
        name: "pkill",
        purpose: "the quick start of the README kills the server with it",
        detection: Detection::Program(&["pkill"]),
        packages: &["procps"],
    },
    Need {
        name: "caddy",
        purpose: "tests put it in front of applications, and the benchmark beside the front proxy",
        detection: Detection::Program(&["caddy"]),
        packages: &["caddy"],
    },
    Need {
        name: "systemd-analyze",
        purpose: "tests have it read and rate the units, and expand their filters; nothing is started by it",
        detection: Detection::Program(&["systemd-analyze"]),
        packages: &["systemd"],
    },
    Need {
        name: "nft",
        purpose: "tests load the optional rules of the packet filter in network namespaces of their own",
        detection: Detection::Program(&["nft"]),
        packages: &["nftables"],
    },
    Need {
        name: "ip",
        purpose: "tests and fault campaigns make network namespaces with it",
        detection: Detection::Program(&["ip"]),
        packages: &["iproute2"],
    },
    Need {
        name: "wrk",
        purpose: "it makes the load of benchmarks, and of tests that no request fails",
        detection: Detection::Program(&["wrk"]),
        packages: &["wrk"],
    },
    Need {
        name: "strace",
        purpose: "fault campaigns make system calls fail with it, and rebuild disks from what it saw",
        detection: Detection::Program(&["strace"]),
        packages: &["strace"],
    },
    Need {
        name: "faketime",
        purpose: "fault campaigns move the clock of a server with its library",
        detection: Detection::Program(&["faketime"]),
        packages: &["faketime"],
    },
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

impl Need {
    fn is_met(&self) -> bool {
        match self.detection {
            Detection::Program(names) => names.iter().any(|name| has_program(name)),
            Detection::PostgresServer => postgres::binaries().is_some(),
            Detection::DockerEngine => has_program("docker") && (has_program("dockerd") || engine::answers()),
            Detection::StaticBusybox => is_program(Path::new(BUSYBOX)) && is_static(BUSYBOX),
        }
    }
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
