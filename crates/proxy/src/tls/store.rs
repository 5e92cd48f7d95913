//! The certificates on disk, so that the proxy can serve them after a restart without the control plane.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::certificates::Certificate;

const FILE: &str = "certificates.json";
const NEXT_FILE: &str = "certificates.json.next";
const FORMAT: u32 = 1;

/// The file with the certificates and their private keys, which only the user of the proxy can read.
#[derive(Debug, Clone)]
pub(crate) struct CertificateStore {
    folder: PathBuf,
}

/// The stored certificates.
#[derive(Debug, Default)]
pub(super) struct KeptCertificates {
    /// The revision that the control plane gave to them.
    pub(super) revision: String,
    pub(super) certificates: Vec<Certificate>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    revision: String,
    certificates: Vec<Certificate>,
}

impl CertificateStore {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Loads the certificates. Without a file, or with an unreadable one, there are none.
    pub(super) fn load(&self) -> KeptCertificates {
        let path = self.folder.join(FILE);
        match fs::read(&path).and_then(|text| Ok(serde_json::from_slice::<Document>(&text)?)) {
            Ok(Document { format: FORMAT, revision, certificates }) => {
                KeptCertificates { revision, certificates }
            }
            Ok(Document { format, .. }) => {
                tracing::warn!(format, "stored certificates have an unknown format, waiting for new ones");
                KeptCertificates::default()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => KeptCertificates::default(),
            Err(error) => {
                tracing::warn!(%error, "stored certificates read failed, waiting for new ones");
                KeptCertificates::default()
            }
        }
    }

    /// Replaces the stored certificates. Returns when they are on disk; the replacement is atomic.
    pub(super) fn save(&self, kept: &KeptCertificates) -> io::Result<()> {
        let KeptCertificates { revision, certificates } = kept;
        let document =
            Document { format: FORMAT, revision: revision.clone(), certificates: certificates.clone() };
        let next = self.folder.join(NEXT_FILE);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        file.write_all(&serde_json::to_vec(&document)?)?;
        file.sync_all()?;
        fs::rename(&next, self.folder.join(FILE))?;
        File::open(&self.folder)?.sync_all()
    }
}
