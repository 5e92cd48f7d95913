//! The identity of a process that may outlive the service.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// The variable of a process that names its version. Its children inherit it.
pub(super) const MARK: &str = "LAUNCHWAY_VERSION";

/// A process, told apart from a later one with the same number by the boot and the time of its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessId {
    pid: i32,
    /// The clock ticks from the boot to the start; `None` on a system that does not tell.
    started: Option<u64>,
    /// The entry of the environment that its children inherit.
    mark: String,
}

impl ProcessId {
    /// Reads the process of a folder; `None` if it has not recorded itself yet. One of an earlier boot
    /// does not run.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let recorded = fs::read_to_string(folder.join("pid")).ok()?;
        // A record that is not whole yet has less than three lines.
        let [pid, stat, boot] =
            recorded.strip_suffix('\n')?.split('\n').collect::<Vec<_>>().try_into().ok()?;
        // Signals to the groups 0 and 1 would reach other processes.
        let pid = pid.parse().ok().filter(|pid| *pid > 1)?;
        let name = folder.file_name()?.to_string_lossy();
        let id = Self { pid, started: start(stat), mark: format!("{MARK}={name}") };
        // No process has started at the end of time.
        let is_of_this_boot = boot == this_boot();
        Some(if is_of_this_boot { id } else { Self { started: Some(u64::MAX), ..id } })
    }

    /// Returns whether the process runs.
    pub(super) fn is_alive(&self) -> bool {
        match self.started {
            Some(started) => {
                stat(self.pid).is_some_and(|stat| start(&stat) == Some(started) && !is_zombie(&stat))
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

    /// Kills the process with its group, or what is left of the group, and returns the members, which may not have
    /// ended yet. Without the process, the number of the group may belong to somebody else, so only members with the
    /// mark are killed.
    pub(super) fn kill(&self) -> Vec<Self> {
        // Listed before the signal too: a process that is about to end has no environment any more.
        let mut members = self.marked_members();
        if self.is_alive() {
            signal("KILL", -self.pid);
        }
        for member in self.marked_members() {
            signal("KILL", member.pid);
            members.push(member);
        }
        members
    }

    fn marked_members(&self) -> Vec<Self> {
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let member = |pid: i32| {
            let stat = stat(pid)?;
            let group = fields(&stat).nth(2)?.parse::<i32>().ok()?;
            let has_mark = || {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
            };
            let is_member = group == self.pid && has_mark();
            is_member.then(|| Self { pid, started: start(&stat), mark: self.mark.clone() })
        };
        pids.filter_map(member).collect()
    }
}

fn stat(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// Returns the id of this boot; empty on a system that does not tell.
fn this_boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
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
            fs::write(folder.path().join("pid"), format!("{recorded}\n\n\n")).unwrap();
            assert_eq!(ProcessId::read(folder.path()).is_some(), is_read, "{recorded}");
        }
    }

    #[test]
    fn a_process_of_an_earlier_boot_is_gone() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut child =
            Command::new("/bin/sh").args(["-c", "exec sleep 60"]).process_group(0).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let record = |boot: &str| {
            fs::write(folder.path().join("pid"), format!("{pid}\n{}{boot}\n", stat(pid).unwrap())).unwrap();
            ProcessId::read(folder.path()).unwrap()
        };
        assert!(record(&this_boot()).is_alive());
        let earlier = record("another boot");
        assert!(!earlier.is_alive());
        earlier.terminate();
        earlier.kill();
        assert!(child.try_wait().unwrap().is_none(), "it was killed");
        record(&this_boot()).kill();
        assert!(!child.wait().unwrap().success());
    }
}
