//! `cargo xtask chaos`: runs the fault campaigns against a server.

mod report;

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::{
    command::ChaosOptions,
    engine::{Engine, Purpose},
    install,
    workspace::{self, cargo, debug, dist},
};

/// The campaigns of `crates/chaos`, in the order of the report.
pub(crate) const CAMPAIGNS: [&str; 18] = [
    "kills-sqlite",
    "kills-postgres",
    "crash-points",
    "full-disk",
    "power-cuts",
    "outages",
    "clock-jumps",
    "engine",
    "hung-engine",
    "restarts",
    "replicas",
    "swarm",
    "tenants",
    "slow-clients",
    "guesses",
    "canaries",
    "injections",
    "conformance",
];

/// Builds, runs each campaign, and prints its report; fails when a figure misses its goal.
pub(crate) fn run(options: &ChaosOptions) -> Result<()> {
    install::ensure(options.install)?;
    let _engine = Engine::start(Purpose::Measurements)?;
    workspace::run(&mut cargo("build -p launchway-chaos -p launchway-verifier"))?;
    let profile = if options.long { "dist" } else { "dev" };
    workspace::run(&mut cargo(&format!("build -p launchway --profile {profile}")))?;
    let mut failed = Vec::new();
    let is_wanted = |name: &&str| options.campaign.as_deref().is_none_or(|only| only == *name);
    for name in CAMPAIGNS.into_iter().filter(is_wanted) {
        let circumstances = report::circumstances(options.long)?;
        let mut campaign = campaign(name, options);
        let output =
            campaign.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run `{name}`"))?;
        let told = String::from_utf8_lossy(&output.stdout);
        println!("{told}");
        if let Some(file) = &options.report {
            report::put(file, name, &told, &circumstances)?;
        }
        if !output.status.success() {
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "not as it should be: {}", failed.join(", "));
    Ok(())
}

fn campaign(name: &str, options: &ChaosOptions) -> Command {
    let server = if options.long { dist("launchway") } else { debug("launchway") };
    let mut command = Command::new(debug("launchway-chaos"));
    command.arg(name).arg("--server").arg(server);
    command.arg("--verifier").arg(debug("launchway-verify"));
    if options.long {
        command.arg("--long");
    }
    let numbers =
        [("--kills", options.kills), ("--every", options.every), ("--applications", options.applications)];
    for (name, number) in numbers {
        if let Some(number) = number {
            command.args([name, &number.to_string()]);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::root;

    #[test]
    fn the_long_form_tries_the_dist_build() {
        let options = ChaosOptions { long: true, kills: Some(3), ..ChaosOptions::default() };
        let line = workspace::shown(&campaign("kills-sqlite", &options));
        assert!(line.contains("/dist/launchway --verifier "), "{line}");
        assert!(line.ends_with("--long --kills 3"), "{line}");
        let line = workspace::shown(&campaign("kills-sqlite", &ChaosOptions::default()));
        assert!(line.contains("/debug/launchway --verifier "), "{line}");
    }

    #[test]
    fn every_campaign_is_one_of_the_program() {
        let program = fs::read_to_string(root().join("crates/chaos/src/campaigns.rs")).unwrap();
        for name in CAMPAIGNS {
            assert!(program.contains(&format!("(\"{name}\", ")), "{name}");
        }
        assert!(program.contains(&format!("[(&str, Campaign); {}]", CAMPAIGNS.len())));
    }
}
