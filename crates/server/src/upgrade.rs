//! Whether this binary and the database fit.

use std::error::Error;

use launchway_infrastructure::database::Fit;

use crate::{cli, config::Config, installation, wiring};

/// Says what a start of this binary would do to the database; fails if it would refuse to.
pub(crate) fn check(config: &Config) -> Result<(), Box<dyn Error>> {
    match installation::fit(config)? {
        Fit::UpToDate => cli::print("the database is up to date\n"),
        Fit::Behind(steps) => cli::print(&format!(
            "{} migrations will be taken at the next start, or by `launchway migrate`: {}\n",
            steps.len(),
            steps.join(", ")
        )),
        Fit::Ahead(unknown) => Err(wiring::newer(&unknown)),
    }
}
