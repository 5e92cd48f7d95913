//! The routes on disk, so that they survive a restart.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::routes::Route;

const FILE: &str = "routes.json";
const NEXT_FILE: &str = "routes.json.next";
const FORMAT: u32 = 1;

/// The file with the routes.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    folder: PathBuf,
    boot_id: String,
}

/// The stored routes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// These are all routes.
    pub(crate) is_complete: bool,
    /// The time, in seconds, after which routes to containers expire unless the control plane confirms them.
    pub(crate) lease: Option<u64>,
    /// The routes, and for each whether it was set since the machine booted and has not expired. The container
    /// of another one may have lost its address.
    pub(crate) routes: Vec<(Route, bool)>,
}

impl Kept {
    /// Withdraws the trust in all routes to containers.
    pub(crate) fn expire(&mut self) {
        for (_, is_trusted) in &mut self.routes {
            *is_trusted = false;
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    is_complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<u64>,
    routes: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    boot_id: String,
    #[serde(flatten)]
    route: Route,
}

impl Store {
    /// The file in `folder`, on a machine with this boot id.
    pub(crate) fn in_folder(folder: &Path, boot_id: &Path) -> Self {
        let boot_id = fs::read_to_string(boot_id).unwrap_or_else(|error| {
            tracing::warn!(%error, "boot id is unreadable, routes are not trusted after a restart");
            String::new()
        });
        Self { folder: folder.to_owned(), boot_id: boot_id.trim().to_owned() }
    }

    /// Loads the routes. Without a file, or with an unreadable one, there are none.
    pub(crate) fn load(&self) -> Kept {
        let path = self.folder.join(FILE);
        match fs::read(&path).and_then(|text| Ok(serde_json::from_slice::<Document>(&text)?)) {
            Ok(document) if document.format == FORMAT => self.read(document),
            Ok(document) => {
                tracing::warn!(
                    format = document.format,
                    "stored routes have an unknown format, waiting for new ones"
                );
                Kept::default()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kept::default(),
            Err(error) => {
                tracing::warn!(%error, "stored routes read failed, waiting for new ones");
                Kept::default()
            }
        }
    }

    /// Replaces the stored routes. Returns when they are on disk; the replacement is atomic.
    pub(crate) fn save(&self, kept: &Kept) -> io::Result<()> {
        let next = self.folder.join(NEXT_FILE);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        file.write_all(&serde_json::to_vec(&self.document(kept))?)?;
        file.sync_all()?;
        fs::rename(&next, self.folder.join(FILE))?;
        File::open(&self.folder)?.sync_all()
    }

    fn read(&self, document: Document) -> Kept {
        let is_recent = |boot_id: &str| !boot_id.is_empty() && boot_id == self.boot_id;
        let routes = document.routes.into_iter();
        Kept {
            is_complete: document.is_complete,
            lease: document.lease,
            routes: routes.map(|record| (record.route, is_recent(&record.boot_id))).collect(),
        }
    }

    fn document(&self, kept: &Kept) -> Document {
        let records = kept.routes.iter().map(|(route, is_trusted)| Record {
            boot_id: if *is_trusted { self.boot_id.clone() } else { String::new() },
            route: route.clone(),
        });
        let Kept { is_complete, lease, .. } = *kept;
        Document { format: FORMAT, is_complete, lease, routes: records.collect() }
    }
}
