//! Announcements of moved references, one file for each.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use launchway_domain::{deployments::StepError, ids::DeploymentId, sources::PendingSource};
use launchway_system::files;
use serde::{Deserialize, Serialize};

/// The folder of the files.
pub(super) struct AnnouncementFiles(pub(super) PathBuf);

/// An announcement as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    organization: String,
    application: String,
    deployment: String,
    reference: String,
    old: Option<String>,
    new: String,
    by: String,
}

impl AnnouncementFiles {
    /// Writes a file durably, by one rename.
    pub(super) async fn write(&self, pending: &PendingSource) -> Result<(), StepError> {
        let (folder, name) = (self.0.clone(), pending.deployment.to_string());
        let text = serde_json::to_string(&Written::from(pending))
            .map_err(|error| StepError::failed("cannot write an announcement", error))?;
        files::off_thread("announce a push", move || {
            files::make_private_folders(&folder)?;
            let draft = folder.join(format!(".{name}"));
            let mut file = File::create(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, folder.join(name))?;
            File::open(&folder)?.sync_all()
        })
        .await
    }

    pub(super) async fn remove(&self, id: DeploymentId) -> Result<(), StepError> {
        let path = self.0.join(id.to_string());
        files::off_thread("end an announcement", move || files::remove(&path)).await
    }

    pub(super) async fn list(&self) -> Result<Vec<PendingSource>, StepError> {
        let folder = self.0.clone();
        files::off_thread("list announcements", move || {
            let found = match files::entries(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                found => found?,
            };
            found.iter().filter(|path| !is_draft(path)).map(|path| read(path)).collect()
        })
        .await
    }
}

fn is_draft(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn read(path: &Path) -> io::Result<PendingSource> {
    let written: Written = serde_json::from_str(&fs::read_to_string(path)?)?;
    written.parse().ok_or_else(|| io::Error::other(format!("`{}` is not an announcement", path.display())))
}

impl From<&PendingSource> for Written {
    fn from(pending: &PendingSource) -> Self {
        Self {
            organization: pending.organization.to_string(),
            application: pending.application.to_string(),
            deployment: pending.deployment.to_string(),
            reference: pending.reference.clone(),
            old: pending.old.as_ref().map(ToString::to_string),
            new: pending.new.to_string(),
            by: pending.by.clone(),
        }
    }
}

impl Written {
    fn parse(self) -> Option<PendingSource> {
        let old = match self.old {
            Some(old) => Some(old.parse().ok()?),
            None => None,
        };
        Some(PendingSource {
            organization: self.organization.parse().ok()?,
            application: self.application.parse().ok()?,
            deployment: self.deployment.parse().ok()?,
            reference: self.reference,
            old,
            new: self.new.parse().ok()?,
            by: self.by,
        })
    }
}
