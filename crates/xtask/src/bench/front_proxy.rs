//! The cost of a request through the front proxy, compared with Caddy and with no proxy.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Result;
use fs_err as fs;

use crate::{
    bench::{Effort, Figure, Load, Report, Sample, Server, http, launch, usage, wrk},
    network::free_port,
    workspace::dist,
};

const ROUNDS: u32 = 7;
const SECONDS: u32 = 3;
const CONNECTIONS: u32 = 16;
const LEAST_RATIO: f64 = 2.0;
const HOST: &str = "Host: bench.example.com";

/// Loads the three in turn.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Front proxy");
    let seconds = effort.amount(SECONDS, 1);
    report.paragraph(&format!(
        "A bare hyper server answers with 1 KiB: directly, through Launchway's proxy with its access log, \
         and through Caddy. `wrk -t1 -c{CONNECTIONS} -d{seconds}s` runs on each in turn, with persistent \
         connections. CPU is the time of the proxy alone."
    ));
    report.columns(
        "round | direct req/s | Launchway req/s | Caddy req/s | ratio | Launchway CPU µs | Caddy CPU µs | \
         Launchway p99 ms | Caddy p99 ms",
    );
    let backend = Server::start(&mut Command::new(dist("examples/backend")))?;
    let launchway = launchway(&folder.join("front-proxy"), backend.port)?;
    let caddy = caddy(&folder.join("caddy"), backend.port)?;
    let servers = [&backend, &launchway, &caddy];
    for server in servers {
        wrk::load_by(server, "/", HOST, CONNECTIONS, 1)?;
    }
    let [mut ratios, mut ours_slow, mut resident]: [Sample; 3] = Default::default();
    let memory = |server: &Server| usage::resident_megabytes(server.pid());
    for round in 1..=effort.rounds(ROUNDS) {
        let [direct, ours, theirs] = in_turn(servers, round as usize, seconds)?;
        let ratio = ours.requests_per_second / theirs.requests_per_second;
        ratios.push(ratio);
        ours_slow.push(ours.slow_milliseconds);
        resident.push(memory(&launchway)?);
        report.row(&[
            round.to_string(),
            format!("{:.0}", direct.requests_per_second),
            format!("{:.0}", ours.requests_per_second),
            format!("{:.0}", theirs.requests_per_second),
            format!("{ratio:.2}"),
            format!("{:.1}", ours.cpu_microseconds_per_request),
            format!("{:.1}", theirs.cpu_microseconds_per_request),
            format!("{:.2}", ours.slow_milliseconds),
            format!("{:.2}", theirs.slow_milliseconds),
        ]);
    }
    report.paragraph(&format!(
        "Resident after the load: Launchway's proxy {:.1} MB, Caddy {:.1} MB.",
        memory(&launchway)?,
        memory(&caddy)?
    ));
    report.figure(Figure::new("front proxy: requests/s of Caddy's", "", 2, ratios).at_least(LEAST_RATIO));
    report.figure(Figure::new("front proxy: p99", "ms", 2, ours_slow));
    report.figure(Figure::new("front proxy: resident after a load", "MB", 1, resident));
    Ok(())
}

/// Rotates the order with every round, so that none always runs on a warmer machine.
fn in_turn(servers: [&Server; 3], round: usize, seconds: u32) -> Result<[Load; 3]> {
    let mut loads = [Load::default(); 3];
    for step in 0..3 {
        let which = (round + step) % 3;
        loads[which] = wrk::load_by(servers[which], "/", HOST, CONNECTIONS, seconds)?;
    }
    Ok(loads)
}

/// Starts the proxy with one route, set as the control plane sets it.
fn launchway(data: &Path, backend: u16) -> Result<Server> {
    let (server, socket) = launch::run_proxy(data)?;
    let mut control = UnixStream::connect(socket)?;
    writeln!(
        control,
        r#"{{"ask":"replace_all","routes":[{{"application":"bench","hosts":["bench.example.com"],"target":{{"kind":"container","id":"bench","address":"127.0.0.1:{backend}"}}}}]}}"#
    )?;
    BufReader::new(control).read_line(&mut String::new())?;
    Ok(server)
}

fn caddy(folder: &Path, backend: u16) -> Result<Server> {
    let port = free_port()?;
    let configuration = format!(
        "{{\n\tadmin off\n\tauto_https off\n}}\nhttp://:{port} {{\n\treverse_proxy 127.0.0.1:{backend}\n}}\n"
    );
    fs::create_dir_all(folder)?;
    fs::write(folder.join("Caddyfile"), configuration)?;
    let mut command = Command::new("caddy");
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(folder.join("Caddyfile"))
        .env("HOME", folder)
        .env("XDG_DATA_HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .stderr(Stdio::null());
    let server = Server::start_at(&mut command, port)?;
    launch::wait_for("Caddy", launch::PAUSE, || Ok(http::get(port, "/", None).is_ok()))?;
    Ok(server)
}
