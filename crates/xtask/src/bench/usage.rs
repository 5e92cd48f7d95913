//! The resource usage of a running process, from `/proc`.

use std::process::Command;

use anyhow::{Context as _, Result};
use fs_err as fs;

use crate::workspace;

/// Resident memory, in megabytes of a million bytes.
pub(crate) fn resident_megabytes(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kibibytes = resident_kibibytes(&status).context("/proc/<pid>/status has an unknown form")?;
    Ok(kibibytes * 1024.0 / 1e6)
}

/// Processor time since the start of the process, in user and kernel mode, in microseconds.
pub(crate) fn cpu_microseconds(pid: u32) -> Result<f64> {
    microseconds(pid, OWN_TIME)
}

/// Processor time of the process and of its running children, and theirs.
pub(crate) fn family_cpu_microseconds(pid: u32) -> Result<f64> {
    let mut sum = cpu_microseconds(pid)?;
    for child in fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?.split_whitespace() {
        sum += family_cpu_microseconds(child.parse()?)?;
    }
    Ok(sum)
}

/// Processor time of the children that the process has waited for, in user and kernel mode, in microseconds.
pub(crate) fn children_cpu_microseconds(pid: u32) -> Result<f64> {
    microseconds(pid, TIME_OF_CHILDREN)
}

fn microseconds(pid: u32, field: usize) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = cpu_ticks(&stat, field).context("/proc/<pid>/stat has an unknown form")?;
    let per_second: f64 = workspace::output(Command::new("getconf").arg("CLK_TCK"))?
        .parse()
        .context("cannot read the clock's ticks per second")?;
    Ok(ticks * 1e6 / per_second)
}

fn resident_kibibytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// `utime` and `cutime`, by their numbers in proc(5); the time in kernel mode follows each.
const OWN_TIME: usize = 14;
const TIME_OF_CHILDREN: usize = 16;

/// The sum of two fields. The name in field 2 may itself contain spaces and parentheses.
fn cpu_ticks(stat: &str, field: usize) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(field.checked_sub(3)?);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_its_line() {
        assert_eq!(resident_kibibytes("Name:\tx\nVmRSS:\t   12345 kB\nThreads:\t4\n"), Some(12345.0));
        assert_eq!(resident_kibibytes("Name:\tx\n"), None);
    }

    #[test]
    fn processor_time_is_the_sum_of_user_and_kernel_mode() {
        let stat = "42 (a (strange) name) S 1 42 42 0 -1 4194560 900 0 0 0 700 55 30 4 20 0 9 0 100 1 1";
        assert_eq!(cpu_ticks(stat, OWN_TIME), Some(755.0));
        assert_eq!(cpu_ticks(stat, TIME_OF_CHILDREN), Some(34.0));
    }

    #[test]
    fn our_own_usage_can_be_read() {
        assert!(resident_megabytes(std::process::id()).unwrap() > 0.0);
        assert!(cpu_microseconds(std::process::id()).unwrap() >= 0.0);
        assert!(family_cpu_microseconds(std::process::id()).unwrap() >= 0.0);
    }
}
