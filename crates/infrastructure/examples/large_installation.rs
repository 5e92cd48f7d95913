//! `large_installation <data directory> <applications> <lines of each>`: adds static sites to an installation, for
//! `cargo xtask bench`.
//!
//! The installation has one static site, which was deployed. The others are stored beside it by the repositories of the
//! server, which keep names, hashes of audit entries, heads and bytes of logs as ever. Each has three host names, secrets of
//! its own, two deployed versions with their folders, of which the newer one is live, and as many log lines. They have no
//! jobs, as if their deployments were older than jobs are kept. In the end everything is indexed for searches, which a
//! server would do in the background.

use std::{error::Error, fs, path::Path, sync::Arc};

use launchway_domain::{
    applications::{self, Application, ApplicationSecrets, ApplicationState},
    audit::{self, Action, Author, Chain, Entry, Event, Resource},
    clock::Clock as _,
    deployments::{
        self, Deployment, DeploymentKind, DeploymentRepository as _, DeploymentState, LiveVersion,
    },
    ids::{ApplicationId, Ids as _},
    logs::{Level, LogSink as _, NewLine},
    secret::{Sealed, SecretBox as _},
    store::{UnitOfWork as _, Write},
};
use launchway_infrastructure::{
    clock::{SystemClock, SystemEntropy, TimeOrderedIds},
    database::{Database, DatabaseOptions, DatabaseUrl, Synchronous},
    secrets::{SecretKeys, XChaChaBox},
    sites::SITES,
};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// The deployed versions of each application.
const VERSIONS: usize = 2;
/// The applications of one commit.
const AT_ONCE: usize = 100;
/// The sealed columns of an application without credentials.
const COLUMNS: [&str; 2] = ["build_variables", "environment_variables"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, count, lines] = <[String; 3]>::try_from(arguments)
        .map_err(|_other| "large_installation <data directory> <applications> <lines of each>")?;
    let (data, count, lines): (_, usize, usize) = (Path::new(&data), count.parse()?, lines.parse()?);
    let options = DatabaseOptions {
        // A crash costs nothing but time.
        synchronous: Synchronous::Off,
        must_exist: true,
        ..DatabaseOptions::new(DatabaseUrl::Sqlite(data.join("launchway.db")))
    };
    let database = Database::open(options)?;
    let keys: SecretKeys = fs::read_to_string(data.join("secret.key"))?.parse()?;
    let secrets = XChaChaBox::new(&keys, Arc::new(SystemEntropy));
    let first = database.live().await?;
    let first = first.first().ok_or("no application is deployed")?;
    for begin in (0..count).step_by(AT_ONCE) {
        let numbers = begin..count.min(begin + AT_ONCE);
        let sites: Vec<Site> =
            numbers.map(|number| Site::beside(first, &secrets, number)).collect::<Outcome<_>>()?;
        database.commit(sites.iter().flat_map(Site::writes).collect()).await?;
        for site in &sites {
            site.publish(data)?;
            site.append_lines(&database, lines).await?;
        }
    }
    while database.extend_search_index().await? {}
    database.close().await;
    Ok(())
}

/// An application and its versions, the live one last.
struct Site {
    application: Application,
    versions: Vec<Deployment>,
}

impl Site {
    fn beside(first: &LiveVersion, secrets: &XChaChaBox, number: usize) -> Outcome<Self> {
        let (now, id) = (SystemClock.now(), ApplicationId::from(TimeOrderedIds.next()));
        let mut blueprint = first.application.blueprint.clone();
        blueprint.name = format!("site-{number:05}").parse()?;
        blueprint.domain = Some(format!("site-{number:05}.example.com").parse()?);
        let sealed = seal_anew(&first.application, secrets, id)?;
        let ids = (id, TimeOrderedIds.next().into());
        let mut application = first.application.beside(ids, blueprint, sealed, now);
        application.further_domains = vec![format!("www.site-{number:05}.example.com").parse()?];
        application.status.state = ApplicationState::Running;
        let version = || {
            let ids = (TimeOrderedIds.next().into(), TimeOrderedIds.next().into());
            let of = (application.organization_id, id);
            let mut version =
                Deployment::new(ids, of, DeploymentKind::Fresh, TimeOrderedIds.next().into(), now);
            version.status.state = DeploymentState::Deployed;
            version.commit.clone_from(&first.deployment.commit);
            version.requested_by.clone_from(&first.deployment.requested_by);
            version
        };
        let versions: Vec<Deployment> = (0..VERSIONS).map(|_| version()).collect();
        application.live = versions.last().map(|version| version.id);
        Ok(Self { application, versions })
    }

    fn writes(&self) -> impl Iterator<Item = Write> {
        let application = applications::Write::Insert(Box::new(self.application.clone())).into();
        let versions =
            self.versions.iter().cloned().map(|version| deployments::Write::Insert(version).into());
        let created = self.entry(Action::Create, "created the application");
        let deployed = self.versions.iter().map(|_| self.entry(Action::Update, "requested a deployment of"));
        [application].into_iter().chain(versions).chain([created]).chain(deployed)
    }

    fn entry(&self, action: Action, what: &str) -> Write {
        let Application { id, organization_id, user_id, blueprint, created_at, .. } = &self.application;
        let author = Author {
            chain: Chain::Organization(*organization_id),
            name: "bench".to_owned(),
            user_id: Some(*user_id),
            origin: None,
        };
        let message = format!("{what} `{}`", blueprint.name);
        let event = Event::new(action, Resource::Application, *id, message);
        audit::Write::Append(Entry::new(TimeOrderedIds.next().into(), author, event, *created_at)).into()
    }

    /// Writes the folder of each version.
    fn publish(&self, data: &Path) -> Outcome {
        for version in &self.versions {
            let folder = data.join(SITES).join(self.application.id.to_string()).join(version.id.to_string());
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("index.html"), self.application.blueprint.name.as_str())?;
        }
        Ok(())
    }

    /// Appends lines, as many of each version.
    async fn append_lines(&self, database: &Database, lines: usize) -> Outcome {
        let line = |number: usize| {
            let version = &self.versions[number * self.versions.len() / lines];
            NewLine {
                application_id: self.application.id,
                deployment_id: version.id,
                level: Level::Build,
                text: format!("#12 {number}.042 Compiling launchway-domain v0.1.0 (/build/crates/domain)"),
                at: version.created_at,
            }
        };
        Ok(database.append((0..lines).map(line).collect()).await?)
    }
}

/// Returns the secrets of an application as those of another, whose id is part of their associated data.
fn seal_anew(
    application: &Application,
    secrets: &XChaChaBox,
    id: ApplicationId,
) -> Outcome<ApplicationSecrets> {
    let seal = |column: &str, sealed: &Sealed| -> Outcome<Sealed> {
        let plain = secrets.open(&ApplicationSecrets::associated_data(application.id, column), sealed)?;
        Ok(secrets.seal(&ApplicationSecrets::associated_data(id, column), plain.expose())?)
    };
    let [build, environment] = COLUMNS;
    Ok(ApplicationSecrets {
        build_variables: seal(build, &application.secrets.build_variables)?,
        environment_variables: seal(environment, &application.secrets.environment_variables)?,
        credentials: None,
    })
}
