//! The machine, the time and the commit of a measurement.

use std::{process::Command, thread};

use anyhow::Result;
use fs_err as fs;

use crate::workspace;

/// Returns the processor, its cores and the kernel.
pub(crate) fn describe() -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor_model(&processor).unwrap_or("unknown");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processor}, {cores} cores, Linux {}", kernel.trim())
}

/// Returns the time in UTC.
pub(crate) fn date() -> Result<String> {
    workspace::output(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]))
}

/// Returns the load averages of the last one, five and fifteen minutes.
pub(crate) fn load() -> Result<String> {
    let averages = fs::read_to_string("/proc/loadavg")?;
    Ok(averages.split_whitespace().take(3).collect::<Vec<_>>().join(", "))
}

/// Returns the commit, and whether one of these paths has changes on top of it; no path means all.
pub(crate) fn commit(paths: &[&str]) -> String {
    let git = |arguments: &[&str]| {
        workspace::output(Command::new("git").args(arguments).current_dir(workspace::root()))
    };
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "none".to_owned() };
    match git(&[&["status", "--porcelain", "--"], paths].concat()) {
        Ok(changes) if changes.is_empty() => commit,
        _ => format!("{commit}, with changes on top"),
    }
}

fn processor_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_by_its_model() {
        let cpuinfo = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.00GHz\n";
        assert_eq!(processor_model(cpuinfo), Some("Some CPU @ 2.00GHz"));
        assert_eq!(processor_model("processor\t: 0\n"), None);
    }
}
