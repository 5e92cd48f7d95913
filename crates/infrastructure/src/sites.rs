//! Published folders: each release is a folder of its own.
//!
//! **Invariant:** a release is published atomically, and never changes afterwards; no link in it points out
//! of it.

mod copy;
mod modes;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use async_trait::async_trait;
use launchway_domain::{
    applications::BasePath,
    deployments::{Checkout, Owner, SiteStore, StepError},
    ids::{ApplicationId, DeploymentId},
};
use launchway_system::files::{Unwanted, entries, fault, make_private_folders, off_thread, remove};

pub use self::modes::Readers;
use self::{
    copy::{CopyError, copy},
    modes::share,
};

/// The folder of the data directory that releases are kept in.
pub const SITES: &str = "sites";

/// Stores releases as `<root>/<application>/<deployment>`.
#[derive(Debug, Clone)]
pub struct ReleaseFolders {
    root: PathBuf,
    readers: Readers,
}

impl ReleaseFolders {
    /// Stores releases under `root`, and creates it if necessary.
    ///
    /// # Errors
    /// [`io::Error`] when that fails.
    pub fn open(root: &Path) -> io::Result<Self> {
        make_private_folders(root)?;
        Ok(Self { root: root.canonicalize()?, readers: Readers::Owner })
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

    fn of(&self, application: ApplicationId) -> PathBuf {
        self.root.join(application.to_string())
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
        let releases = self.of(owner.application);
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        // Each call has its own draft, because a cancelled one may still be writing.
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let publication = Publication {
            place: releases.join(owner.deployment.to_string()),
            draft: releases.join(format!(".{}-{}-{number}", owner.deployment, std::process::id())),
            releases,
            checkout: checkout.root.clone(),
            folder: folder.clone(),
            readers: self.readers,
        };
        let unwanted = Unwanted::default();
        let is_unwanted = unwanted.flag();
        let published = tokio::task::spawn_blocking(move || publication.carry_out(&is_unwanted));
        published.await.map_err(|error| fault("publish a site", &io::Error::other(error)))?
    }

    async fn release(&self, application: ApplicationId, deployment: DeploymentId) -> Option<PathBuf> {
        let place = self.of(application).join(deployment.to_string());
        tokio::fs::metadata(&place).await.is_ok_and(|found| found.is_dir()).then_some(place)
    }

    async fn releases(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError> {
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

    async fn withdraw(&self, application: ApplicationId, deployment: DeploymentId) -> Result<(), StepError> {
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

    async fn remove(&self, application: ApplicationId) -> Result<(), StepError> {
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
    /// All releases of the application.
    releases: PathBuf,
    /// The final path of the release.
    place: PathBuf,
    /// Its temporary path, beside the final one.
    draft: PathBuf,
    checkout: PathBuf,
    folder: BasePath,
    readers: Readers,
}

impl Publication {
    fn carry_out(&self, is_unwanted: &AtomicBool) -> Result<PathBuf, StepError> {
        if self.place.is_dir() {
            return Ok(self.place.clone());
        }
        let source = self.source()?;
        let published = self.write(&source, is_unwanted);
        if published.is_err() {
            // Drafts are never served, and the next start removes them.
            let _left = remove(&self.draft);
        }
        match published {
            Ok(()) => Ok(self.place.clone()),
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
        make_private_folders(&self.releases)?;
        copy(source, &self.draft, is_unwanted)?;
        if self.readers == Readers::Group {
            share(&self.releases)?;
            self.readers.apply(&self.draft)?;
        }
        // One call for all files: a sync of each would take minutes.
        rustix::fs::syncfs(File::open(&self.draft)?).map_err(io::Error::from)?;
        match fs::rename(&self.draft, &self.place) {
            // Another attempt was faster, and its release is equivalent.
            Err(_) if self.place.is_dir() => remove(&self.draft)?,
            moved => moved?,
        }
        File::open(&self.releases)?.sync_all()?;
        Ok(())
    }
}
