//! Releases that several servers share by archives in their database.

mod parts;

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use chrono::TimeDelta;
use launchway_domain::{
    clock::Clock as _,
    deployments::{ArchiveState, SiteArchive, SiteArchives, StepError},
    ids::{ApplicationId, DeploymentId, Ids as _, SiteUploadId},
    store::StoreError,
};
use launchway_system::{
    clock::{SystemClock, TimeOrderedIds},
    files::{Unwanted, fault, remove},
};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::spawn_blocking,
    time::Instant,
};

use self::parts::{PartReader, PartWriter};
use super::{
    archive::{pack, unpack},
    copy::CopyError,
    draft::Draft,
};

/// The most parts that wait between the database and the file system.
const WAITING_PARTS: usize = 2;
/// The most fetches at the same time.
const MOST_FETCHES: usize = 2;
/// The time after which a failed fetch is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The time after which an upload that is not complete has ended early.
const LONGEST_UPLOAD: TimeDelta = TimeDelta::hours(24);

/// The archives of releases, and the fetches of this server.
pub(super) struct SharedReleases {
    archives: Arc<dyn SiteArchives>,
    fetches: Mutex<HashMap<DeploymentId, Fetch>>,
    permits: Semaphore,
}

enum Fetch {
    Running(watch::Receiver<Option<Result<PathBuf, StepError>>>),
    Failed(Instant, StepError),
}

impl fmt::Debug for SharedReleases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedReleases")
    }
}

impl SharedReleases {
    pub(super) fn new(archives: Arc<dyn SiteArchives>) -> Self {
        Self { archives, fetches: Mutex::default(), permits: Semaphore::new(MOST_FETCHES) }
    }

    /// Stores the archive of a release, in place of an earlier one.
    pub(super) async fn store(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
        folder: PathBuf,
    ) -> Result<(), StepError> {
        let upload: SiteUploadId = TimeOrderedIds.next().into();
        let (sender, mut receiver) = mpsc::channel(WAITING_PARTS);
        let unwanted = Unwanted::default();
        let is_unwanted = unwanted.flag();
        let packing = spawn_blocking(move || pack(&folder, PartWriter::to(sender), &is_unwanted)?.finish());
        let mut part = 0;
        while let Some(bytes) = receiver.recv().await {
            self.archives.add_part(upload, part, bytes, SystemClock.now()).await.map_err(not_stored)?;
            part += 1;
        }
        let packed = packing.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (size, sha256) = packed.map_err(|error| fault("archive a site", &error))?;
        let archive = SiteArchive { application, deployment, upload, parts: part, size, sha256 };
        self.archives.complete(archive).await.map_err(not_stored)
    }

    /// Fetches the release of `draft`, unless another call does so already; `None` if there is no archive. The fetch goes
    /// on if this call is dropped.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        draft: Draft,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<PathBuf>, StepError> {
        let found = self.archives.find(deployment).await.map_err(not_read)?;
        let Some(archive) = found.filter(|archive| archive.application == application) else {
            return Ok(None);
        };
        let mut fetch = self.running(draft, archive)?;
        let outcome = fetch.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome
            .unwrap_or_else(|| Err(StepError::Retryable("the fetch of a site ended early".to_owned())))
            .map(Some)
    }

    /// Returns the running fetch of a release, which is started if there is none.
    fn running(
        self: &Arc<Self>,
        draft: Draft,
        archive: SiteArchive,
    ) -> Result<watch::Receiver<Option<Result<PathBuf, StepError>>>, StepError> {
        let mut fetches = self.fetches();
        fetches.retain(|_, fetch| match fetch {
            Fetch::Running(receiver) => receiver.has_changed().is_ok(),
            Fetch::Failed(at, _) => at.elapsed() < RETRY_AFTER,
        });
        match fetches.entry(archive.deployment) {
            Entry::Occupied(found) => match found.get() {
                Fetch::Running(receiver) => Ok(receiver.clone()),
                Fetch::Failed(_, error) => Err(error.clone()),
            },
            Entry::Vacant(free) => {
                let (sender, receiver) = watch::channel(None);
                free.insert(Fetch::Running(receiver.clone()));
                let shared = Arc::clone(self);
                tokio::spawn(async move {
                    let deployment = archive.deployment;
                    let outcome = shared.unpack(draft, archive).await;
                    match &outcome {
                        Ok(_) => shared.fetches().remove(&deployment),
                        Err(error) => {
                            let failed = Fetch::Failed(Instant::now(), error.clone());
                            shared.fetches().insert(deployment, failed)
                        }
                    };
                    sender.send_replace(Some(outcome));
                });
                Ok(receiver)
            }
        }
    }

    async fn unpack(&self, draft: Draft, archive: SiteArchive) -> Result<PathBuf, StepError> {
        let _permit =
            self.permits.acquire().await.map_err(|error| StepError::failed("no fetch is possible", error))?;
        if draft.place.is_dir() {
            return Ok(draft.place.clone());
        }
        let (sender, receiver) = mpsc::channel(WAITING_PARTS);
        let unwanted = Unwanted::default();
        let (is_unwanted, expected) = (unwanted.flag(), (archive.size, archive.sha256));
        let unpacking = spawn_blocking(move || {
            let unpacked = unpack_into(&draft, receiver, expected, &is_unwanted);
            if unpacked.is_err() {
                let _left = remove(&draft.path);
            }
            unpacked.map(|()| draft.place.clone())
        });
        let sent = self.send(&archive, sender).await;
        // The draft of a failed fetch is gone when this returns.
        let unpacked = unpacking.await.unwrap_or_else(|error| Err(io::Error::other(error).into()));
        sent?;
        unpacked.map_err(|error| match error {
            CopyError::Io(error) => fault("unpack a site", &error),
            CopyError::Refused(sentence) => {
                StepError::Retryable(format!("the archive of a site is damaged: {sentence}"))
            }
        })
    }

    /// Sends the parts of an archive, until the receiver has had enough.
    async fn send(&self, archive: &SiteArchive, sender: mpsc::Sender<Vec<u8>>) -> Result<(), StepError> {
        for part in 0..archive.parts {
            let found = self.archives.part(archive.upload, part).await.map_err(not_read)?;
            let gone = || StepError::Retryable("the archive of a site was replaced or removed".to_owned());
            if sender.send(found.ok_or_else(gone)?).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the state of the archive of each release that needs one, or had one.
    pub(super) async fn states(
        &self,
        folders: &[(ApplicationId, DeploymentId)],
    ) -> Result<Vec<(ApplicationId, DeploymentId, ArchiveState)>, StepError> {
        let applications: HashMap<_, _> =
            folders.iter().map(|(application, deployment)| (*deployment, *application)).collect();
        let deployments: Vec<_> = folders.iter().map(|(_, deployment)| *deployment).collect();
        let states = self.archives.states(&deployments).await.map_err(not_read)?;
        let of = |(deployment, state)| Some((*applications.get(&deployment)?, deployment, state));
        Ok(states.into_iter().filter_map(of).collect())
    }

    pub(super) async fn all(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError> {
        self.archives.all().await.map_err(not_read)
    }

    pub(super) async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.archives.remove(deployment).await.map_err(not_removed)
    }

    pub(super) async fn remove_all(&self, application: ApplicationId) -> Result<(), StepError> {
        self.archives.remove_all(application).await.map_err(not_removed)
    }

    pub(super) async fn remove_incomplete(&self) -> Result<(), StepError> {
        self.archives.remove_incomplete(SystemClock.now() - LONGEST_UPLOAD).await.map_err(not_removed)
    }

    fn fetches(&self) -> MutexGuard<'_, HashMap<DeploymentId, Fetch>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unpacks and publishes a release, unless its archive is not as expected. Blocks.
fn unpack_into(
    draft: &Draft,
    receiver: mpsc::Receiver<Vec<u8>>,
    expected: (u64, [u8; 32]),
    is_unwanted: &AtomicBool,
) -> Result<(), CopyError> {
    draft.make_parent()?;
    let mut reader = PartReader::of(receiver);
    unpack(&mut reader, &draft.path, is_unwanted)?;
    if reader.finish() != expected {
        return Err(CopyError::Refused("It has another size or hash.".to_owned()));
    }
    draft.settle()?;
    Ok(draft.publish()?)
}

fn not_stored(error: StoreError) -> StepError {
    StepError::failed("the archive of a site cannot be stored", error)
}

fn not_read(error: StoreError) -> StepError {
    StepError::failed("the archive of a site cannot be read", error)
}

fn not_removed(error: StoreError) -> StepError {
    StepError::failed("the archive of a site cannot be removed", error)
}
