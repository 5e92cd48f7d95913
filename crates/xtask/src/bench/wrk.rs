//! Load by `wrk`, and what it says it measured.

use std::process::Command;

use crate::{
    bench::{server::Server, usage},
    failure::{Failure, Outcome},
    workspace,
};

/// One run against one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) requests_per_second: f64,
    pub(crate) cpu_microseconds_per_request: f64,
}

/// Loads a server with 32 connections for some seconds; every answer must be a success.
pub(crate) fn load(server: &Server, path: &str, token: &str, seconds: u32) -> Outcome<Load> {
    let before = usage::cpu_microseconds(server.pid())?;
    let mut command = Command::new("wrk");
    command
        .args(["-t1", "-c32"])
        .arg(format!("-d{seconds}s"))
        .args(["-H", &format!("Authorization: Bearer {token}")])
        .arg(format!("http://127.0.0.1:{}{path}", server.port));
    let output = workspace::output(&mut command).map_err(|failure| {
        // The token has no business in anybody's terminal.
        Failure::new(failure.to_string().replace(token, "***"))
    })?;
    let after = usage::cpu_microseconds(server.pid())?;
    let measured = parse(&output)
        .ok_or_else(|| Failure::because("`wrk` met refused requests, or printed an unknown form", &output))?;
    Ok(Load {
        requests_per_second: measured.requests_per_second,
        cpu_microseconds_per_request: (after - before) / measured.requests,
    })
}

#[derive(Debug, PartialEq)]
struct Measured {
    requests: f64,
    requests_per_second: f64,
}

/// Reads the summary; one with refused requests measures something else, and is no measurement.
fn parse(output: &str) -> Option<Measured> {
    if output.contains("Non-2xx") {
        return None;
    }
    let mut lines = output.lines().map(str::trim);
    let requests = lines.clone().find_map(|line| line.split_once(" requests in "))?.0.parse().ok()?;
    let per_second = lines.find_map(|line| line.strip_prefix("Requests/sec:"))?.trim().parse().ok()?;
    (requests > 0.0).then_some(Measured { requests, requests_per_second: per_second })
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
  231000 requests in 3.00s, 40.00MB read
Requests/sec:  76999.50
Transfer/sec:     13.33MB
";

    #[test]
    fn a_summary_is_read() {
        assert_eq!(parse(OUTPUT), Some(Measured { requests: 231_000.0, requests_per_second: 76_999.5 }));
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
