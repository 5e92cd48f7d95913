//! The container image, built on a base that needs no registry.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use launchway_testkit::{
    docker::{base_image, docker},
    server::binary,
};

use crate::packaging;

/// Images and a container, removed when dropped.
struct Built {
    base: String,
    image: String,
    container: Option<String>,
}

impl Built {
    /// Builds the image of the binary under test.
    fn of_the_binary() -> Self {
        let mark = std::process::id();
        let (base, image) = (format!("launchway-test/libc:{mark}"), format!("launchway-test/image:{mark}"));
        let built = Self { base, image, container: None };
        built.build_base();
        let context = tempfile::tempdir().unwrap();
        // Without debug symbols, which are most of it.
        let program = context.path().join("launchway");
        let stripped = Command::new("strip").arg("-o").arg(program).arg(binary()).status();
        assert!(stripped.unwrap().success());
        let base = format!("BASE={}", built.base);
        build(&[&built.image, "--build-arg", &base, "--file"], &packaging("Dockerfile"), context.path());
        built
    }

    /// Builds a base of busybox, and the libraries that the binary is linked to.
    fn build_base(&self) {
        let context = tempfile::tempdir().unwrap();
        let linked = Command::new("ldd").arg(binary()).output().unwrap();
        let linked = String::from_utf8(linked.stdout).unwrap();
        let libraries = linked.split_whitespace().filter(|word| word.starts_with('/'));
        for library in libraries {
            let place = context.path().join("root").join(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(library, place).unwrap();
        }
        let dockerfile = context.path().join("Dockerfile");
        fs::write(&dockerfile, format!("FROM {}\nCOPY root/ /\n", base_image())).unwrap();
        build(&[&self.base, "--file"], &dockerfile, context.path());
    }

    fn start(&mut self) -> String {
        // Without a network, so that the server of a test is isolated.
        let arguments = ["run", "--detach", "--network", "none", "--health-interval", "1s", &self.image];
        let container = docker(&arguments);
        self.container = Some(container.clone());
        container
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        let remove = |arguments: &[&str]| {
            let _gone = Command::new("docker").args(arguments).output();
        };
        if let Some(container) = &self.container {
            remove(&["rm", "--force", "--volumes", container]);
        }
        remove(&["rmi", "--force", &self.image, &self.base]);
    }
}

/// Builds an image: its tag, and further options before the name of the Dockerfile.
fn build(tag_and_more: &[&str], dockerfile: &Path, context: &Path) {
    let built = Command::new("docker")
        .env("DOCKER_BUILDKIT", "0")
        .args(["build", "--quiet", "--tag"])
        .args(tag_and_more)
        .arg(dockerfile)
        .arg(context)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{}: {said}", dockerfile.display());
}

fn health_of(container: &str) -> String {
    docker(&["inspect", "--format", "{{.State.Health.Status}}", container])
}

#[test]
fn the_image_runs_unprivileged_is_healthy_and_stops() {
    let mut built = Built::of_the_binary();
    let version = docker(&["run", "--rm", &built.image, "--version"]);
    assert_eq!(version, format!("launchway {}", env!("CARGO_PKG_VERSION")));

    let container = built.start();
    let deadline = Instant::now() + Duration::from_secs(60);
    while health_of(&container) != "healthy" {
        let log = docker(&["logs", &container]);
        assert!(Instant::now() < deadline, "{}: {log}", health_of(&container));
        std::thread::sleep(Duration::from_millis(200));
    }
    let health = docker(&["exec", &container, "wget", "-q", "-O", "-", "http://127.0.0.1:8080/health"]);
    assert!(health.contains("\"status\":\"success\""), "{health}");
    assert_eq!(docker(&["exec", &container, "id", "-u"]), "10001");
    let volume = docker(&["inspect", "--format", "{{(index .Mounts 0).Destination}}", &container]);
    assert_eq!(volume, "/data");
    let kept = docker(&["exec", &container, "ls", "/data"]);
    assert!(kept.contains("launchway.db") && kept.contains("secret.key"), "{kept}");

    docker(&["stop", "-t", "20", &container]);
    assert_eq!(docker(&["inspect", "--format", "{{.State.ExitCode}}", &container]), "0");
}
