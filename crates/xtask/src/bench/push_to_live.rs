//! The time of a change from the request to live, over the same commands run by hand.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::{
    bench::{
        effort::Effort, figure::Figure, http, launch, report::Report, repository::Repository, sample::Sample,
        server::Server,
    },
    failure::{Failure, Outcome},
    workspace::{self, dist},
};

const ROUNDS: u32 = 21;
const MOST_OVERHEAD: f64 = 1.10;
const BASE: &str = "launchway-bench/base:bb";
const BY_HAND: &str = "launchway-bench";
const TIMEOUT: Duration = Duration::from_secs(120);
/// The pause after a deployment, so that the engine's cleanup does not disturb the next.
const REST: Duration = Duration::from_secs(2);
/// The number of labels, each of which is a step of the legacy builder.
const LABELS_OF_AN_IMAGE: usize = 2;
const LABELS: [&str; 6] = ["instance", "organization", "application", "deployment", "attempt", "call"];
/// The capabilities of the container's root.
const CAPABILITIES: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];
/// The number of earlier images whose build cache is used.
const IMAGES_TO_BUILD_ON: usize = 5;

/// Deploys small changes by the server and by hand, in turn.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Outcome {
    report.section("Push to live");
    report.line(
        "Seconds from a commit to a container that answers, a small image on the legacy builder, in turn:",
    );
    report.line("");
    report.columns(&["round", "by Launchway", "by hand", "ratio"]);
    base_image(&folder.join("base"))?;
    let dockerfile = format!(
        "FROM {BASE}\nCOPY index.html /www/\nCMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n"
    );
    let repository = Repository::create(&folder.join("repository"), &[("Dockerfile", &dockerfile)])?;
    let mut by_hand = ByHand::prepare(&folder.join("by-hand"), &repository)?;
    let mut launchway = ByLaunchway::prepare(&folder.join("push-to-live"), &repository)?;
    let (mut ours, mut theirs, mut ratios) = (Sample::default(), Sample::default(), Sample::default());
    for round in 1..=effort.rounds(ROUNDS) {
        let mut by_us = || launchway.deploy(&repository.commit(&format!("launchway {round}"))?);
        let mut by_them = || by_hand.deploy(&repository.commit(&format!("by hand {round}"))?);
        // The order alternates with every round, so that neither always runs on a warmer machine.
        let (own, other) = if round.is_multiple_of(2) {
            let other = by_them()?;
            (by_us()?, other)
        } else {
            (by_us()?, by_them()?)
        };
        ours.push(own);
        theirs.push(other);
        ratios.push(own / other);
        report.row(&[
            round.to_string(),
            format!("{own:.2}"),
            format!("{other:.2}"),
            format!("{:.2}", own / other),
        ]);
    }
    report.line("");
    report.figure(Figure::new("push to live by Launchway", "s", 2, ours));
    report.figure(Figure::new("push to live by hand", "s", 2, theirs));
    report.line("");
    report.line("From the request to live, over the same git and docker commands:");
    report.line("");
    report.figure(Figure::new("push to live over by hand", "", 2, ratios).at_most(MOST_OVERHEAD));
    Ok(())
}

/// Creates a base image from busybox alone, because no other can be relied on.
fn base_image(folder: &Path) -> Outcome {
    let root = folder.join("bin");
    made(fs::create_dir_all(&root))?;
    workspace::output(Command::new("cp").arg("/bin/busybox").arg(&root))?;
    let applets = workspace::output(Command::new("/bin/busybox").arg("--list"))?;
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        made(std::os::unix::fs::symlink("busybox", root.join(applet)))?;
    }
    let archive = folder.with_extension("tar");
    workspace::output(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(folder).arg("."))?;
    let mut import = docker(&["import", "--change", "ENV PATH=/bin"]);
    workspace::output(import.arg(&archive).arg(BASE)).map(drop)
}

/// The commands of a deployment, run without pauses: the network exists already, and the container gets the
/// same limits and labels. Its address is read by the command line, as users do; Launchway reads it from
/// the engine's socket, and the base image besides. What Launchway does once the new version is live
/// (enabling its restart policy, and the removal of the old one) is not timed here either.
struct ByHand {
    repository: PathBuf,
    folder: PathBuf,
    /// The images so far, newest first.
    images: Vec<String>,
    live: Option<String>,
}

impl ByHand {
    fn prepare(folder: &Path, repository: &Repository) -> Outcome<Self> {
        made(fs::create_dir_all(folder))?;
        workspace::output(Command::new("git").args(["init", "--quiet", "--bare"]).arg(folder.join("cache")))?;
        if workspace::output(&mut docker(&["network", "inspect", BY_HAND])).is_err() {
            workspace::output(&mut docker(&["network", "create", BY_HAND]))?;
        }
        let (repository, folder) = (repository.path().to_owned(), folder.to_owned());
        Ok(Self { repository, folder, images: Vec::new(), live: None })
    }

    fn deploy(&mut self, commit: &str) -> Outcome<f64> {
        let started = Instant::now();
        self.fetch(commit)?;
        let name = format!("{BY_HAND}-{commit}");
        let image = format!("{BY_HAND}:{commit}");
        self.build(&image)?;
        let mut run = docker(&["run", "--detach", "--pull", "never", "--name", &name, "--network", BY_HAND]);
        run.args(["--restart", "no", "--security-opt", "no-new-privileges", "--cap-drop", "ALL"]);
        for capability in CAPABILITIES {
            run.args(["--cap-add", capability]);
        }
        run.args(["--pids-limit", "512", "--memory", "1073741824", "--memory-swap", "1073741824"]);
        run.args(["--log-driver", "json-file", "--log-opt", "max-size=10m", "--log-opt", "max-file=3"]);
        for label in LABELS {
            run.args(["--label", &format!("launchway-bench.{label}={commit}")]);
        }
        workspace::output(run.arg(&image))?;
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let address = workspace::output(&mut docker(&["container", "inspect", "--format", format, &name]))?;
        wait_for(&format!("{address}:8080"))?;
        let seconds = started.elapsed().as_secs_f64();
        workspace::output(&mut docker(&["update", "--restart", "unless-stopped", &name]))?;
        if let Some(old) = self.live.replace(name) {
            workspace::output(&mut docker(&["rm", "--force", &old]))?;
        }
        self.images.insert(0, image);
        thread::sleep(REST);
        Ok(seconds)
    }

    fn fetch(&self, commit: &str) -> Outcome {
        let cache = format!("--git-dir={}", self.folder.join("cache").display());
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.arg(&cache).args(arguments);
            command
        };
        workspace::output(
            git(&["ls-remote", "--exit-code", "--heads", "--"]).arg(&self.repository).arg("refs/heads/main"),
        )?;
        let mut fetch = git(&["fetch", "--quiet", "--depth=1", "--no-tags", "--force", "--"]);
        workspace::output(fetch.arg(&self.repository).arg(format!("+{commit}:refs/deploy/main")))?;
        let checkout = self.folder.join("checkout");
        if checkout.exists() {
            made(fs::remove_dir_all(&checkout))?;
        }
        made(fs::create_dir_all(&checkout))?;
        let tree = format!("--work-tree={}", checkout.display());
        workspace::output(&mut git(&[&tree, "checkout", "--quiet", "--force", commit, "--", "."])).map(drop)
    }

    fn build(&self, image: &str) -> Outcome {
        let mut build =
            docker(&["build", "--force-rm", "--memory", "2147483648", "--memory-swap", "2147483648"]);
        build.env("DOCKER_BUILDKIT", "0").args(["--network", BY_HAND, "--tag", image]);
        for known in self.images.iter().take(IMAGES_TO_BUILD_ON) {
            build.args(["--cache-from", known]);
        }
        for label in LABELS.iter().take(LABELS_OF_AN_IMAGE) {
            build.args(["--label", &format!("launchway-bench.{label}={image}")]);
        }
        workspace::output(build.arg(self.folder.join("checkout"))).map(drop)
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        // Errors are ignored: nothing depends on leftovers.
        if let Some(live) = self.live.take() {
            let _left = workspace::output(&mut docker(&["rm", "--force", &live]));
        }
        let _left = workspace::output(&mut docker(&["network", "rm", BY_HAND]));
        if !self.images.is_empty() {
            let _left = workspace::output(docker(&["rmi", "--force"]).args(&self.images));
        }
    }
}

/// A server with one application.
struct ByLaunchway {
    server: Option<Server>,
    data: PathBuf,
    port: u16,
    token: String,
    application: String,
    instance: String,
}

impl ByLaunchway {
    fn prepare(data: &Path, repository: &Repository) -> Outcome<Self> {
        let server = Server::start(
            Command::new(dist("launchway"))
                .arg("serve")
                .env("LAUNCHWAY_DATA_DIR", data)
                .env("LAUNCHWAY_BIND", "127.0.0.1:0")
                .env("LAUNCHWAY_PROXY_BIND", "127.0.0.1:0")
                .env("LAUNCHWAY_LOG", "warn")
                .env("LAUNCHWAY_BUILDER", "legacy")
                .env("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", repository.path()),
        )?;
        let token = launch::register(&server)?;
        let instance = made(fs::read_to_string(data.join("instance-id")))?.trim().to_owned();
        let wish = format!(
            r#"{{"name":"bench","repository":"{}","branch":"main","port":8080,"environment":"production",
                 "build_pack":"dockerfile","health_check_path":"/"}}"#,
            repository.path().display()
        );
        let port = server.port;
        let application = launch::create(&server, &token, &wish)?;
        let launchway =
            Self { server: Some(server), data: data.to_owned(), port, token, application, instance };
        launchway.wait_until_deployed()?;
        launchway.wait_until_alone()?;
        Ok(launchway)
    }

    fn deploy(&mut self, commit: &str) -> Outcome<f64> {
        let started = Instant::now();
        let wish = format!(r#"{{"id":"{}"}}"#, self.application);
        let path = "/api/v1/deploy/application/redeploy";
        http::expect_success(path, http::post_as(self.port, path, &self.token, &wish))?;
        let newest = self.wait_until_deployed()?;
        let seconds = started.elapsed().as_secs_f64();
        if http::text_field(&newest, "commit_hash") != Some(commit) {
            return Err(Failure::new("another commit was deployed"));
        }
        self.wait_until_alone()?;
        Ok(seconds)
    }

    fn wait_until_deployed(&self) -> Outcome<String> {
        launch::wait_until_deployed(self.port, &self.token, &self.application)
    }

    /// Waits for the removal of the old version, which must not disturb the next measurement.
    fn wait_until_alone(&self) -> Outcome {
        let deadline = Instant::now() + TIMEOUT;
        let label = format!("label=launchway.instance={}", self.instance);
        while Instant::now() < deadline {
            let found = workspace::output(&mut docker(&["ps", "--all", "--quiet", "--filter", &label]))?;
            if found.lines().count() == 1 {
                thread::sleep(REST);
                return Ok(());
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(Failure::new("the old version did not go"))
    }
}

impl Drop for ByLaunchway {
    fn drop(&mut self) {
        // It would start another front proxy.
        drop(self.server.take());
        let mut stop = Command::new(dist("launchway"));
        let _gone = workspace::output(stop.args(["proxy", "stop"]).env("LAUNCHWAY_DATA_DIR", &self.data));
        let label = format!("label=launchway.instance={}", self.instance);
        let kinds: [(&[&str], &[&str]); 3] = [
            (&["ps", "--all", "--quiet"], &["rm", "--force"]),
            (&["images", "--all", "--quiet"], &["rmi", "--force"]),
            (&["network", "ls", "--quiet"], &["network", "rm"]),
        ];
        for (list, remove) in kinds {
            let found = workspace::output(docker(list).args(["--filter", &label])).unwrap_or_default();
            let found: Vec<&str> = found.lines().collect();
            if !found.is_empty() {
                // Leftovers are labelled, and nothing depends on them.
                let _left = workspace::output(docker(remove).args(found));
            }
        }
    }
}

fn docker(arguments: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(arguments);
    command
}

/// Returns when a page is served.
fn wait_for(address: &str) -> Outcome {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if answers(address).unwrap_or(false) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(Failure::new(format!("nothing answers at {address}")))
}

fn answers(address: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains(" 200 "))
}

fn made<T>(outcome: std::io::Result<T>) -> Outcome<T> {
    outcome.map_err(|error| Failure::because("the benchmark cannot be prepared", error))
}
