//! Load by `wrk`, and its results.

use std::process::Command;

use anyhow::{Context as _, Result, anyhow};

use crate::{
    bench::{Server, usage},
    workspace,
};

/// One run against one server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) requests_per_second: f64,
    pub(crate) cpu_microseconds_per_request: f64,
    /// The 99th percentile of the response time.
    pub(crate) slow_milliseconds: f64,
}

/// Loads a server with 32 connections for some seconds; every response must be a success.
pub(crate) fn load(server: &Server, path: &str, token: &str, seconds: u32) -> Result<Load> {
    load_by(server, path, &format!("Authorization: Bearer {token}"), 32, seconds)
        // The token must not be printed.
        .map_err(|error| anyhow!(format!("{error:#}").replace(token, "***")))
}

/// The same with another header and another number of connections.
pub(crate) fn load_by(
    server: &Server,
    path: &str,
    header: &str,
    connections: u32,
    seconds: u32,
) -> Result<Load> {
    let url = format!("http://127.0.0.1:{}{path}", server.port);
    load_at(&Target { pid: server.pid(), url, headers: vec![header] }, connections, seconds)
}

/// The target of a load: a URL, and the process that serves it, whose children count.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) pid: u32,
    pub(crate) url: String,
    pub(crate) headers: Vec<&'a str>,
}

/// Loads a target.
pub(crate) fn load_at(target: &Target<'_>, connections: u32, seconds: u32) -> Result<Load> {
    let before = usage::family_cpu_microseconds(target.pid)?;
    let mut command = Command::new("wrk");
    command
        // Slow responses are measured, and are no errors.
        .args(["-t1", "--latency", "--timeout", "60s"])
        .arg(format!("-c{connections}"))
        .arg(format!("-d{seconds}s"))
        .args(target.headers.iter().flat_map(|header| ["-H", header]))
        .arg(&target.url);
    let output = workspace::output(&mut command)?;
    let after = usage::family_cpu_microseconds(target.pid)?;
    let (requests, requests_per_second, slow_milliseconds) = parse(&output)
        .with_context(|| format!("`wrk` met refused requests, or printed an unknown form: {output}"))?;
    let cpu_microseconds_per_request = (after - before) / requests;
    Ok(Load { requests_per_second, cpu_microseconds_per_request, slow_milliseconds })
}

/// Returns the requests, the requests per second and the 99th percentile in milliseconds of a summary; one with
/// rejected requests is not a valid measurement.
fn parse(output: &str) -> Option<(f64, f64, f64)> {
    if output.contains("Non-2xx") || output.contains("Socket errors") {
        return None;
    }
    let lines = || output.lines().map(str::trim);
    let requests = lines().find_map(|line| line.split_once(" requests in "))?.0.parse().ok()?;
    let slow = lines().find_map(|line| line.strip_prefix("99%")).and_then(milliseconds)?;
    let per_second = lines().find_map(|line| line.strip_prefix("Requests/sec:"))?.trim().parse().ok()?;
    (requests > 0.0).then_some((requests, per_second, slow))
}

/// Parses a time with its unit.
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let (number, factor) =
        units.into_iter().find_map(|(unit, factor)| Some((text.trim().strip_suffix(unit)?, factor)))?;
    number.parse::<f64>().ok().map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
Running 3s test @ http://127.0.0.1:8080/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   400.00us  100.00us   5.00ms   90.00%
    Req/Sec    77.00k     2.00k   80.00k    70.00%
  Latency Distribution
     50%  400.00us
     75%  500.00us
     90%  600.00us
     99%    1.50ms
  231000 requests in 3.00s, 40.00MB read
Requests/sec:  76999.50
Transfer/sec:     13.33MB
";

    #[test]
    fn a_summary_is_read() {
        assert_eq!(parse(OUTPUT), Some((231_000.0, 76_999.5, 1.5)));
    }

    #[test]
    fn times_have_units() {
        for (text, expected) in
            [(" 250us", Some(0.25)), ("1.50ms", Some(1.5)), ("2.00s", Some(2000.0)), ("fast", None)]
        {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_run_with_refused_requests_is_no_measurement() {
        assert_eq!(parse(&format!("{OUTPUT}  Non-2xx or 3xx responses: 12\n")), None);
    }

    #[test]
    fn a_run_without_requests_is_no_measurement() {
        assert_eq!(parse(&OUTPUT.replace("231000", "0")), None);
    }
}
