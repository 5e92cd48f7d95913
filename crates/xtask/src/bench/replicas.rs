//! The throughput of several servers on one PostgreSQL database.

use std::{path::Path, thread};

use anyhow::{Result, anyhow};
use fs_err as fs;

use crate::{
    bench::{Effort, Figure, Report, Sample, Server, launch, wrk},
    postgres,
};

const ROUNDS: u32 = 5;
const SECONDS: u32 = 4;
const SERVERS: usize = 3;
/// The goals for two and for three servers, relative to one.
const LEAST: [f64; 2] = [1.8, 2.5];
/// The time of a processor that each server gets in each period, in microseconds.
const QUOTA: u32 = 20_000;
const PERIOD: u32 = 100_000;
const PATH: &str = "/api/v1/user/settings";

/// Loads one, two and three servers at the same time, each limited to a fifth of a core.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Replicas");
    let seconds = effort.amount(SECONDS, 1);
    report.paragraph(&format!(
        "`GET {PATH}` with a session, at one, two and three servers on one PostgreSQL database at the same time, by \
         `wrk -t1 -c32 -d{seconds}s` each. A control group limits each server to {} of a core, so that the machine is not \
         the limit; PostgreSQL and `wrk` are not limited.",
        f64::from(QUOTA) / f64::from(PERIOD)
    ));
    let postgres = postgres::Server::start(postgres::Durability::Machine)?;
    let database = postgres.create_database("replicas")?;
    let key = folder.join("replica-0/secret.key").display().to_string();
    // Dropped in this order, because a group with a process cannot be removed.
    let (mut groups, mut servers) = (Vec::new(), Vec::new());
    for number in 0..SERVERS {
        let mut settings = vec![("LAUNCHWAY_DATABASE_URL", database.clone())];
        settings.extend((number > 0).then(|| ("LAUNCHWAY_SECRET_KEY_FILE", key.clone())));
        let server = launch::serve(&folder.join(format!("replica-{number}")), &settings)?;
        groups.push(Group::of(&server, number)?);
        servers.push(server);
    }
    let token = launch::register(&servers[0])?;
    // The first run fills caches and connection pools, and is not counted.
    load(&servers, &token, 1)?;
    report.columns("round | one req/s | two req/s | three req/s | two to one | three to one");
    let mut rates: [Sample; SERVERS] = Default::default();
    for round in 1..=effort.rounds(ROUNDS) {
        let mut row = vec![round.to_string()];
        let mut own = [0.0; SERVERS];
        for count in 1..=SERVERS {
            own[count - 1] = load(&servers[..count], &token, seconds)?;
            rates[count - 1].push(own[count - 1]);
        }
        row.extend(own.iter().map(|rate| format!("{rate:.0}")));
        row.extend(own[1..].iter().map(|rate| format!("{:.2}", rate / own[0])));
        report.row(&row);
    }
    let [one, two, three] = rates;
    for (name, sample, least) in [("two", two, LEAST[0]), ("three", three, LEAST[1])] {
        let figure =
            Figure::new(format!("replicas: reads of {name} servers to one"), "", 2, sample.over(&one));
        report.figure(figure.at_least(least));
    }
    report.figure(Figure::new("replicas: reads of one server".to_owned(), "1/s", 0, one));
    Ok(())
}

/// Loads all servers at the same time; returns the sum of their requests per second.
fn load(servers: &[Server], token: &str, seconds: u32) -> Result<f64> {
    thread::scope(|scope| {
        let loads: Vec<_> =
            servers.iter().map(|server| scope.spawn(|| wrk::load(server, PATH, token, seconds))).collect();
        let mut sum = 0.0;
        for load in loads {
            sum +=
                load.join().map_err(|_panic| anyhow!("a thread of the load panicked"))??.requests_per_second;
        }
        Ok(sum)
    })
}

/// A control group with a part of a core. It is removed when dropped.
struct Group(std::path::PathBuf);

impl Group {
    /// Moves a server to a group of its own.
    fn of(server: &Server, number: usize) -> Result<Self> {
        let name = format!("launchway-bench-{}-{number}", std::process::id());
        let version_1 = Path::new("/sys/fs/cgroup/cpu");
        let group = if version_1.exists() {
            let group = Self(version_1.join(name));
            fs::create_dir(&group.0)?;
            fs::write(group.0.join("cpu.cfs_period_us"), PERIOD.to_string())?;
            fs::write(group.0.join("cpu.cfs_quota_us"), QUOTA.to_string())?;
            group
        } else {
            let group = Self(Path::new("/sys/fs/cgroup").join(name));
            fs::create_dir(&group.0)?;
            fs::write(group.0.join("cpu.max"), format!("{QUOTA} {PERIOD}"))?;
            group
        };
        fs::write(group.0.join("cgroup.procs"), server.pid().to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Not before its process has ended, which may be later.
        let _still_used = fs::remove_dir(&self.0);
    }
}
