//! The identity of a process that may outlive the service.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// A process, told apart from a later one with the same number by the time of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessId {
    pid: i32,
    /// The clock ticks from the boot to the start; `None` on a system that does not tell.
    started: Option<u64>,
}

impl ProcessId {
    /// Reads the process of a folder; `None` if it has not recorded itself yet.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let recorded = fs::read_to_string(folder.join("pid")).ok()?;
        let (pid, stat) = recorded.split_once('\n')?;
        // A line that is not whole yet has no second line break.
        let stat = stat.strip_suffix('\n')?;
        // Signals to the groups 0 and 1 would reach other processes.
        let pid = pid.parse().ok().filter(|pid| *pid > 1)?;
        Some(Self { pid, started: start(stat) })
    }

    /// Returns whether the process runs.
    pub(super) fn is_alive(&self) -> bool {
        match self.started {
            Some(started) => {
                self.stat().is_some_and(|stat| start(&stat) == Some(started) && !is_zombie(&stat))
            }
            None => signal("0", self.pid),
        }
    }

    /// Asks the process and its group to end, if it runs.
    pub(super) fn terminate(&self) {
        if self.is_alive() {
            // It may have ended in the meantime.
            signal("TERM", -self.pid);
        }
    }

    /// Kills what is left of its group. The number is not used again while the group has a member, so the
    /// group is its own unless another process has its number.
    pub(super) fn kill(&self) {
        let is_reused =
            self.started.is_some() && self.stat().is_some_and(|stat| start(&stat) != self.started);
        if !is_reused {
            signal("KILL", -self.pid);
        }
    }

    fn stat(&self) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()
    }
}

/// Sends a signal to a process, or to the group of a negative number. Returns whether there is one.
fn signal(name: &str, target: i32) -> bool {
    // The standard library has no signals; the shell has.
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "kill -s \"$1\" -- \"$2\"", "sh", name, &target.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the fields of `/proc/…/stat` after the name, which may contain anything.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace()
}

fn start(stat: &str) -> Option<u64> {
    fields(stat).nth(19)?.parse().ok()
}

fn is_zombie(stat: &str) -> bool {
    matches!(fields(stat).next(), Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_signal_reaches_a_process_or_its_whole_group() {
        let script = "sleep 60 & wait";
        let mut child = Command::new("/bin/sh").args(["-c", script]).process_group(0).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(signal("0", pid) && signal("0", -pid));
        assert!(signal("KILL", -pid));
        assert!(!child.wait().unwrap().success());
        assert!(!signal("0", pid));
    }

    #[test]
    fn a_group_that_is_not_its_own_is_never_read() {
        let folder = tempfile::TempDir::new().unwrap();
        for (recorded, is_read) in [("1", false), ("0", false), ("-5", false), ("4000000", true)] {
            fs::write(folder.path().join("pid"), format!("{recorded}\n\n")).unwrap();
            assert_eq!(ProcessId::read(folder.path()).is_some(), is_read, "{recorded}");
        }
    }
}
