//! The checks of a running server, over its own database.
//!
//! It never opens the database a second time: closing a second handle of a SQLite file would release the locks that the
//! process holds on it.

use async_trait::async_trait;
use launchway_domain::{
    diagnostics::{Diagnostics, DiskSpace, HealthReport},
    ids::InstanceId,
};
use launchway_infrastructure::{data_dir::DataDir, database::Database};

use super::{
    check_containers, check_data_directory, check_packet_filter, check_programs, describe, is_up_to_date,
    proxy,
};
use crate::{assembly::runtime, config::Config};

/// Checks the installation of this process.
#[derive(Clone)]
pub(crate) struct RunningServer {
    pub(crate) config: Config,
    pub(crate) data: DataDir,
    pub(crate) database: Database,
    pub(crate) installation: InstanceId,
}

impl RunningServer {
    async fn examine(self) -> HealthReport {
        let Self { config, data, database, installation } = &self;
        let mut report = HealthReport::default();
        check_programs(&mut report);
        check_packet_filter(&mut report);
        check_data_directory(config, data, &mut report);
        proxy::check(config, data, &mut report).await;
        match database.schema_status().await {
            Ok(status) if is_up_to_date(&status, &mut report) => {
                // The key was checked when the server started.
                report.ok("database", "is up to date, and the key matches".to_owned());
                report.ok("installation", installation.to_string());
            }
            Ok(_) => return report,
            Err(error) => {
                report.fail("database", describe(&error), "check LAUNCHWAY_DATABASE_URL");
                return report;
            }
        }
        check_containers(config, data, (database, *installation), &mut report).await;
        report
    }
}

#[async_trait]
impl Diagnostics for RunningServer {
    async fn examine(&self) -> HealthReport {
        let checks = self.clone();
        // Some checks block, so that they run on a thread of their own.
        let examined = tokio::task::spawn_blocking(move || match runtime() {
            Ok(runtime) => Ok(runtime.block_on(Self::examine(checks))),
            Err(error) => Err(describe(&error)),
        });
        let problem = match examined.await {
            Ok(Ok(report)) => return report,
            Ok(Err(problem)) => problem,
            Err(panicked) => describe(&panicked),
        };
        let mut report = HealthReport::default();
        report.fail("checks", problem, "run `launchway doctor` on the server");
        report
    }

    async fn disk_space(&self) -> Result<DiskSpace, String> {
        let space = (self.data.total_bytes(), self.data.free_bytes());
        match space {
            (Ok(total), Ok(free)) => {
                Ok(DiskSpace { total, free, required: self.config.deployments.min_free_disk })
            }
            (Err(error), _) | (_, Err(error)) => Err(describe(&error)),
        }
    }
}
