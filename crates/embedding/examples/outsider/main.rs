//! A service that embeds deployments with a store and a host of its own: records in a file, versions as child
//! processes. `outsider <folder> <action>`; with `ABORT_AT=<step>` it crashes in the middle of that step.

#![expect(clippy::print_stdout, reason = "it is a program")]

mod crash;

use std::{
    error::Error,
    fs,
    io::Write as _,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use async_trait::async_trait;
use chrono::DateTime;
use launchway_embedding::{
    Actor, ApplicationChange, Blueprint, Change, Embedded, Host, Limits, Organization, PageRequest, Query,
    Records, Role, Route, Row, StepError, Store, StoreError, Target, User, Version, VersionId,
};
use tokio::{sync::Mutex, time::sleep};
use uuid::Uuid;

use self::crash::crash_at;

/// Records in a file: one line of JSON for each transaction.
struct Journal {
    records: Mutex<Records>,
    path: PathBuf,
}

impl Journal {
    fn open(path: PathBuf) -> Result<Self, Box<dyn Error>> {
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A line that a crash has cut was never confirmed.
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        fs::write(&path, whole)?;
        let lines: Result<Vec<Vec<Row>>, _> = whole.lines().map(serde_json::from_str).collect();
        Ok(Self { records: Mutex::new(Records::load(lines?.into_iter().flatten())?), path })
    }

    fn append(&self, rows: &[Row]) -> Result<(), Box<dyn Error + Send + Sync>> {
        crash_at("store");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
        writeln!(file, "{}", serde_json::to_string(rows)?)?;
        file.sync_data()?;
        crash_at("stored");
        Ok(())
    }
}

#[async_trait]
impl Store for Journal {
    async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
        query(&*self.records.lock().await);
        Ok(())
    }

    async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
        let store = |rows: &[Row]| self.append(rows).map_err(StoreError::Unavailable);
        self.records.lock().await.transaction(change, store)
    }
}

/// Versions as child processes. Each records its own process id and port in a file, before it begins.
struct Children(PathBuf);

const BEGIN: &str =
    r#"echo "$$ $1" >"$2.new" && mv "$2.new" "$2" && exec busybox $3 -f -p "$1" -h "$4" >/dev/null 2>&1"#;

/// Returns an address for a child. The system gives its port to nobody else before the child has it, because the system
/// chooses from 32,768 on.
fn free_address() -> Option<SocketAddr> {
    let first = 10_000 + u16::try_from(std::process::id() % 2_000).ok()? * 10;
    let free = (first..first + 10).find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    free?.local_addr().ok()
}

#[async_trait]
impl Host for Children {
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
        crash_at("start");
        let failed = |error: std::io::Error| StepError::Retryable(error.to_string());
        let address = free_address().ok_or_else(|| StepError::Retryable("no port is free".to_owned()))?;
        let file = self.0.join(version.id.to_string());
        let program = if version.image.as_str().starts_with("broken") { "false" } else { "httpd" };
        let [port, path, home] =
            [address.to_string(), file.display().to_string(), self.0.display().to_string()];
        Command::new("sh").args(["-c", BEGIN, "sh", &port, &path, program, &home]).spawn().map_err(failed)?;
        while !file.exists() {
            sleep(Duration::from_millis(5)).await;
        }
        crash_at("started");
        Ok(address)
    }

    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        let files = fs::read_dir(&self.0).map_err(|error| StepError::Retryable(error.to_string()))?;
        let version = |file: fs::DirEntry| {
            let recorded = fs::read_to_string(file.path()).ok()?;
            let (pid, address) = recorded.trim().split_once(' ')?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let is_alive = !stat.is_empty() && !stat.contains(") Z ");
            is_alive.then_some((file.file_name().to_str()?.parse().ok()?, address.parse().ok()?))
        };
        Ok(files.flatten().filter_map(version).collect())
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        crash_at("end");
        let file = self.0.join(id.to_string());
        let Ok(recorded) = fs::read_to_string(&file) else { return Ok(()) };
        let pid = recorded.split(' ').next().unwrap_or_default().to_owned();
        // One that has ended already cannot be killed.
        Command::new("kill").args(["-9", &pid]).status().ok();
        crash_at("ended");
        fs::remove_file(file).map_err(|error| StepError::Retryable(error.to_string()))
    }

    async fn route(&self, route: &Route) -> Result<(), StepError> {
        crash_at(if matches!(route.target, Target::Stopped) { "route to nothing" } else { "route" });
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("a folder is needed")?);
    let action = arguments.next().ok_or("an action is needed")?;
    fs::create_dir_all(folder.join("versions"))?;
    let (store, host) = (Journal::open(folder.join("records"))?, Children(folder.join("versions")));
    let limits = |limits: &mut Limits| {
        limits.healthy = Duration::from_secs(20);
        limits.stable = Duration::from_millis(50);
        limits.reconcile = Duration::from_millis(200);
        limits.orphan = Duration::from_millis(400);
    };
    let launchway = Embedded::builder(store, host).limits(limits).build();
    let (id, then) = (Uuid::from_u128(1), DateTime::UNIX_EPOCH);
    let engines = Organization::new(id.into(), "Engines".parse()?, "".parse()?, then);
    let ada = User::invited(id.into(), "ada".parse()?, "ada@example.com".parse()?, then);
    let ada = Actor::vouched_for(ada, engines, Role::Admin);
    let act = async {
        let outcome = Box::pin(act(&launchway, &ada, &action)).await;
        println!("{}", outcome.unwrap_or_else(|error| format!("error: {error}")));
    };
    Ok(launchway.run(act).await?)
}

/// Carries out one action, waits until nothing is left to do, and returns the states that are recorded.
async fn act(launchway: &Embedded, ada: &Actor, action: &str) -> Result<String, Box<dyn Error>> {
    let page = PageRequest::new(1, 100, 100)?;
    let (applications, deployments) = (launchway.applications(), launchway.deployments());
    let id = match applications.list(ada, &Default::default(), page).await?.items.first() {
        Some(application) => application.id,
        None => {
            let web = Blueprint::of_image("web".parse()?, "test".parse()?, "web:1".parse()?, 80.try_into()?);
            applications.create(ada, web).await?.application.id
        }
    };
    let first = deployments.list(ada, id, page).await?.items.last().map(|first| first.id);
    match (action, first) {
        ("settle", _) => {}
        ("stop", _) => applications.stop(ada, id).await?,
        ("restart", _) => applications.restart(ada, id).await?,
        ("rollback", Some(first)) => drop(deployments.roll_back(ada, first).await?),
        ("cancel", _) => drop(deployments.cancel(ada, deployments.request(ada, id).await?.id).await?),
        (image, _) => {
            let change = ApplicationChange { repository: Some(image.to_owned()), ..Default::default() };
            applications.update(ada, id, change).await?;
        }
    }
    loop {
        sleep(Duration::from_millis(1500)).await;
        let newest = deployments.list(ada, id, page).await?.items.swap_remove(0).status.state;
        if newest.is_final() {
            let application = applications.get(ada, id).await?.status.state;
            return Ok(format!("{} {}", application.as_str(), newest.as_str()));
        }
    }
}
