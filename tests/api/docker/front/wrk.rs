//! Load by `wrk`, until it is stopped.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use tempfile::TempDir;

/// A running `wrk`, which ends with it: after a test that failed, nothing is loaded any more.
pub(super) struct Load {
    process: Option<Child>,
    /// The folder of its script.
    _folder: TempDir,
}

/// The results of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrkResults {
    pub(super) requests: u64,
    pub(super) failed: u64,
}

impl Load {
    /// Requests `path` of `host` on eight connections, with or without keep-alive.
    pub(super) fn on(front: &str, host: &str, (method, path): (&str, &str), is_kept: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script.lua");
        fs::write(&script, format!("wrk.method = \"{method}\"\n")).unwrap();
        let mut command = Command::new("wrk");
        command.arg("-s").arg(script);
        command.args(["-t1", "-c8", "-d600s", "--timeout", "20s", "-H", &format!("Host: {host}")]);
        if !is_kept {
            command.args(["-H", "Connection: close"]);
        }
        let url = format!("http://{front}{path}");
        let process = command.arg(url).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Self { process: Some(process.unwrap()), _folder: folder }
    }

    /// Stops it, and returns the results.
    pub(super) fn stop(mut self) -> WrkResults {
        // Its connections have to be open before it can be interrupted.
        sleep(Duration::from_millis(500));
        let process = self.process.take().unwrap();
        let interrupted =
            Command::new("kill").args(["-s", "INT", &process.id().to_string()]).status().unwrap();
        assert!(interrupted.success());
        let output = process.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        wrk_results(&text).unwrap_or_else(|| panic!("{text}"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Parses the summary.
fn wrk_results(text: &str) -> Option<WrkResults> {
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in "))?.0.parse().ok()?;
    let refused = text.lines().find_map(|line| line.trim().strip_prefix("Non-2xx or 3xx responses: "));
    let refused: u64 = refused.map_or(Some(0), |count| count.trim().parse().ok())?;
    // `Socket errors: connect 0, read 0, write 0, timeout 0`
    let errors =
        text.lines().find_map(|line| line.trim().strip_prefix("Socket errors: ")).unwrap_or_default();
    let errors: u64 = errors.split(", ").filter_map(|part| part.split_once(' ')?.1.parse::<u64>().ok()).sum();
    Some(WrkResults { requests, failed: refused + errors })
}

#[test]
fn a_summary_is_read() {
    let text = "  120 requests in 1.00s, 40.00KB read\n  Socket errors: connect 1, read 2, write 0, timeout 3\n  Non-2xx or 3xx responses: 4\n";
    assert_eq!(wrk_results(text), Some(WrkResults { requests: 120, failed: 10 }));
    assert_eq!(wrk_results("  7 requests in 1.00s, 1KB read\n"), Some(WrkResults { requests: 7, failed: 0 }));
}
