//! Announcements of moved references, one file for each.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use launchway_domain::{
    deployments::StepError,
    idempotency::{BodyHash, IdempotencyKey},
    ids::{DeploymentId, OrganizationId},
    organizations::Scope,
    sources::PendingSource,
};
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
    /// Absent for a push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<WrittenKey>,
}

/// An idempotency key of the organization as it is written.
#[derive(Serialize, Deserialize)]
struct WrittenKey {
    user: String,
    operation: String,
    name: String,
    body: String,
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
            digest: pending.digest.as_ref().map(ToString::to_string),
            key: pending.key.as_ref().map(|key| WrittenKey {
                user: key.user_id.to_string(),
                operation: key.operation.clone(),
                name: key.name.to_string(),
                body: HEXLOWER.encode(&key.body.0),
            }),
        }
    }
}

impl Written {
    fn parse(self) -> Option<PendingSource> {
        let old = match self.old {
            Some(old) => Some(old.parse().ok()?),
            None => None,
        };
        let digest = match self.digest {
            Some(digest) => Some(digest.parse().ok()?),
            None => None,
        };
        let organization = self.organization.parse().ok()?;
        let key = match self.key {
            Some(key) => Some(key.parse(organization)?),
            None => None,
        };
        Some(PendingSource {
            organization,
            application: self.application.parse().ok()?,
            deployment: self.deployment.parse().ok()?,
            reference: self.reference,
            old,
            new: self.new.parse().ok()?,
            by: self.by,
            digest,
            key,
        })
    }
}

impl WrittenKey {
    fn parse(self, organization: OrganizationId) -> Option<IdempotencyKey> {
        let body = HEXLOWER.decode(self.body.as_bytes()).ok()?.try_into().ok()?;
        Some(IdempotencyKey {
            scope: Scope::of_record(organization),
            user_id: self.user.parse().ok()?,
            operation: self.operation,
            name: self.name.parse().ok()?,
            body: BodyHash(body),
        })
    }
}
