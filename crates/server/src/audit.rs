//! Verifies the audit log with the files of the server.

use std::error::Error;

use launchway_application::audit::ChainReport;

use crate::{
    assembly::{self, Tables},
    cli,
    config::Config,
};

/// Verifies every chain, prints a line for each, and fails if one is broken.
///
/// The last hash of each chain is printed, so that an operator can store it elsewhere: an attacker who
/// rewrites a whole chain cannot change that.
pub(crate) fn verify(config: &Config) -> Result<(), Box<dyn Error>> {
    let reports =
        assembly::offline(config, Tables::MustBeThere, async |services| services.audit.verify().await)?;
    for report in &reports {
        cli::print(&line(report))?;
    }
    match reports.iter().filter(|report| report.broken_at.is_some()).count() {
        0 => Ok(()),
        broken => Err(format!("{broken} of {} chains are broken", reports.len()).into()),
    }
}

fn line(ChainReport { head, broken_at }: &ChainReport) -> String {
    match broken_at {
        None => format!("ok      {}: {} entries, last {}\n", head.chain, head.number, head.hash),
        Some(number) => format!("BROKEN  {}: at entry {number} of {}\n", head.chain, head.number),
    }
}
