//! The machine, the time and the commit of the measurements.

use std::{fs, process::Command, thread};

use crate::{
    bench::{effort::Effort, report::Report},
    failure::Outcome,
    workspace::{self, dist},
};

/// Writes the machine, the compiler, the date and the commit.
pub(crate) fn describe(report: &mut Report, effort: Effort) -> Outcome {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor_model(&processor).unwrap_or("unknown");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rustc = workspace::output(Command::new("rustc").arg("--version").current_dir(workspace::root()))?;
    let date = workspace::output(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]))?;

    report.head("");
    report.head(&format!("- machine: {processor}, {cores} cores, Linux {}", kernel.trim()));
    report.head(&format!("- compiler: {rustc}, `dist` build"));
    report.head(&format!("- date: {date}"));
    report.head(&format!("- commit: {}", commit()));
    if effort == Effort::Quick {
        report.head("- rounds: short, to see that it works; the figures prove nothing");
    }
    Ok(())
}

/// Returns the size of the binary, in megabytes of a million bytes.
pub(crate) fn binary_megabytes() -> f64 {
    fs::metadata(dist("launchway")).map_or(f64::NAN, |data| data.len() as f64 / 1e6)
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        workspace::output(Command::new("git").args(arguments).current_dir(workspace::root()))
    };
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "none".to_owned() };
    match git(&["status", "--porcelain"]) {
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
