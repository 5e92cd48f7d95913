//! `log_lines <lines a call> <seconds> <full|off>`: measures the log lines per second that a fresh SQLite
//! file takes from one caller, each call durable before the next.
//!
//! The lines belong to one deployment, and are as long as those of a typical build.
#![expect(clippy::print_stdout, reason = "the number is what the program is for")]

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use chrono::DateTime;
use launchway_database::{Database, DatabaseOptions, DatabaseUrl, Synchronous};
use launchway_domain::{
    applications::{
        self, Application, ApplicationSecrets, BasePath, Blueprint, BuildPack, CopyCount, DockerfilePath,
        Labels, ProxyServer, Repository, WatchPaths,
    },
    audit::{self, Action, Author, Chain, Entry, Event, Resource},
    ids::{ApplicationId, DeploymentId},
    logs::{Level, LogSink as _, NewLine},
    organizations::{self, Description, Organization},
    secret::Sealed,
    store::UnitOfWork as _,
    users::{self, User, UserKind},
};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let [lines, seconds, synchronous] = arguments().ok_or("log_lines <lines a call> <seconds> <full|off>")?;
    let lines: usize = lines.parse()?;
    let length = Duration::from_secs(seconds.parse()?);
    let synchronous = match synchronous.as_str() {
        "full" => Synchronous::Full,
        "off" => Synchronous::Off,
        other => return Err(format!("`full` or `off`, not `{other}`").into()),
    };
    let folder = tempfile::tempdir()?;
    let url = DatabaseUrl::Sqlite(folder.path().join("log_lines.db"));
    let database = Database::open(DatabaseOptions { synchronous, ..DatabaseOptions::new(url) })?;
    database.migrate().await?;
    let application = insert_application(&database).await?;

    let begun = Instant::now();
    let mut appended: u128 = 0;
    while begun.elapsed() < length {
        database.append(some_lines(application, lines)).await?;
        appended += lines as u128;
    }
    println!("{}", appended * 1000 / begun.elapsed().as_millis());
    database.close().await;
    Ok(())
}

fn arguments() -> Option<[String; 3]> {
    env::args().skip(1).collect::<Vec<_>>().try_into().ok()
}

fn some_lines(application_id: ApplicationId, count: usize) -> Vec<NewLine> {
    let deployment_id = DeploymentId::from(Uuid::from_u128(5));
    let line = |number| NewLine {
        application_id,
        deployment_id,
        level: Level::Build,
        text: format!("#12 {number}.042 Compiling launchway-domain v0.1.0 (/build/crates/domain)"),
        at: DateTime::UNIX_EPOCH,
    };
    (0..count).map(line).collect()
}

async fn insert_application(database: &Database) -> Outcome<ApplicationId> {
    let [organization_id, user_id, entry_id] = [1, 2, 3].map(Uuid::from_u128);
    let now = DateTime::UNIX_EPOCH;
    let user = User::new(user_id.into(), "Ada".parse()?, "ada@example.com".parse()?, UserKind::AppUser, now);
    let name = "Analytics".parse()?;
    let organization = Organization::new(organization_id.into(), name, Description::default(), now);
    let ids = (Uuid::from_u128(4).into(), Uuid::from_u128(6).into());
    let application = Application::new(ids, &organization, user.id, blueprint()?, secrets(), now);
    let author = Author {
        chain: Chain::Organization(organization.id),
        name: "Ada".to_owned(),
        user_id: Some(user.id),
        origin: None,
    };
    let event = Event::new(Action::Create, Resource::Organization, organization.id, "made it");
    let entry = Entry::new(entry_id.into(), author, event, now);
    let id = application.id;
    let writes = vec![
        users::Write::Insert(user).into(),
        organizations::Write::Insert(organization).into(),
        applications::Write::Insert(Box::new(application)).into(),
        audit::Write::Append(entry).into(),
    ];
    database.commit(writes).await?;
    Ok(id)
}

fn blueprint() -> Outcome<Blueprint> {
    Ok(Blueprint {
        name: "web".parse()?,
        repository: Repository::Git("https://git.example.com/web.git".to_owned().try_into()?),
        branch: Some("main".parse()?),
        base_path: BasePath::default(),
        dockerfile_path: DockerfilePath::default(),
        build_pack: BuildPack::Dockerfile,
        environment: "production".parse()?,
        domain: None,
        port: 8080.try_into()?,
        pre_run_command: None,
        post_run_command: None,
        proxy_server: ProxyServer::default(),
        labels: Labels::default(),
        health_check_path: None,
        auto_deploy: true,
        copies: CopyCount::ONE,
        watch_paths: WatchPaths::default(),
    })
}

fn secrets() -> ApplicationSecrets {
    ApplicationSecrets {
        build_variables: Sealed(String::new()),
        environment_variables: Sealed(String::new()),
        credentials: None,
    }
}
