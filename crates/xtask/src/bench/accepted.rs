//! The rate of accepted deployments with all features on, and the latency of reads meanwhile.

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Error, Result, anyhow};

use crate::{
    bench::{Connection, Effort, Figure, Report, Repository, Sample, Server, http, launch, usage},
    postgres,
};

const ROUNDS: u32 = 7;
const SECONDS: u32 = 4;
const APPLICATIONS: u32 = 200;
const WRITERS: usize = 16;
const READERS: usize = 4;
/// The pause of a reader between two requests.
const PAUSE: Duration = Duration::from_millis(5);
/// The databases with the least rate of accepted deployments, and the most milliseconds of a read meanwhile.
const GOALS: [(&str, f64, f64); 2] = [("SQLite", 1000.0, 20.0), ("PostgreSQL", 600.0, 30.0)];
const MOST_MEGABYTES: f64 = 200.0;
const REDEPLOY: &str = "/api/v1/deploy/application/redeploy";

/// Requests deployments as fast as they are accepted.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Deployments accepted");
    let seconds = effort.amount(SECONDS, 2);
    report.paragraph(&format!(
        "{WRITERS} clients request deployments of {APPLICATIONS} static sites, one after the other, for \
         {seconds} s a round. Meanwhile {READERS} other clients read settings, a deployment, the audit log \
         and a log in turn, every {} ms. A deployment is accepted when its request is answered, and is then \
         durable with its audit entry and its job. Everything is on: the worker deploys meanwhile from a \
         local repository, and the front proxy receives its routes.",
        PAUSE.as_millis()
    ));
    let repository = Repository::create(&folder.join("accepted-repository"), &[])?;
    let postgres = postgres::Server::start(postgres::Durability::Machine)?;
    for (database, least_accepted, most_milliseconds) in GOALS {
        let url = match database {
            "SQLite" => None,
            _ => Some(postgres.create_database("accepted")?),
        };
        let applications = effort.amount(APPLICATIONS, 40);
        let platform =
            Platform::start(folder.join(format!("accepted-{database}")), url, &repository, applications)?;
        let [mut rates, mut reads, mut slow, mut resident]: [Sample; 4] = Default::default();
        for _ in 0..effort.rounds(ROUNDS) {
            let (accepted, milliseconds) = platform.round(Duration::from_secs(seconds.into()))?;
            rates.push(accepted / f64::from(seconds));
            reads.push(milliseconds.median());
            slow.push(milliseconds.percentile(99));
            resident.push(usage::resident_megabytes(platform.server.pid())?);
        }
        report.subsection(&format!("On {database}"));
        let name = |what: &str| format!("{what}, {database}");
        report.figure(Figure::new(name("deployments accepted"), "1/s", 0, rates).at_least(least_accepted));
        report.figure(Figure::new(name("p99 of reads meanwhile"), "ms", 1, slow).at_most(most_milliseconds));
        report.figure(Figure::new(name("p50 of reads meanwhile"), "ms", 1, reads));
        report.figure(Figure::new(name("resident meanwhile"), "MB", 1, resident).at_most(MOST_MEGABYTES));
    }
    Ok(())
}

/// A server with all features on, and its applications.
struct Platform {
    server: Server,
    data: PathBuf,
    token: String,
    applications: Vec<String>,
    reads: [String; 4],
}

impl Platform {
    fn start(data: PathBuf, url: Option<String>, repository: &Repository, applications: u32) -> Result<Self> {
        let repository = repository.path().display();
        let mut settings = vec![
            ("LAUNCHWAY_LOG", "warn".to_owned()),
            ("LAUNCHWAY_PROXY_BIND", "127.0.0.1:0".to_owned()),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", repository.to_string()),
        ];
        settings.extend(url.map(|url| ("LAUNCHWAY_DATABASE_URL", url)));
        let server = launch::serve(&data, &settings)?;
        let token = launch::register(&server)?;
        let mut made = Vec::new();
        for number in 0..applications {
            let site = launch::static_site(&format!("site-{number}"), &repository);
            made.push(launch::create(&server, &token, &site)?);
        }
        let first = made.first().cloned().unwrap_or_default();
        let deployed = launch::wait_until_deployed(server.port, &token, &first)?;
        let deployment = http::text_field(&deployed, "id")?;
        let reads = [
            "/api/v1/user/settings".to_owned(),
            format!("/api/v1/deploy/application/deployments/{deployment}"),
            "/api/v1/audit/logs".to_owned(),
            format!("/api/v1/deploy/application/logs/{first}"),
        ];
        Ok(Self { server, data, token, applications: made, reads })
    }

    /// Returns the number of accepted deployments, and the milliseconds of each read.
    fn round(&self, length: Duration) -> Result<(f64, Sample)> {
        let deadline = Instant::now() + length;
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || self.ask_for_deployments(writer, deadline)))
                .collect();
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(move || self.read(deadline))).collect();
            let mut accepted = 0.0;
            for writer in writers {
                accepted += writer.join().map_err(|_panic| broken())??;
            }
            let mut reads = Vec::new();
            for reader in readers {
                reads.extend(reader.join().map_err(|_panic| broken())??);
            }
            Ok((accepted, reads.into_iter().collect()))
        })
    }

    /// Every writer has applications of its own, so that none waits for another's.
    fn ask_for_deployments(&self, writer: usize, deadline: Instant) -> Result<f64> {
        let mut connection = Connection::open(self.server.port, Some(&self.token))?;
        let mut accepted = 0.0;
        for application in self.applications.iter().skip(writer).step_by(WRITERS).cycle() {
            if Instant::now() >= deadline {
                break;
            }
            let body = format!(r#"{{"id":"{application}"}}"#);
            connection.post(REDEPLOY, &body)?;
            accepted += 1.0;
        }
        Ok(accepted)
    }

    fn read(&self, deadline: Instant) -> Result<Vec<f64>> {
        let mut connection = Connection::open(self.server.port, Some(&self.token))?;
        let mut milliseconds = Vec::new();
        for path in self.reads.iter().cycle() {
            let asked = Instant::now();
            if asked >= deadline {
                break;
            }
            connection.get(path)?;
            milliseconds.push(asked.elapsed().as_secs_f64() * 1e3);
            thread::sleep(PAUSE);
        }
        Ok(milliseconds)
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        launch::stop(&mut self.server, &self.data);
    }
}

fn broken() -> Error {
    anyhow!("a client of the benchmark broke")
}
