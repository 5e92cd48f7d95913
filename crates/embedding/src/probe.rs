//! The default health check.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use launchway_domain::deployments::ProbeTarget;
use tokio::{task::spawn_blocking, time::sleep};

/// The bytes of a status line that are read at most.
const LONGEST_STATUS: usize = 1024;
/// The time that a connection may take. The caller limits the whole check.
const CONNECT: Duration = Duration::from_secs(5);
/// The interval at which a response is polled. An asynchronous socket would need more of tokio.
const POLL: Duration = Duration::from_millis(5);

/// Checks once that a version accepts a connection, and responds with a status below 400 if it has a health
/// check path.
pub(crate) async fn probe(target: &ProbeTarget) -> Result<(), String> {
    let address = target.address;
    let failed = |error: io::Error| format!("no response from {address}: {error}");
    let stream = connect(address).await.map_err(failed)?;
    let Some(path) = &target.path else { return Ok(()) };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let line = status_line(stream, &request).await.map_err(failed)?;
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match status.and_then(|status| status.trim().parse::<u16>().ok()) {
        Some(100..400) => Ok(()),
        Some(status) => Err(format!("http://{address}{path} responded with {status}")),
        None => Err(format!("http://{address}{path} did not respond with HTTP")),
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let connected = spawn_blocking(move || TcpStream::connect_timeout(&address, CONNECT)).await;
    connected.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// Sends a request, and returns the first line of the response.
async fn status_line(mut stream: TcpStream, request: &str) -> io::Result<String> {
    // A request fits the buffer of a new connection.
    stream.write_all(request.as_bytes())?;
    stream.set_nonblocking(true)?;
    let mut line = Vec::new();
    let mut chunk = [0; LONGEST_STATUS];
    while !line.contains(&b'\n') && line.len() < LONGEST_STATUS {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => line.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(POLL).await,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let first = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(first).into_owned())
}
