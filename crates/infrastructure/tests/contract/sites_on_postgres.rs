//! Two servers that share sites by one PostgreSQL database.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use launchway_domain::{
    applications::{self, Application},
    clock::Timestamp,
    deployments::{
        self, ArchiveState, Checkout, Deployment, DeploymentState, Owner, SiteArchive, SiteArchives,
        SiteStore as _, StepError,
    },
    ids::{ApplicationId, DeploymentId, SiteUploadId},
    store::{StoreError, UnitOfWork as _},
};
use launchway_infrastructure::{database::Database, sites::ReleaseFolders};
use launchway_testkit::builders::{a_deployment, an_application};
use tempfile::TempDir;

use crate::{
    builders::{Resident, at, audited, execute, id},
    fresh::Fresh,
};

/// Counts the parts that are read, and can lose its connection to the database.
struct Counted {
    database: Database,
    parts: AtomicUsize,
    /// The number of parts that can be written.
    limit: AtomicUsize,
}

#[async_trait]
impl SiteArchives for Counted {
    async fn find(&self, deployment: DeploymentId) -> Result<Option<SiteArchive>, StoreError> {
        SiteArchives::find(&self.database, deployment).await
    }

    async fn all(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StoreError> {
        self.database.all().await
    }

    async fn states(&self, of: &[DeploymentId]) -> Result<Vec<(DeploymentId, ArchiveState)>, StoreError> {
        self.database.states(of).await
    }

    async fn add_part(
        &self,
        upload: SiteUploadId,
        part: u32,
        bytes: Vec<u8>,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        assert!(bytes.len() <= SiteArchive::PART);
        if self.limit.load(Ordering::Relaxed) <= part as usize {
            return Err(StoreError::Unavailable("lost".into()));
        }
        self.database.add_part(upload, part, bytes, at(0)).await
    }

    async fn part(&self, upload: SiteUploadId, part: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.parts.fetch_add(1, Ordering::Relaxed);
        self.database.part(upload, part).await
    }

    async fn complete(&self, archive: SiteArchive) -> Result<(), StoreError> {
        self.database.complete(archive).await
    }

    async fn remove(&self, deployment: DeploymentId) -> Result<(), StoreError> {
        SiteArchives::remove(&self.database, deployment).await
    }

    async fn remove_all(&self, application: ApplicationId) -> Result<(), StoreError> {
        self.database.remove_all(application).await
    }

    async fn remove_incomplete(&self, before: Timestamp) -> Result<(), StoreError> {
        self.database.remove_incomplete(before).await
    }
}

/// A server with folders of its own.
struct Server {
    sites: ReleaseFolders,
    archives: Arc<Counted>,
    folder: TempDir,
}

impl Server {
    fn on(fresh: &Fresh) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archives = Arc::new(Counted {
            database: fresh.open_again(),
            parts: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
        });
        let sites = ReleaseFolders::open(&folder.path().join("sites")).unwrap().shared_by(archives.clone());
        Self { sites, archives, folder }
    }

    async fn publish(&self, harness: &Harness) -> Result<PathBuf, StepError> {
        let checkout = Checkout { root: harness.checkout.path().to_owned() };
        self.sites.publish(&harness.owner, &checkout, &"/".parse().unwrap()).await
    }

    async fn release(&self, harness: &Harness) -> Result<Option<PathBuf>, StepError> {
        self.sites.release(harness.owner.application, harness.owner.deployment).await
    }

    /// Returns the names of the folders of the application, drafts included.
    fn folders(&self, harness: &Harness) -> Vec<String> {
        let application = self.folder.path().join("sites").join(harness.owner.application.to_string());
        let Ok(found) = fs::read_dir(application) else { return Vec::new() };
        found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// A deployment of a site, with its files.
struct Harness {
    fresh: Fresh,
    application: Application,
    owner: Owner,
    checkout: TempDir,
}

impl Harness {
    async fn new() -> Self {
        let fresh = Fresh::on_postgres().await;
        let ada = Resident::of(&fresh.database, "ada").await;
        let application = an_application().in_organization(&ada.organization).made_by(&ada.user).build();
        let insert = applications::Write::Insert(Box::new(application.clone()));
        fresh.database.commit(audited(vec![insert.into()])).await.unwrap();
        let deployment = Deployment {
            id: id(),
            ..a_deployment().of(&application).in_state(DeploymentState::Deployed).build()
        };
        let insert = deployments::Write::Insert(deployment.clone());
        fresh.database.commit(audited(vec![insert.into()])).await.unwrap();
        let owner = Owner {
            organization: ada.organization.id,
            application: application.id,
            deployment: deployment.id,
            attempt: 1,
        };
        let checkout = tempfile::tempdir().unwrap();
        fs::create_dir(checkout.path().join("css")).unwrap();
        fs::write(checkout.path().join("index.html"), "<h1>Hello</h1>").unwrap();
        fs::write(checkout.path().join("css/large"), noise(3 * SiteArchive::PART)).unwrap();
        symlink("css/large", checkout.path().join("link")).unwrap();
        Self { fresh, application, owner, checkout }
    }

    #[track_caller]
    fn is_in(&self, release: &Path) {
        for name in ["index.html", "css/large", "link"] {
            let [here, there] =
                [self.checkout.path(), release].map(|root| fs::read(root.join(name)).unwrap());
            assert!(here == there, "{name}");
        }
        assert!(release.join("link").is_symlink());
    }

    fn key(&self) -> (ApplicationId, DeploymentId) {
        (self.owner.application, self.owner.deployment)
    }
}

/// Returns bytes that cannot be compressed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(&mut next).take(length).collect()
}

#[tokio::test]
async fn a_release_of_one_server_is_fetched_by_another() {
    let harness = Harness::new().await;
    let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
    assert_eq!((a.release(&harness).await, b.release(&harness).await), (Ok(None), Ok(None)));
    let published = a.publish(&harness).await.unwrap();
    assert_eq!(b.sites.releases().await, Ok(vec![harness.key()]));
    let fetched = b.release(&harness).await.unwrap().unwrap();
    harness.is_in(&fetched);
    assert!(fetched != published && b.folders(&harness).len() == 1);
    let [here, there] =
        [&published, &fetched].map(|root| fs::metadata(root.join("index.html")).unwrap().modified().unwrap());
    assert_eq!(
        here.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(),
        there.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    );
    // From now on the folder is enough, and it is listed once.
    let parts = b.archives.parts.load(Ordering::Relaxed);
    b.release(&harness).await.unwrap().unwrap();
    assert_eq!(b.archives.parts.load(Ordering::Relaxed), parts);
    assert_eq!(b.sites.releases().await, Ok(vec![harness.key()]));
    assert_eq!(
        b.release(&Harness { owner: Owner { application: id(), ..harness.owner }, ..harness }).await,
        Ok(None)
    );
}

#[tokio::test]
async fn concurrent_callers_wait_for_one_fetch() {
    let harness = Harness::new().await;
    let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
    a.publish(&harness).await.unwrap();
    let (application, deployment) = harness.key();
    let calls = (0..8).map(|_| {
        let sites = b.sites.clone();
        tokio::spawn(async move { sites.release(application, deployment).await })
    });
    for call in calls.collect::<Vec<_>>() {
        harness.is_in(&call.await.unwrap().unwrap().unwrap());
    }
    let expected = SiteArchives::find(&harness.fresh.database, deployment).await.unwrap().unwrap().parts;
    assert_eq!(b.archives.parts.load(Ordering::Relaxed), expected as usize);
    assert!(expected >= 3 && b.folders(&harness).len() == 1);
}

#[tokio::test]
async fn a_fetch_goes_on_if_its_caller_is_gone() {
    let harness = Harness::new().await;
    let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
    a.publish(&harness).await.unwrap();
    let waited = tokio::time::timeout(std::time::Duration::from_millis(1), b.release(&harness)).await;
    let parts = b.archives.parts.load(Ordering::Relaxed);
    harness.is_in(&b.release(&harness).await.unwrap().unwrap());
    let all =
        SiteArchives::find(&harness.fresh.database, harness.owner.deployment).await.unwrap().unwrap().parts;
    assert!(b.archives.parts.load(Ordering::Relaxed) == all as usize, "{waited:?} {parts}");
}

#[tokio::test]
async fn a_half_written_archive_is_no_release() {
    let harness = Harness::new().await;
    let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
    a.archives.limit.store(2, Ordering::Relaxed);
    let failed = a.publish(&harness).await.unwrap_err();
    assert!(failed.to_string().starts_with("the archive of a site cannot be stored"), "{failed}");
    assert_eq!((a.release(&harness).await, b.release(&harness).await), (Ok(None), Ok(None)));
    assert_eq!(b.sites.releases().await, Ok(Vec::new()));
    let rows = "DO $$ BEGIN ASSERT (SELECT count(*) FROM site_archive_parts) = 2; END $$";
    execute(&harness.fresh.database, rows).await;
    // Later it is removed, by any server.
    b.sites.archive_missing().await.unwrap();
    let rows = "DO $$ BEGIN ASSERT (SELECT count(*) FROM site_archive_parts) = 0; END $$";
    execute(&harness.fresh.database, rows).await;

    a.archives.limit.store(usize::MAX, Ordering::Relaxed);
    a.publish(&harness).await.unwrap();
    harness.is_in(&b.release(&harness).await.unwrap().unwrap());
}

#[tokio::test]
async fn a_damaged_archive_is_refused_and_can_be_replaced() {
    for damage in [
        "UPDATE site_archives SET sha256 = decode(repeat('00', 32), 'hex')",
        "UPDATE site_archives SET size = size + 1",
        "UPDATE site_archive_parts SET bytes = overlay(bytes PLACING '\\x00'::bytea FROM 5000) WHERE part = 1",
        "UPDATE site_archive_parts SET bytes = substring(bytes FOR 1000) WHERE part = 2",
        "DELETE FROM site_archive_parts WHERE part = 1",
    ] {
        let harness = Harness::new().await;
        let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
        a.publish(&harness).await.unwrap();
        execute(&harness.fresh.database, damage).await;
        let refused = b.release(&harness).await.unwrap_err();
        assert!(!matches!(refused, StepError::Rejected(_)), "{damage}: {refused}");
        assert_eq!(b.folders(&harness), Vec::<String>::new(), "{damage}");
        // Not with each call anew.
        let parts = b.archives.parts.load(Ordering::Relaxed);
        assert_eq!(b.release(&harness).await, Err(refused), "{damage}");
        assert_eq!(b.archives.parts.load(Ordering::Relaxed), parts, "{damage}");
        // A new attempt, on whichever server, publishes it again.
        b.publish(&harness).await.unwrap();
        let c = Server::on(&harness.fresh);
        harness.is_in(&c.release(&harness).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn another_attempt_gets_the_release_of_the_first() {
    let harness = Harness::new().await;
    let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
    a.publish(&harness).await.unwrap();
    fs::write(harness.checkout.path().join("index.html"), "changed").unwrap();
    let again = b.publish(&harness).await.unwrap();
    assert_eq!(fs::read_to_string(again.join("index.html")).unwrap(), "<h1>Hello</h1>");
}

#[tokio::test]
async fn a_withdrawn_release_goes_from_every_server() {
    let harness = Harness::new().await;
    let (a, b, c) = (Server::on(&harness.fresh), Server::on(&harness.fresh), Server::on(&harness.fresh));
    a.publish(&harness).await.unwrap();
    b.release(&harness).await.unwrap().unwrap();
    // While it may be needed, a server that has it archives it again.
    a.sites.withdraw(harness.owner.application, harness.owner.deployment).await.unwrap();
    assert_eq!((a.release(&harness).await, c.release(&harness).await), (Ok(None), Ok(None)));
    b.sites.archive_missing().await.unwrap();
    harness.is_in(&c.release(&harness).await.unwrap().unwrap());

    execute(&harness.fresh.database, "UPDATE deployments SET status = 'failed'").await;
    a.sites.withdraw(harness.owner.application, harness.owner.deployment).await.unwrap();
    for server in [&b, &c] {
        server.sites.archive_missing().await.unwrap();
        assert_eq!((server.release(&harness).await, server.folders(&harness).len()), (Ok(None), 0));
    }
    assert_eq!(c.sites.releases().await, Ok(Vec::new()));
}

#[tokio::test]
async fn the_releases_of_a_deleted_application_go_from_every_server() {
    let harness = Harness::new().await;
    let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
    a.publish(&harness).await.unwrap();
    b.release(&harness).await.unwrap().unwrap();
    a.sites.remove(harness.application.id).await.unwrap();
    execute(&harness.fresh.database, "UPDATE applications SET deleted_at = created_at").await;
    b.sites.archive_missing().await.unwrap();
    assert_eq!((a.folders(&harness).len(), b.folders(&harness).len()), (0, 0));
    assert_eq!(b.sites.releases().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_release_of_an_earlier_version_is_archived() {
    let harness = Harness::new().await;
    let (a, b) = (Server::on(&harness.fresh), Server::on(&harness.fresh));
    a.publish(&harness).await.unwrap();
    execute(&harness.fresh.database, "DELETE FROM site_archives; DELETE FROM site_archive_parts").await;
    assert_eq!(b.release(&harness).await, Ok(None));
    for _ in 0..2 {
        a.sites.archive_missing().await.unwrap();
    }
    b.sites.fetch_missing().await.unwrap();
    assert_eq!(b.folders(&harness), [harness.owner.deployment.to_string()]);
    // What no record knows is not archived.
    let unknown = a.folder.path().join(format!("sites/{}/{}", harness.application.id, id::<DeploymentId>()));
    fs::create_dir(&unknown).unwrap();
    a.sites.archive_missing().await.unwrap();
    assert!(unknown.exists());
    assert_eq!(b.sites.releases().await, Ok(vec![harness.key()]));
}
