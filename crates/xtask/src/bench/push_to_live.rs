//! The time of a change from the request, or from a push, to live, over the same commands run by hand.

use std::{
    env,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use fs_err::{self as fs, os::unix::fs::symlink};

use crate::{
    bench::{Effort, Figure, Report, Repository, Sample, Server, http, launch},
    workspace,
};

const ROUNDS: u32 = 21;
const MOST_OVERHEAD: f64 = 1.05;
const MOST_OVERHEAD_OF_PUSHES: f64 = 1.15;
const LIST: &str = "/api/v1/deploy/applications?page_size=1";
const BASE: &str = "launchway-bench/base:bb";
const BY_HAND: &str = "launchway-bench";
/// The pause after a deployment, so that the engine's cleanup does not disturb the next.
const REST: Duration = Duration::from_millis(500);
/// The number of labels of an image, each of which is a step of the legacy builder.
const LABELS_OF_AN_IMAGE: usize = 2;
const LABELS: [&str; 6] = ["instance", "organization", "application", "deployment", "attempt", "call"];
/// The capabilities of the container's root.
const CAPABILITIES: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];
/// The file that describes the application to a server that it is pushed to.
const DESCRIPTION: &str = "\
name = \"bench\"
build_pack = \"dockerfile\"
port = 8080
health_check_path = \"/\"
";
/// The number of earlier images whose build cache is used.
const IMAGES_TO_BUILD_ON: usize = 5;

/// Deploys a commit, and returns the seconds until it was live.
type Deploy<'a> = &'a mut dyn FnMut(&str) -> Result<f64>;

/// The builder of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Builder {
    Legacy,
    BuildKit,
}

impl Builder {
    fn name(self) -> &'static str {
        match self {
            Self::Legacy => "the legacy builder",
            Self::BuildKit => "BuildKit",
        }
    }

    /// Returns the value of the server's setting.
    fn setting(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::BuildKit => "buildkit",
        }
    }

    /// Returns a Docker command line that has it: since version 23, BuildKit needs the component buildx.
    fn program(self) -> Result<PathBuf> {
        let can_build = |program: &&str| {
            let mut help = Command::new(program);
            workspace::output(help.args(["build", "--help"]).env("DOCKER_BUILDKIT", self.variable())).is_ok()
        };
        let program = ["docker", "/usr/bin/docker"].into_iter().find(can_build);
        Ok(program.with_context(|| format!("no Docker command line here has {}", self.name()))?.into())
    }

    /// Returns the value of `DOCKER_BUILDKIT`, by which the command line chooses it.
    fn variable(self) -> &'static str {
        match self {
            Self::Legacy => "0",
            Self::BuildKit => "1",
        }
    }
}

/// Deploys small changes by the server and by hand, in turn.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Push to live");
    report.paragraph(
        "Seconds from a commit to a container that answers, for a small image, in turn. Launchway is \
         measured from the request until the version is live, and from `git push` to its end, which is when \
         the version is live. Both are compared with the same git and docker commands by hand. The push by \
         hand goes to a bare repository on the same disk.",
    );
    base_image(&folder.join("base"))?;
    // The server is the first process of its container, which ignores the usual signal and would be waited for.
    let dockerfile = format!(
        "FROM {BASE}\nSTOPSIGNAL SIGKILL\nCOPY index.html /www/\nCMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n"
    );
    let files = [("Dockerfile", dockerfile.as_str()), ("launchway.toml", DESCRIPTION)];
    let repository = Repository::create(&folder.join("repository"), &files)?;
    measure_legacy(report, &folder.join("legacy"), &repository, effort)?;
    measure_buildkit(report, &folder.join("buildkit"), &repository, effort)
}

/// Measures requests and pushes on the legacy builder.
fn measure_legacy(report: &mut Report, folder: &Path, repository: &Repository, effort: Effort) -> Result<()> {
    let builder = Builder::Legacy;
    let mut redeployed = ByLaunchway::prepare(&folder.join("redeployed"), repository, builder)?;
    let mut fetched = ByHand::prepare(&folder.join("fetched"), repository, Transfer::Fetch, builder)?;
    let pushed = ByPush::prepare(&folder.join("pushed"), repository, builder)?;
    let mut sent = ByHand::prepare(&folder.join("sent"), repository, Transfer::Push, builder)?;
    let mut deploys: [Deploy<'_>; 4] = [
        &mut |commit| redeployed.deploy(commit),
        &mut |commit| fetched.deploy(commit),
        &mut |commit| pushed.deploy(commit),
        &mut |commit| sent.deploy(commit),
    ];
    let columns = ["redeployed", "by hand, fetched", "pushed", "by hand, pushed"];
    report.subsection(&format!("By {}", builder.name()));
    let samples = in_turn(report, &columns, &mut deploys, repository, effort)?;
    let [own, other, push, other_push] = &samples[..] else { bail!("a way was not measured") };
    let (ratios, ratios_of_pushes) = (own.over(other), push.over(other_push));
    for (name, sample) in [
        ("push to live by Launchway", own),
        ("push to live by hand", other),
        ("push to live by git push", push),
        ("push to live by git push by hand", other_push),
    ] {
        report.figure(Figure::new(name, "s", 2, sample.clone()));
    }
    report.figure(Figure::new("push to live over by hand", "", 2, ratios).at_most(MOST_OVERHEAD));
    let name = "push to live by git push over by hand";
    report.figure(Figure::new(name, "", 2, ratios_of_pushes).at_most(MOST_OVERHEAD_OF_PUSHES));
    Ok(())
}

/// Measures requests on BuildKit.
fn measure_buildkit(
    report: &mut Report,
    folder: &Path,
    repository: &Repository,
    effort: Effort,
) -> Result<()> {
    let builder = Builder::BuildKit;
    let mut redeployed = ByLaunchway::prepare(&folder.join("redeployed"), repository, builder)?;
    let mut fetched = ByHand::prepare(&folder.join("fetched"), repository, Transfer::Fetch, builder)?;
    let mut deploys: [Deploy<'_>; 2] =
        [&mut |commit| redeployed.deploy(commit), &mut |commit| fetched.deploy(commit)];
    report.subsection(&format!("By {}", builder.name()));
    let samples = in_turn(report, &["redeployed", "by hand, fetched"], &mut deploys, repository, effort)?;
    let [own, other] = &samples[..] else { bail!("a way was not measured") };
    let ratios = own.over(other);
    report.figure(Figure::new("push to live by Launchway, BuildKit", "s", 2, own.clone()));
    report.figure(Figure::new("push to live by hand, BuildKit", "s", 2, other.clone()));
    report.figure(Figure::new("push to live over by hand, BuildKit", "", 2, ratios).at_most(MOST_OVERHEAD));
    Ok(())
}

/// Deploys a commit by each way in each round; returns the seconds of each way.
fn in_turn(
    report: &mut Report,
    ways: &[&str],
    deploys: &mut [Deploy<'_>],
    repository: &Repository,
    effort: Effort,
) -> Result<Vec<Sample>> {
    report.columns(&format!("round | {}", ways.join(" | ")));
    let mut samples = vec![Sample::default(); deploys.len()];
    for round in 1..=effort.rounds(ROUNDS) {
        let mut seconds = vec![0.0; deploys.len()];
        for step in 0..deploys.len() {
            // The order alternates with every round, so that none always runs on a warmer machine.
            let way = if round.is_multiple_of(2) { deploys.len() - 1 - step } else { step };
            seconds[way] = deploys[way](&repository.commit(&format!("round {round}, way {way}"))?)?;
            samples[way].push(seconds[way]);
        }
        let cells = seconds.iter().map(|seconds| format!("{seconds:.2}"));
        report.row(&std::iter::once(round.to_string()).chain(cells).collect::<Vec<_>>());
    }
    Ok(samples)
}

/// Creates a base image from busybox alone, because no other can be relied on.
fn base_image(folder: &Path) -> Result<()> {
    let root = folder.join("bin");
    fs::create_dir_all(&root)?;
    workspace::output(Command::new("cp").arg("/bin/busybox").arg(&root))?;
    let applets = workspace::output(Command::new("/bin/busybox").arg("--list"))?;
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", root.join(applet))?;
    }
    let archive = folder.with_extension("tar");
    workspace::output(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(folder).arg("."))?;
    let mut import = docker("import --change");
    workspace::output(import.arg("ENV PATH=/bin").arg(&archive).arg(BASE)).map(drop)
}

/// The commands of a deployment, run without pauses: the network exists already, and the container gets the
/// same limits and labels. Its address is read by the command line, as users do; Launchway reads it from
/// the engine's socket, and the base image besides. What Launchway does once the new version is live
/// (enabling its restart policy, and the removal of the old one) is not timed here either.
struct ByHand {
    repository: PathBuf,
    transfer: Transfer,
    builder: Builder,
    folder: PathBuf,
    /// The images so far, newest first.
    images: Vec<String>,
    live: Option<String>,
}

/// The way of a commit to the machine.
#[derive(Clone, Copy)]
enum Transfer {
    Fetch,
    Push,
}

impl ByHand {
    fn prepare(folder: &Path, repository: &Repository, transfer: Transfer, builder: Builder) -> Result<Self> {
        fs::create_dir_all(folder)?;
        workspace::output(Command::new("git").args(["init", "--quiet", "--bare"]).arg(folder.join("cache")))?;
        if workspace::output(&mut docker(&format!("network inspect {BY_HAND}"))).is_err() {
            workspace::output(&mut docker(&format!("network create {BY_HAND}")))?;
        }
        let (repository, folder) = (repository.path().to_owned(), folder.to_owned());
        Ok(Self { repository, transfer, builder, folder, images: Vec::new(), live: None })
    }

    fn deploy(&mut self, commit: &str) -> Result<f64> {
        let started = Instant::now();
        match self.transfer {
            Transfer::Fetch => self.fetch(commit)?,
            Transfer::Push => self.push(commit)?,
        }
        self.check_out(commit)?;
        let name = format!("{BY_HAND}-{commit}");
        let image = format!("{BY_HAND}:{commit}");
        self.build(&image)?;
        let mut run = docker(&format!(
            "run --detach --pull never --name {name} --network {BY_HAND} --restart no \
             --security-opt no-new-privileges --cap-drop ALL --pids-limit 512 \
             --memory 1073741824 --memory-swap 1073741824 \
             --log-driver json-file --log-opt max-size=10m --log-opt max-file=3"
        ));
        run.args(CAPABILITIES.iter().flat_map(|capability| ["--cap-add", capability]));
        run.args(LABELS.map(|label| format!("--label=launchway-bench.{label}={commit}")));
        workspace::output(run.arg(&image))?;
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let address = workspace::output(docker("container inspect --format").args([format, &name]))?;
        let address = format!("{address}:8080");
        launch::wait_for("the page", launch::PAUSE, || Ok(answers(&address).unwrap_or(false)))?;
        let seconds = started.elapsed().as_secs_f64();
        workspace::output(&mut docker(&format!("update --restart unless-stopped {name}")))?;
        if let Some(old) = self.live.replace(name) {
            workspace::output(&mut docker(&format!("rm --force {old}")))?;
        }
        self.images.insert(0, image);
        thread::sleep(REST);
        Ok(seconds)
    }

    /// Returns a git command on the cache.
    fn git(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg(format!("--git-dir={}", self.folder.join("cache").display())).args(arguments);
        command
    }

    fn fetch(&self, commit: &str) -> Result<()> {
        let mut list = self.git(&["ls-remote", "--exit-code", "--heads", "--"]);
        workspace::output(list.arg(&self.repository).arg("refs/heads/main"))?;
        let mut fetch = self.git(&["fetch", "--quiet", "--depth=1", "--no-tags", "--force", "--"]);
        workspace::output(fetch.arg(&self.repository).arg(format!("+{commit}:refs/deploy/main"))).map(drop)
    }

    fn push(&self, commit: &str) -> Result<()> {
        let mut push = Command::new("git");
        push.arg("-C").arg(&self.repository).args(["push", "--quiet"]).arg(self.folder.join("cache"));
        workspace::output(push.arg(format!("{commit}:refs/heads/main"))).map(drop)
    }

    fn check_out(&self, commit: &str) -> Result<()> {
        let checkout = self.folder.join("checkout");
        if checkout.exists() {
            fs::remove_dir_all(&checkout)?;
        }
        fs::create_dir_all(&checkout)?;
        let tree = format!("--work-tree={}", checkout.display());
        workspace::output(&mut self.git(&[&tree, "checkout", "--quiet", "--force", commit, "--", "."]))
            .map(drop)
    }

    fn build(&self, image: &str) -> Result<()> {
        let mut build = Command::new(self.builder.program()?);
        build.args(["build", "--tag", image]);
        build.env("DOCKER_BUILDKIT", self.builder.variable());
        if self.builder == Builder::Legacy {
            let limits = "--memory 2147483648 --memory-swap 2147483648";
            build.args(format!("--force-rm {limits} --network {BY_HAND}").split(' '));
            build.args(self.images.iter().take(IMAGES_TO_BUILD_ON).flat_map(|known| ["--cache-from", known]));
        }
        let labels = LABELS.iter().take(LABELS_OF_AN_IMAGE);
        build.args(labels.map(|label| format!("--label=launchway-bench.{label}={image}")));
        workspace::output(build.arg(self.folder.join("checkout"))).map(drop)
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        // Errors are ignored: nothing depends on leftovers.
        if let Some(live) = self.live.take() {
            let _left = workspace::output(&mut docker(&format!("rm --force {live}")));
        }
        let _left = workspace::output(&mut docker(&format!("network rm {BY_HAND}")));
        if !self.images.is_empty() {
            let _left = workspace::output(docker("rmi --force").args(&self.images));
        }
    }
}

/// A server with one application.
struct ByLaunchway {
    server: Server,
    data: PathBuf,
    token: String,
    application: String,
    instance: String,
}

impl ByLaunchway {
    /// Starts a server without an application.
    fn start(data: &Path, repository: &Repository, builder: Builder) -> Result<Self> {
        let repository = repository.path().display();
        let settings = [
            ("LAUNCHWAY_PROXY_BIND", "127.0.0.1:0".to_owned()),
            ("LAUNCHWAY_LOG", "warn".to_owned()),
            ("LAUNCHWAY_BUILDER", builder.setting().to_owned()),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", repository.to_string()),
        ];
        let program = builder.program()?;
        let folder = program.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut path: Vec<PathBuf> = folder.map(Path::to_owned).into_iter().collect();
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let path = env::join_paths(path)?.to_string_lossy().into_owned();
        let server = launch::serve(data, &[settings.as_slice(), &[("PATH", path)]].concat())?;
        let token = launch::register(&server)?;
        let instance = fs::read_to_string(data.join("instance-id"))?.trim().to_owned();
        Ok(Self { server, data: data.to_owned(), token, application: String::new(), instance })
    }

    fn prepare(data: &Path, repository: &Repository, builder: Builder) -> Result<Self> {
        let mut launchway = Self::start(data, repository, builder)?;
        let repository = repository.path().display();
        let body = format!(
            r#"{{"name":"bench","repository":"{repository}","branch":"main","port":8080,"environment":"production",
                 "build_pack":"dockerfile","health_check_path":"/"}}"#
        );
        launchway.application = launch::create(&launchway.server, &launchway.token, &body)?;
        launchway.wait_until_deployed()?;
        launchway.wait_until_alone()?;
        Ok(launchway)
    }

    fn deploy(&mut self, commit: &str) -> Result<f64> {
        let started = Instant::now();
        let body = format!(r#"{{"id":"{}"}}"#, self.application);
        http::post(self.server.port, "/api/v1/deploy/application/redeploy", Some(&self.token), &body)?;
        let newest = self.wait_until_deployed()?;
        let seconds = started.elapsed().as_secs_f64();
        ensure!(http::text_field(&newest, "commit_hash")? == commit, "another commit was deployed");
        self.wait_until_alone()?;
        Ok(seconds)
    }

    fn wait_until_deployed(&self) -> Result<String> {
        launch::wait_until_deployed(self.server.port, &self.token, &self.application)
    }

    /// Waits for the removal of the old version, which must not disturb the next measurement.
    fn wait_until_alone(&self) -> Result<()> {
        launch::wait_for("the removal of the old version", Duration::from_millis(200), || {
            Ok(self.list("ps --all")?.lines().count() == 1)
        })?;
        thread::sleep(REST);
        Ok(())
    }

    /// Returns the ids of the containers, images or networks of the server.
    fn list(&self, command: &str) -> Result<String> {
        let instance = &self.instance;
        workspace::output(&mut docker(&format!(
            "{command} --quiet --filter label=launchway.instance={instance}"
        )))
    }
}

impl Drop for ByLaunchway {
    fn drop(&mut self) {
        launch::stop(&mut self.server, &self.data);
        for (list, remove) in
            [("ps --all", "rm --force"), ("images --all", "rmi --force"), ("network ls", "network rm")]
        {
            let found = self.list(list).unwrap_or_default();
            if !found.is_empty() {
                // Leftovers are labelled, and nothing depends on them.
                let _left = workspace::output(docker(remove).args(found.lines()));
            }
        }
    }
}

/// A server to which commits are pushed.
struct ByPush {
    launchway: ByLaunchway,
    repository: PathBuf,
    /// The address to push to, with the token.
    remote: String,
}

impl ByPush {
    fn prepare(data: &Path, repository: &Repository, builder: Builder) -> Result<Self> {
        let launchway = ByLaunchway::start(data, repository, builder)?;
        let ByLaunchway { server, token, .. } = &launchway;
        let path = "git/bench%27s%20Team/production/bench.git";
        let remote = format!("http://bench:{token}@127.0.0.1:{}/{path}", server.port);
        let mut pushed = Self { launchway, repository: repository.path().to_owned(), remote };
        pushed.push()?;
        let listed = http::get(pushed.launchway.server.port, LIST, Some(&pushed.launchway.token))?;
        pushed.launchway.application = http::text_field(&listed, "id")?;
        pushed.launchway.wait_until_alone()?;
        Ok(pushed)
    }

    fn push(&self) -> Result<()> {
        let mut push = Command::new("git");
        push.arg("-C").arg(&self.repository).args(["push", "--quiet", &self.remote, "HEAD:refs/heads/main"]);
        // The token must not be printed.
        let hidden =
            |error: anyhow::Error| anyhow!(format!("{error:#}").replace(&self.launchway.token, "***"));
        workspace::output(&mut push).map(drop).map_err(hidden)
    }

    /// Pushes a commit. The push ends when the version is live.
    fn deploy(&self, commit: &str) -> Result<f64> {
        let started = Instant::now();
        self.push()?;
        let seconds = started.elapsed().as_secs_f64();
        let newest = self.launchway.wait_until_deployed()?;
        ensure!(http::text_field(&newest, "commit_hash")? == commit, "another commit was deployed");
        self.launchway.wait_until_alone()?;
        Ok(seconds)
    }
}

/// Returns a command of docker with these words as arguments.
fn docker(arguments: &str) -> Command {
    let mut command = Command::new("docker");
    command.args(arguments.split_whitespace());
    command
}

/// Returns whether a page is served.
fn answers(address: &str) -> Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains(" 200 "))
}
