//! Moves all data to another database.

use std::error::Error;

use launchway_infrastructure::{
    data_dir::DataDir,
    database::{DatabaseUrl, tables},
};

use crate::{
    backup::{fetch_sites, no_data},
    cli::{self, MoveDatabase},
    config::{Config, without_password},
    installation::Checked,
    print_line,
};

/// Copies the database to another one, compares the two, and leaves this one unchanged.
pub(crate) fn move_to(config: &Config, arguments: &MoveDatabase) -> Result<(), Box<dyn Error>> {
    let target: DatabaseUrl = arguments.to.parse().map_err(|refused| format!("--to {refused}"))?;
    if target == config.database {
        return Err("--to is the current database: specify another one".into());
    }
    if !config.data_dir.is_dir() {
        return Err(no_data(&config.data_dir));
    }
    let data = DataDir::open(&config.data_dir)?;
    // Concurrent writes of a server would be missing there.
    let _lock = data.lock()?;
    let _checked = Checked::existing(config, &data)?;
    fetch_sites(config, &data)?;
    let copied = tables::copy(&config.database, &target)?;
    let rows: u64 = copied.iter().map(|(_, digest)| digest.rows).sum();
    for (name, digest) in &copied {
        cli::print(&format!("{}  {} rows  {name}\n", digest.sha256, digest.rows))?;
    }
    print_line(&format!(
        "copied {rows} rows in {} tables, and verified that both databases are equal. This one is unchanged. \
         To use the other one, set\n\n  \
         LAUNCHWAY_DATABASE_URL={}\n",
        copied.len(),
        without_password(&arguments.to)
    ));
    Ok(())
}
