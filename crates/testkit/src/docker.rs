//! A base image that needs no registry, separate installations on the engine of this machine, and an
//! engine that is down.
//!
//! Needs a running Docker engine with its command line, a static `/bin/busybox` and `tar`, and a test whose name contains
//! `docker`.

mod fake;
mod forwarder;
mod registry;

use std::{
    fs,
    fs::File,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
};

use launchway_domain::ids::InstanceId;

pub use self::{
    fake::{FakeCall, FakeDocker, FakeProgram},
    forwarder::EngineForwarder,
    registry::{FakeRegistry, registry_response},
};
use crate::{SHARED, services::require};

/// The base image: busybox and nothing else.
const BASE: &str = "launchway-test/base:bb";

/// Returns the name of a base image with a shell and the usual small programs, built at the first
/// call on this machine.
///
/// # Panics
///
/// If the engine or busybox is not there.
#[must_use]
pub fn base_image() -> &'static str {
    // Tests run in many processes at once.
    let lock = File::create(Path::new(SHARED).join("launchway-test-base.lock")).unwrap();
    lock.lock().unwrap();
    if !try_docker(&["image", "inspect", BASE]).status.success() {
        make_base_image();
    }
    BASE
}

/// Writes the base image to a file, for another engine.
///
/// # Panics
///
/// As [`base_image`].
pub fn save_base_image(file: &Path) {
    docker(&["save", "--output", &file.display().to_string(), base_image()]);
}

/// Returns a Dockerfile of a web server on port 8080 that answers every existing path with `text`.
#[must_use]
pub fn http_app(text: &str) -> String {
    format!(
        "FROM {}\nRUN mkdir -p /www && echo '{text}' > /www/index.html && echo ok > /www/health\n\
         CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n",
        base_image()
    )
}

/// Runs docker with `arguments` and returns its output.
///
/// # Panics
///
/// If it fails.
pub fn docker(arguments: &[&str]) -> String {
    let output = try_docker(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn try_docker(arguments: &[&str]) -> Output {
    require("docker");
    let output = Command::new("docker").args(arguments).stdin(Stdio::null()).output();
    output.expect("this test needs the command line of docker: install the package docker.io")
}

/// Everything on the engine with the label of an installation; removed when dropped.
#[derive(Debug)]
pub struct Traces {
    instance: InstanceId,
}

impl Traces {
    /// Of an installation that no other test uses.
    #[must_use]
    pub fn of(instance: InstanceId) -> Self {
        require("docker");
        Self { instance }
    }

    /// Returns the ids of its containers.
    #[must_use]
    pub fn containers(&self) -> Vec<String> {
        self.list(&["ps", "--all", "--quiet", "--no-trunc"])
    }

    /// Returns the ids of its images.
    #[must_use]
    pub fn images(&self) -> Vec<String> {
        self.list(&["image", "ls", "--quiet", "--no-trunc"])
    }

    /// Returns the ids of its networks.
    #[must_use]
    pub fn networks(&self) -> Vec<String> {
        self.list(&["network", "ls", "--quiet", "--no-trunc"])
    }

    /// Returns the names of its volumes.
    #[must_use]
    pub fn volumes(&self) -> Vec<String> {
        self.list(&["volume", "ls", "--quiet"])
    }

    fn list(&self, arguments: &[&str]) -> Vec<String> {
        let filter = format!("label=launchway.instance={}", self.instance);
        let listed = docker(&[arguments, &["--filter", &filter]].concat());
        let mut ids: Vec<String> = listed.lines().map(str::to_owned).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        for (command, ids) in [
            (["rm", "--force"].as_slice(), self.containers()),
            // Keeps layers that concurrent builds take from the cache.
            (&["image", "rm", "--force", "--no-prune"], self.images()),
            (&["network", "rm"], self.networks()),
            (&["volume", "rm"], self.volumes()),
        ] {
            for id in ids {
                // Leftovers are reported by the tests that count them.
                let _gone = try_docker(&[command, &[&id]].concat());
            }
        }
    }
}

fn make_base_image() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["bin", "dev", "etc", "proc", "sys", "tmp", "www"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    fs::copy("/bin/busybox", root.join("bin/busybox"))
        .expect("this test needs /bin/busybox: install the package busybox-static");
    for applet in applets() {
        symlink("busybox", root.join("bin").join(applet)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\napp:x:1000:1000:app:/:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\napp:x:1000:\n").unwrap();
    import(root);
}

fn applets() -> Vec<String> {
    let listed = Command::new("/bin/busybox").arg("--list").output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    names.lines().filter(|name| *name != "busybox").map(str::to_owned).collect()
}

fn import(root: &Path) {
    let mut tar = Command::new("tar")
        .args(["--numeric-owner", "--owner=0", "--group=0", "-C"])
        .arg(root)
        .args(["-c", "."])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let imported = Command::new("docker")
        .args(["import", "--change", "ENV PATH=/bin", "--change", "CMD [\"/bin/sh\"]", "-", BASE])
        .stdin(tar.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(tar.wait().unwrap().success());
    let stderr = String::from_utf8_lossy(&imported.stderr);
    assert!(imported.status.success(), "no base image: is the Docker engine running? {stderr}");
}
