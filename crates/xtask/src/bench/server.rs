//! A server process that prints its address and is stopped with its owner.

use std::{
    env,
    io::{self, BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use crate::workspace;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A child that listens on 127.0.0.1, killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// The time at which the process was spawned.
    pub(crate) started: Instant,
}

impl Server {
    /// Starts a program without our own environment and waits for the line with its address.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let line = workspace::shown(command);
        let mut server = Self::start_at(command, 0)?;
        server.port = server
            .announced_port()
            .with_context(|| format!("`{line}` never printed a line with http://127.0.0.1:<port>"))?;
        Ok(server)
    }

    /// Starts a program without our own environment on a given port.
    pub(crate) fn start_at(command: &mut Command, port: u16) -> Result<Self> {
        let line = workspace::shown(command);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LAUNCHWAY_")) {
            if !command.get_envs().any(|(given, value)| given == name && value.is_some()) {
                command.env_remove(name);
            }
        }
        let started = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{line}` did not start"))?;
        // From here on the child must be killed, whatever happens.
        Ok(Self { child, port, started })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process before its owner is dropped, and ignores that it may have exited.
    pub(crate) fn end(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }

    fn announced_port(&mut self) -> Option<u16> {
        let mut output = BufReader::new(self.child.stdout.take()?);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let port = output.by_ref().lines().map_while(Result::ok).find_map(|line| port_in(&line));
            // Without a port the sender is dropped, which ends the wait.
            if let Some(port) = port
                && sender.send(port).is_ok()
            {
                // Drains the pipe, so that the server never blocks on it.
                let _ = io::copy(&mut output, &mut io::sink());
            }
        });
        receiver.recv_timeout(TIMEOUT).ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("process {} may be left over: {error}", self.child.id());
        }
    }
}

fn port_in(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("http://127.0.0.1:")?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_any_line_with_the_address() {
        assert_eq!(port_in("Launchway listens on http://127.0.0.1:43121/api/v1"), Some(43121));
        assert_eq!(port_in("http://127.0.0.1:8080"), Some(8080));
        assert_eq!(port_in("listening on 127.0.0.1:8080"), None);
        assert_eq!(port_in("http://127.0.0.1:99999"), None);
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let script = "echo starting; echo on http://127.0.0.1:4711; exec sleep 60";
        let server = Server::start(Command::new("sh").args(["-c", script])).unwrap();
        let pid = server.pid();
        assert_eq!(server.port, 4711);
        drop(server);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_program_that_ends_without_an_address_is_a_failure() {
        let failure = Server::start(Command::new("sh").args(["-c", "echo nothing"])).unwrap_err();
        assert!(failure.to_string().contains("never printed"), "{failure}");
    }
}
