//! Published folders: each release is a folder of its own.
//!
//! If several servers share a database, it stores an archive of each release too, from which the servers that do not
//! have the folder unpack it.
//!
//! **Invariant:** a release is published atomically, and never changes afterwards; no link in it points out
//! of it. Its archive is complete before it counts as published.

mod archive;
mod copy;
mod draft;
mod modes;
mod shared;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, atomic::AtomicBool},
};

use async_trait::async_trait;
use launchway_domain::{
    applications::BasePath,
    deployments::{ArchiveState, Checkout, Owner, SiteArchives, SiteStore, StepError},
    ids::{ApplicationId, DeploymentId},
};
use launchway_system::files::{Unwanted, entries, fault, make_private_folders, off_thread, remove};

pub use self::modes::Readers;
use self::{
    copy::{CopyError, copy},
    draft::Draft,
    modes::share,
    shared::SharedReleases,
};

/// The folder of the data directory that releases are kept in.
pub const SITES: &str = "sites";

/// Stores releases as `<root>/<application>/<deployment>`.
#[derive(Debug, Clone)]
pub struct ReleaseFolders {
    root: PathBuf,
    readers: Readers,
    /// The archives of all servers; `None` for a single server.
    shared: Option<Arc<SharedReleases>>,
}

impl ReleaseFolders {
    /// Stores releases under `root`, and creates it if necessary.
    ///
    /// # Errors
    /// [`io::Error`] when that fails.
    pub fn open(root: &Path) -> io::Result<Self> {
        make_private_folders(root)?;
        Ok(Self { root: root.canonicalize()?, readers: Readers::Owner, shared: None })
    }

    /// Shares releases with other servers by `archives`.
    #[must_use]
    pub fn shared_by(self, archives: Arc<dyn SiteArchives>) -> Self {
        Self { shared: Some(Arc::new(SharedReleases::new(archives))), ..self }
    }

    /// Lets `readers` read the releases that are there, and those that are published from now on.
    ///
    /// # Errors
    /// [`io::Error`] when a mode cannot be changed.
    pub fn readable_by(self, readers: Readers) -> io::Result<Self> {
        readers.apply(&self.root)?;
        Ok(Self { readers, ..self })
    }

    /// Removes the remains of a process that ended early. Nothing may be in use, so call this at the start,
    /// after the data directory is locked.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the file system fails.
    pub async fn clear_drafts(&self) -> Result<(), StepError> {
        let root = self.root.clone();
        off_thread("clear unfinished releases", move || {
            for folder in entries(&root)? {
                let drafts = if is_draft(&folder) { vec![folder] } else { entries(&folder)? };
                drafts.iter().filter(|path| is_draft(path)).try_for_each(|path| remove(path))?;
            }
            Ok(())
        })
        .await
    }

    /// Archives the releases that only this server has, and removes the folders of those whose archive was removed by
    /// another server. Also removes what uploads that ended early left.
    ///
    /// # Errors
    /// [`StepError`] when the file system or the database fails.
    pub async fn archive_missing(&self) -> Result<(), StepError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let folders = self.folders().await?;
        for (application, deployment, state) in shared.states(&folders).await? {
            match state {
                ArchiveState::Complete => {}
                ArchiveState::Removed => {
                    self.remove_folder(application, deployment).await?;
                    tracing::info!(deployment.id = %deployment, "release of a site removed");
                }
                ArchiveState::Missing => {
                    let folder = self.of(application).join(deployment.to_string());
                    match shared.store(application, deployment, folder).await {
                        Ok(()) => tracing::info!(deployment.id = %deployment, "release of a site archived"),
                        Err(error) => {
                            tracing::warn!(%error, deployment.id = %deployment, "release of a site cannot be archived")
                        }
                    }
                }
            }
        }
        shared.remove_incomplete().await
    }

    /// Fetches every release that this server does not have.
    ///
    /// # Errors
    /// [`StepError`] when one cannot be fetched.
    pub async fn fetch_missing(&self) -> Result<(), StepError> {
        for (application, deployment) in self.releases().await? {
            self.release(application, deployment).await?;
        }
        Ok(())
    }

    /// Returns the releases that this server has.
    async fn folders(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError> {
        let root = self.root.clone();
        off_thread("look for releases", move || {
            let mut found = Vec::new();
            for folder in entries(&root)? {
                let Some(application) = id_in(&folder) else { continue };
                let releases = match entries(&folder) {
                    // Its application has been deleted just now.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    releases => releases?,
                };
                found.extend(releases.iter().filter_map(|path| Some((application, id_in(path)?))));
            }
            Ok(found)
        })
        .await
    }

    async fn remove_folder(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<(), StepError> {
        let releases = self.of(application);
        off_thread("remove a release", move || {
            let (place, gone) =
                (releases.join(deployment.to_string()), releases.join(format!(".{deployment}-gone")));
            // The rest of a removal that did not finish.
            remove(&gone)?;
            match fs::rename(&place, &gone) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                moved => moved.and_then(|()| remove(&gone)),
            }
        })
        .await
    }

    fn of(&self, application: ApplicationId) -> PathBuf {
        self.root.join(application.to_string())
    }

    fn draft(&self, application: ApplicationId, deployment: DeploymentId) -> Draft {
        Draft::of(self.of(application), deployment, self.readers)
    }
}

#[async_trait]
impl SiteStore for ReleaseFolders {
    async fn publish(
        &self,
        owner: &Owner,
        checkout: &Checkout,
        folder: &BasePath,
    ) -> Result<PathBuf, StepError> {
        // Another attempt may have published it, on whichever server.
        if let Ok(Some(place)) = self.release(owner.application, owner.deployment).await {
            return Ok(place);
        }
        let draft = Arc::new(self.draft(owner.application, owner.deployment));
        let publication =
            Publication { draft: draft.clone(), checkout: checkout.root.clone(), folder: folder.clone() };
        let unwanted = Unwanted::default();
        let is_unwanted = unwanted.flag();
        let written = tokio::task::spawn_blocking(move || publication.carry_out(&is_unwanted));
        written.await.map_err(|error| fault("publish a site", &io::Error::other(error)))??;
        if let Some(shared) = &self.shared {
            shared.store(owner.application, owner.deployment, draft.path.clone()).await?;
        }
        off_thread("publish a site", move || {
            draft.publish()?;
            Ok(draft.place.clone())
        })
        .await
    }

    async fn release(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<PathBuf>, StepError> {
        let place = self.of(application).join(deployment.to_string());
        if tokio::fs::metadata(&place).await.is_ok_and(|found| found.is_dir()) {
            return Ok(Some(place));
        }
        match &self.shared {
            Some(shared) => shared.fetch(self.draft(application, deployment), application, deployment).await,
            None => Ok(None),
        }
    }

    async fn releases(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError> {
        let mut found = self.folders().await?;
        if let Some(shared) = &self.shared {
            let all: BTreeSet<_> = found.into_iter().chain(shared.all().await?).collect();
            found = all.into_iter().collect();
        }
        Ok(found)
    }

    async fn withdraw(&self, application: ApplicationId, deployment: DeploymentId) -> Result<(), StepError> {
        if let Some(shared) = &self.shared {
            shared.remove(deployment).await?;
        }
        self.remove_folder(application, deployment).await
    }

    async fn remove(&self, application: ApplicationId) -> Result<(), StepError> {
        if let Some(shared) = &self.shared {
            shared.remove_all(application).await?;
        }
        let (releases, gone) = (self.of(application), self.root.join(format!(".{application}")));
        off_thread("remove the releases of an application", move || {
            // The rest of a removal that did not finish.
            remove(&gone)?;
            match fs::rename(&releases, &gone) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                moved => moved.and_then(|()| remove(&gone)),
            }
        })
        .await
    }
}

/// Returns the id that a folder is named by.
fn id_in<T: FromStr>(path: &Path) -> Option<T> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Returns whether a folder is a draft or is being removed. Releases are named by an id.
fn is_draft(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

struct Publication {
    draft: Arc<Draft>,
    checkout: PathBuf,
    folder: BasePath,
}

impl Publication {
    /// Writes and settles the draft.
    fn carry_out(&self, is_unwanted: &AtomicBool) -> Result<(), StepError> {
        let source = self.source()?;
        let written = self.write(&source, is_unwanted);
        if written.is_err() {
            let _left = remove(&self.draft.path);
        }
        match written {
            Ok(()) => Ok(()),
            Err(CopyError::Refused(sentence)) => Err(StepError::Rejected(sentence)),
            Err(CopyError::Io(error)) => Err(fault("publish a site", &error)),
        }
    }

    /// Returns the folder to publish, which must be within the checkout after links are resolved.
    fn source(&self) -> Result<PathBuf, StepError> {
        let folder = self.folder.as_str();
        let root = self.checkout.canonicalize().map_err(|error| fault("find a checkout", &error))?;
        let source = match root.join(self.folder.relative()).canonicalize() {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(fault("enter a checkout", &error));
            }
            Err(_) => {
                return Err(StepError::Rejected(format!("There is no folder `{folder}` in the repository.")));
            }
        };
        if !source.starts_with(&root) {
            Err(StepError::Rejected(format!("The folder `{folder}` is outside the repository.")))
        } else if !source.is_dir() {
            Err(StepError::Rejected(format!("`{folder}` is not a folder of the repository.")))
        } else {
            Ok(source)
        }
    }

    fn write(&self, source: &Path, is_unwanted: &AtomicBool) -> Result<(), CopyError> {
        self.draft.make_parent()?;
        copy(source, &self.draft.path, is_unwanted)?;
        Ok(self.draft.settle()?)
    }
}
