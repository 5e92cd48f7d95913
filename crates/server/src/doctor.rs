//! `launchway doctor`: checks the installation, and prints hints for problems. A running server makes the same checks for
//! the dashboard ([`server`]).

mod applications;
mod clock;
mod proxy;
pub(crate) mod server;
mod swarm;

use std::{error::Error, process::Command};

use launchway_application::reconciler::{UnknownObjects, find_unknown};
use launchway_domain::{
    deployments::{DiscoveredObject, EngineInventory, StepError},
    diagnostics::{CheckOutcome, HealthReport},
    error_chain::ErrorChain,
    ids::InstanceId,
};
use launchway_infrastructure::{
    data_dir::{DataDir, DataDirError},
    database::{Database, SchemaStatus},
    docker::DockerEngine,
    sites::{ReleaseFolders, SITES},
};

use crate::{
    assembly::{Tables, runtime},
    cli,
    config::Config,
    engine::Engine,
    installation::{self, Installation},
};

/// Checks the installation. Fails if a problem keeps it from working.
pub(crate) fn run(config: &Config) -> Result<(), Box<dyn Error>> {
    let report = runtime()?.block_on(examine(config));
    cli::print(&report.to_string())?;
    match report.count(CheckOutcome::Failure) {
        0 => Ok(()),
        1 => Err("one check failed".into()),
        failures => Err(format!("{failures} checks failed").into()),
    }
}

async fn examine(config: &Config) -> HealthReport {
    let mut report = HealthReport::default();
    check_programs(&mut report);
    check_packet_filter(&mut report);
    let Some(data) = open_data_directory(config, &mut report) else { return report };
    check_data_directory(config, &data, &mut report);
    proxy::check(config, &data, &mut report).await;
    let Some(installation) = check_database(config, &data, &mut report).await else { return report };
    check_containers(config, &data, (&installation.database, installation.id), &mut report).await;
    installation.database.close().await;
    report
}

/// Formats an error and its sources in one line.
fn describe(error: &dyn Error) -> String {
    let chain = ErrorChain(error).to_string();
    let lines: Vec<&str> = chain.lines().map(str::trim).collect();
    lines.join(" ").trim_end().to_owned()
}

/// Checks that the programs for deployments are installed.
fn check_programs(report: &mut HealthReport) {
    for (program, argument, use_of, package) in [
        ("git", "--version", "it is needed to fetch repositories", "git"),
        ("docker", "--version", "it is needed to run containers; static sites do not need it", "docker.io"),
    ] {
        match Command::new(program).arg(argument).output() {
            Ok(output) if output.status.success() => {
                report.ok(program, String::from_utf8_lossy(&output.stdout).trim().to_owned());
            }
            _ => report.warn(
                program,
                format!("is not on the PATH: {use_of}"),
                &format!("install it, on Debian with `apt-get install {package}`"),
            ),
        }
    }
}

/// Reports whether the optional rules of nftables are loaded; missing ones are no problem.
fn check_packet_filter(report: &mut HealthReport) {
    let text = match Command::new("nft").args(["list", "table", "inet", "launchway"]).output() {
        Ok(output) if output.status.success() => "the optional rules are loaded",
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("No such file") => {
            "the optional rules are not loaded (Packet filter in docs/operations.md)"
        }
        Ok(_) => "only root can see whether the optional rules are loaded",
        Err(_) => "`nft` is not on the PATH, so the optional rules are not loaded",
    };
    report.ok("packet filter", text.to_owned());
}

fn open_data_directory(config: &Config, report: &mut HealthReport) -> Option<DataDir> {
    let path = &config.data_dir;
    if !path.is_dir() {
        let hint = "check LAUNCHWAY_DATA_DIR, or start the server, which creates it";
        report.fail("data directory", format!("`{}` does not exist", path.display()), hint);
        return None;
    }
    match DataDir::open(path) {
        Ok(data) => Some(data),
        Err(error) => {
            report.fail("data directory", describe(&error), "run this as the user that runs the server");
            None
        }
    }
}

fn check_data_directory(config: &Config, data: &DataDir, report: &mut HealthReport) {
    match data.lock() {
        Err(DataDirError::InUse(_)) => report.ok("server", "runs on this data directory".to_owned()),
        Ok(_lock) => {
            report.warn("server", "does not run on this data directory".to_owned(), "start it: `launchway`");
        }
        Err(error) => {
            report.fail("data directory", describe(&error), "run this as the user that runs the server");
        }
    }
    let needed = config.deployments.min_free_disk;
    match data.free_bytes() {
        Ok(free) if free < needed => report.fail(
            "disk",
            format!("{} MiB are free, but LAUNCHWAY_MIN_FREE_DISK requires {}", free >> 20, needed >> 20),
            "free some space: deployments are rejected until then",
        ),
        Ok(free) => {
            report.ok("disk", format!("{} MiB are free in `{}`", free >> 20, data.path().display()));
        }
        Err(error) => report.fail("disk", describe(&error), "check the file system of LAUNCHWAY_DATA_DIR"),
    }
}

async fn check_database(config: &Config, data: &DataDir, report: &mut HealthReport) -> Option<Installation> {
    match installation::schema_status(config) {
        Ok(status) if is_up_to_date(&status, report) => {}
        Ok(_) => return None,
        Err(error) => {
            report.fail("database", describe(&*error), "check LAUNCHWAY_DATABASE_URL");
            return None;
        }
    }
    match Installation::open(config, data, Tables::LeaveAsTheyAre, false).await {
        Ok(installation) => {
            report.ok("database", "is up to date, and the key matches".to_owned());
            report.ok("installation", installation.id.to_string());
            Some(installation)
        }
        Err(error) => {
            report.fail("installation", describe(&*error), "");
            None
        }
    }
}

/// Returns whether this binary can use the schema, and reports the reason if it cannot.
fn is_up_to_date(status: &SchemaStatus, report: &mut HealthReport) -> bool {
    match status {
        SchemaStatus::UpToDate => return true,
        SchemaStatus::Behind(steps) => {
            let text = format!("needs {} migrations", steps.len());
            report.warn("database", text, "start the server of this version, or run `launchway migrate`");
        }
        SchemaStatus::Ahead(_) => {
            let hint = "use the version that the server was last started with";
            report.fail("database", "is of a newer version of Launchway".to_owned(), hint);
        }
    }
    false
}

/// Checks the engine, and what the installation has on it.
async fn check_containers(
    config: &Config,
    data: &DataDir,
    (database, installation): (&Database, InstanceId),
    report: &mut HealthReport,
) {
    clock::check(config, database, report).await;
    let engine = Engine::new(config, installation);
    if let (Some(registry), Some(engine)) = (engine.registry(), engine.swarm()) {
        swarm::check(&registry, engine, report).await;
    }
    let inventory = engine.inventory();
    let containers = match inventory.containers().await {
        Ok(containers) => containers,
        Err(error) => {
            let hint = "start it (`systemctl start docker`), and add this user to the group `docker`";
            report.fail("engine", describe(&error), hint);
            return;
        }
    };
    let number = containers.len();
    let plural = if number == 1 { "" } else { "s" };
    report.ok("engine", format!("answers, with {number} container{plural} of this installation"));
    check_build_limits(engine.docker(), report).await;
    if let Some(nodes) = engine.nodes() {
        swarm::check_ports(&*nodes, database, &containers, report).await;
    }
    applications::check(database, engine.nodes().as_deref(), &containers, report).await;
    match unknown_objects(&*inventory, data, database).await {
        Ok(unknown) => report_unknown(&unknown, installation, report),
        Err(error) => report.fail("unknown objects", describe(&error), ""),
    }
}

/// Checks that builds have every configured limit.
async fn check_build_limits(engine: &DockerEngine, report: &mut HealthReport) {
    match engine.missing_build_limits().await {
        Ok(missing) if missing.is_empty() => {
            report.ok("build limits", "memory, processors and processes are limited".to_owned());
        }
        Ok(missing) => {
            for limit in missing {
                let text = format!("{} is not enforced: {}", limit.setting, limit.reason);
                report.warn("build limits", text, "see Resource limits in docs/operations.md");
            }
        }
        Err(error) => report.fail("build limits", describe(&error), ""),
    }
}

async fn unknown_objects(
    inventory: &dyn EngineInventory,
    data: &DataDir,
    database: &Database,
) -> Result<UnknownObjects, StepError> {
    let sites = ReleaseFolders::open(&data.path().join(SITES))
        .map_err(|error| StepError::Retryable(format!("the folder of sites cannot be read: {error}")))?;
    find_unknown(inventory, &sites, database).await
}

fn report_unknown(unknown: &UnknownObjects, installation: InstanceId, report: &mut HealthReport) {
    let UnknownObjects { objects, releases } = unknown;
    if objects.is_empty() && releases.is_empty() {
        report.ok("unknown objects", "none".to_owned());
        return;
    }
    for found in objects {
        let (text, command) = match &found.what {
            DiscoveredObject::Container { id, .. } => {
                let verb = if id.is_service() { "service rm" } else { "rm --force" };
                (format!("container {}", id.as_str()), format!("docker {verb} {}", id.as_str()))
            }
            DiscoveredObject::Image { name, .. } => {
                (format!("image {}", name.as_str()), format!("docker image rm {}", name.as_str()))
            }
            DiscoveredObject::Network(name) => {
                (format!("network {name}"), format!("docker network rm {name}"))
            }
        };
        let text = format!("{text} has the label of installation {installation}, but no record");
        report.warn("unknown object", text, &format!("if it is not needed, run `{command}`"));
    }
    for (application, deployment) in releases {
        let text = format!("the release {deployment} of application {application} has no record");
        let hint =
            format!("if it is not needed, remove `sites/{application}/{deployment}` in the data directory");
        report.warn("unknown object", text, &hint);
    }
}
