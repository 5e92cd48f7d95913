//! The default health check.

use launchway_domain::deployments::ProbeTarget;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// The bytes of a status line that are read at most.
const LONGEST_STATUS: u64 = 1024;

/// Checks once that a version accepts a connection, and responds with a status below 400 if it has a health
/// check path.
pub(crate) async fn probe(target: &ProbeTarget) -> Result<(), String> {
    let address = target.address;
    let failed = |error: std::io::Error| format!("no response from {address}: {error}");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    let Some(path) = &target.path else { return Ok(()) };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_STATUS)).read_line(&mut line).await.map_err(failed)?;
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match status.and_then(|status| status.trim().parse::<u16>().ok()) {
        Some(100..400) => Ok(()),
        Some(status) => Err(format!("http://{address}{path} responded with {status}")),
        None => Err(format!("http://{address}{path} did not respond with HTTP")),
    }
}
