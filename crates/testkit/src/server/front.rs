//! The front proxy of a server under test, which outlives it.

use std::process::Command;

use super::TestServer;
use crate::client::Client;

/// The setting that gives a server a front proxy, at a free port.
pub const WITH_A_FRONT: (&str, &str) = ("LAUNCHWAY_PROXY_BIND", "127.0.0.1:0");

impl TestServer {
    /// Returns the address of its front proxy, as `host:port`.
    pub fn front(&self) -> &str {
        let (_, rest) = self.announcement.split_once("are served at http://").expect("it has a front proxy");
        rest.split_whitespace().next().unwrap()
    }

    /// Returns a client of the front proxy for `host`.
    pub fn visitor(&self, host: &str) -> Client {
        Client::new(&format!("http://{}", self.front())).with_header("host", host)
    }

    /// Returns the process id of its front proxy, if one answers.
    pub fn front_process(&self) -> Option<u32> {
        let status = self.command(&["proxy", "status"]).output().unwrap();
        let text = String::from_utf8_lossy(&status.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("process ")).map(|id| id.trim().parse().unwrap())
    }

    /// Kills the front proxy with SIGKILL, like a power cut.
    pub fn kill_front(&self) {
        let is_on = |(name, value): &(String, String)| name == WITH_A_FRONT.0 && value != "off";
        if self.settings.iter().any(is_on)
            && let Some(process) = self.front_process()
        {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
        }
    }
}
