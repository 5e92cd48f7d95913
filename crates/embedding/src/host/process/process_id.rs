//! The identity of a process that may outlive the service.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};

/// A process, told apart from a later one with the same number by the time of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessId {
    pid: Pid,
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
        Some(Self { pid: Pid::from_raw(pid.parse().ok()?)?, started: start(stat) })
    }

    /// Returns whether the process runs.
    pub(super) fn is_alive(&self) -> bool {
        match self.started {
            Some(started) => {
                let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
                stat.is_ok_and(|stat| start(&stat) == Some(started) && !is_zombie(&stat))
            }
            None => test_kill_process(self.pid).is_ok(),
        }
    }

    /// Asks the process and its group to end, if it runs.
    pub(super) fn terminate(&self) {
        if self.is_alive() {
            // It may have ended in the meantime.
            kill_process_group(self.pid, Signal::TERM).ok();
        }
    }

    /// Kills what is left of its group. The number is not used again while the group has a member, so the
    /// group is its own unless another process has its number.
    pub(super) fn kill(&self) {
        let is_reused = !self.is_alive() && test_kill_process(self.pid).is_ok() && !self.is_own_zombie();
        if !is_reused {
            kill_process_group(self.pid, Signal::KILL).ok();
        }
    }

    fn is_own_zombie(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| start(&stat) == self.started)
    }
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
