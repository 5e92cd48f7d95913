//! The cost of the dashboard: a page compared with the same list of the API, and pages that people leave open.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::bench::{Effort, Figure, Load, Report, Repository, Sample, Server, launch, usage, wrk};

const ROUNDS: u32 = 5;
const SECONDS: u32 = 2;
const APPLICATIONS: u32 = 200;
const VIEWERS: u32 = 50;
/// The time that viewers watch in a round.
const WATCHED_SECONDS: u32 = 10;
/// The interval at which a page without changes fetches itself.
const REFRESH: Duration = Duration::from_secs(10);
const MOST_TIMES: f64 = 2.0;
const MOST_PERCENT: f64 = 1.0;

const PAGE: &str = "/dashboard/applications";
const LIST: &str = "/api/v1/deploy/applications?page_size=20";

/// Loads the page and the list in turn, and then watches logs.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Dashboard");
    let seconds = effort.amount(SECONDS, 1);
    let applications = effort.amount(APPLICATIONS, 20);
    report.paragraph(&format!(
        "`GET {PAGE}` is compared with `GET {LIST}`, with {applications} static sites on SQLite and a \
         session: `wrk -t1 -c32 -d{seconds}s` on each in turn. {VIEWERS} viewers of that page fetch it every \
         {} s with the entity tag of the version that they have; {VIEWERS} viewers of a log keep an event \
         stream open. Their cost is the CPU time of the server, less its CPU time without viewers.",
        REFRESH.as_secs()
    ));
    let repository = Repository::create(&folder.join("dashboard-repository"), &[])?;
    let repository = repository.path().display();
    let settings = [
        ("LAUNCHWAY_LOG", "warn".to_owned()),
        ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", repository.to_string()),
        ("LAUNCHWAY_QUOTA_LOG_STREAMS", "0".to_owned()),
        ("LAUNCHWAY_QUOTA_USER_LOG_STREAMS", "0".to_owned()),
    ];
    let server = launch::serve(&folder.join("dashboard"), &settings)?;
    let token = launch::register(&server)?;
    let mut ids = Vec::new();
    for number in 0..applications {
        let site = launch::static_site(&format!("site-{number}"), &repository);
        ids.push(launch::create(&server, &token, &site)?);
    }
    for id in &ids {
        launch::wait_until_deployed(server.port, &token, id)?;
    }

    let [mut pages, mut lists]: [Sample; 2] = Default::default();
    for _ in 0..effort.rounds(ROUNDS) {
        pages.push(load(&server, PAGE, &token, seconds)?.cpu_microseconds_per_request);
        lists.push(wrk::load(&server, LIST, &token, seconds)?.cpu_microseconds_per_request);
    }
    report.figure(Figure::new("page in lists of the API", "", 2, pages.over(&lists)).at_most(MOST_TIMES));
    report.figure(Figure::new("CPU of the page", "µs", 1, pages));
    report.figure(Figure::new("CPU of the list", "µs", 1, lists));

    let path = format!("/dashboard/applications/{}/log/stream", ids.first().map_or("", String::as_str));
    let [mut refreshed, mut watched]: [Sample; 2] = Default::default();
    let time = Duration::from_secs(effort.amount(WATCHED_SECONDS, 2).into());
    for _ in 0..effort.rounds(ROUNDS) {
        let alone = share(&server, || {
            thread::sleep(time);
            Ok(())
        })?;
        let tag = fetch(&server, &token, "\"none\"")?;
        refreshed.push((share(&server, || refresh(&server, &token, &tag, time))? - alone).max(0.0));
        let viewers = (0..VIEWERS).map(|_| watch(&server, &path, &token)).collect::<Result<Vec<_>>>()?;
        // They have read what there is, and wait for more.
        thread::sleep(Duration::from_secs(3));
        let shared = share(&server, || {
            thread::sleep(time);
            Ok(())
        })?;
        watched.push((shared - alone).max(0.0));
        drop(viewers);
    }
    let name = format!("{VIEWERS} viewers of the page, of a core");
    report.figure(Figure::new(name, "%", 2, refreshed).at_most(MOST_PERCENT));
    let name = format!("{VIEWERS} viewers of a log, of a core");
    report.figure(Figure::new(name, "%", 2, watched).at_most(MOST_PERCENT));
    Ok(())
}

/// Loads a page of the dashboard, whose session is a cookie.
fn load(server: &Server, path: &str, token: &str, seconds: u32) -> Result<Load> {
    wrk::load_by(server, path, &format!("Cookie: launchway-session={token}"), 32, seconds)
        // The token must not be printed.
        .map_err(|error| anyhow!(format!("{error:#}").replace(token, "***")))
}

/// Opens an event stream, which ends when it is dropped.
fn watch(server: &Server, path: &str, token: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: launchway-session={token}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// Fetches the page as a viewer who has the version `tag`, by a connection of its own: the server closes those that are
/// idle sooner than viewers come back. Returns the version of the answer.
fn fetch(server: &Server, token: &str, tag: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
    let request = format!(
        "GET {PAGE} HTTP/1.1\r\nHost: localhost\r\nCookie: launchway-session={token}\r\nIf-None-Match: {tag}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).unwrap_or_default();
    if !["200", "304"].contains(&status) {
        bail!("the page answered {status}");
    }
    let tag = answer.lines().find_map(|line| line.strip_prefix("etag: "));
    Ok(tag.context("the page has no version")?.to_owned())
}

/// Fetches the page for some time as often as all viewers together.
fn refresh(server: &Server, token: &str, tag: &str, time: Duration) -> Result<()> {
    let (start, pause) = (Instant::now(), REFRESH / VIEWERS);
    let mut tag = tag.to_owned();
    while start.elapsed() < time {
        let next = Instant::now() + pause;
        tag = fetch(server, token, &tag)?;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Returns the share of a core that the server uses during `work`, in percent.
fn share(server: &Server, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (start, before) = (Instant::now(), usage::cpu_microseconds(server.pid())?);
    work()?;
    let used = usage::cpu_microseconds(server.pid())? - before;
    Ok(used / start.elapsed().as_secs_f64() / 1e6 * 100.0)
}
