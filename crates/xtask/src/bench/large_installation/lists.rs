//! The response times of lists, at a load that the server is not busy with.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use super::installation::Installation;
use crate::bench::{Connection, Effort, Sample, http};

const CONNECTIONS: u32 = 4;
/// The pause of a connection behind an answer.
const PAUSE: Duration = Duration::from_millis(10);
/// The requests of each connection in a round, and those before, which fill caches.
const REQUESTS: u32 = 250;
const QUICK_REQUESTS: u32 = 25;
const WARM_UP: u32 = 10;
const PAGE_SIZE: u32 = 20;

/// A list, and the lines of a head that its requests need.
struct List {
    name: &'static str,
    path: String,
    headers: String,
}

/// Returns the 99th percentiles of the rounds of each list, in milliseconds.
pub(crate) fn measure(
    installation: &Installation,
    rounds: u32,
    effort: Effort,
) -> Result<Vec<(&'static str, Sample)>> {
    let lists = lists(installation)?;
    let mut slowest: Vec<_> = lists.iter().map(|list| (list.name, Sample::default())).collect();
    for _ in 0..rounds {
        for (list, (_, slow)) in lists.iter().zip(&mut slowest) {
            slow.push(times(installation.port(), list, effort)?.percentile(99));
        }
    }
    Ok(slowest)
}

fn lists(installation: &Installation) -> Result<Vec<List>> {
    let Installation { token, size, application, .. } = installation;
    let applications = format!("/api/v1/deploy/applications?page_size={PAGE_SIZE}");
    let newest = http::get(installation.port(), &applications, Some(token))?;
    let newest = http::text_field(&newest, "id")?;
    let last = size.div_ceil(PAGE_SIZE);
    let by_token = |name, path| List {
        name,
        path,
        headers: format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n"),
    };
    let by_cookie = |name, path| List {
        name,
        path,
        headers: format!("Host: localhost\r\nCookie: launchway-session={token}\r\n"),
    };
    Ok(vec![
        by_token("applications, first page", applications.clone()),
        by_token("applications, last page", format!("{applications}&page={last}")),
        by_token(
            "deployments",
            format!("/api/v1/deploy/application/deployments?id={application}&page_size={PAGE_SIZE}"),
        ),
        by_token("log lines", format!("/api/v1/deploy/application/logs/{newest}")),
        by_token("audit entries", "/api/v1/audit/logs".to_owned()),
        by_cookie("the dashboard's applications", "/dashboard/applications".to_owned()),
        by_cookie("the dashboard's page of an application", format!("/dashboard/applications/{newest}")),
    ])
}

/// Returns the milliseconds of each answer.
fn times(port: u16, list: &List, effort: Effort) -> Result<Sample> {
    let requests = effort.amount(REQUESTS, QUICK_REQUESTS);
    let of_connections: Vec<Result<Vec<f64>>> = thread::scope(|scope| {
        let ask = || times_of_one(port, list, requests);
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(ask)).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|times| times.unwrap_or_else(|_panic| Err(anyhow!("a connection panicked")))).collect()
    });
    let times: Vec<Vec<f64>> = of_connections.into_iter().collect::<Result<_>>()?;
    Ok(times.into_iter().flatten().collect())
}

fn times_of_one(port: u16, list: &List, requests: u32) -> Result<Vec<f64>> {
    let mut connection = Connection::open_with(port, list.headers.clone())?;
    let mut times = Vec::new();
    for number in 0..WARM_UP + requests {
        let asked = Instant::now();
        connection.get(&list.path)?;
        if number >= WARM_UP {
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        thread::sleep(PAUSE);
    }
    Ok(times)
}
