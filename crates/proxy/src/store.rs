//! The routes on disk, so that they survive a restart.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};

use crate::routes::Route;

const FILE: &str = "routes.json";
const NEXT_FILE: &str = "routes.json.next";
const FORMAT: u32 = 1;
/// The end of a document without routes.
const END: &str = "]}";

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
    pub(crate) routes: Vec<(Arc<KeptRoute>, bool)>,
}

impl Kept {
    /// Withdraws the trust in all routes to containers.
    pub(crate) fn expire(&mut self) {
        for (_, is_trusted) in &mut self.routes {
            *is_trusted = false;
        }
    }
}

/// A route, and its text once it was written: there may be many, and most stay as they are.
#[derive(Debug)]
pub(crate) struct KeptRoute {
    pub(crate) route: Route,
    text: OnceLock<String>,
}

impl KeptRoute {
    pub(crate) fn new(route: Route) -> Arc<Self> {
        Arc::new(Self { route, text: OnceLock::new() })
    }

    fn text(&self) -> io::Result<&str> {
        if let Some(text) = self.text.get() {
            return Ok(text);
        }
        let text = serde_json::to_string(&self.route)?;
        Ok(self.text.get_or_init(|| text))
    }
}

impl PartialEq for KeptRoute {
    fn eq(&self, other: &Self) -> bool {
        self.route == other.route
    }
}

impl Eq for KeptRoute {}

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    is_complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<u64>,
    /// The last field: [`Store::text`] adds records to an empty list.
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
        file.write_all(self.text(kept)?.as_bytes())?;
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
            routes: routes.map(|record| (KeptRoute::new(record.route), is_recent(&record.boot_id))).collect(),
        }
    }

    /// Returns the text of a [`Document`].
    fn text(&self, kept: &Kept) -> io::Result<String> {
        let Kept { is_complete, lease, ref routes } = *kept;
        let empty = Document { format: FORMAT, is_complete, lease, routes: Vec::new() };
        let mut text = serde_json::to_string(&empty)?;
        text.truncate(text.len() - END.len());
        let [trusted, other] =
            [self.boot_id.as_str(), ""].map(|boot_id| serde_json::Value::from(boot_id).to_string());
        for (number, (route, is_trusted)) in routes.iter().enumerate() {
            let boot_id = if *is_trusted { &trusted } else { &other };
            text += if number == 0 { "" } else { "," };
            text += "{\"boot_id\":";
            text += boot_id;
            text += ",";
            // The fields of the route follow in the same object.
            text += route.text()?.strip_prefix('{').unwrap_or_default();
        }
        text += END;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{Endpoint, Target};

    fn kept(lease: Option<u64>) -> Kept {
        let endpoint = Endpoint { id: "c\"1".to_owned(), address: "10.0.0.1:80".parse().unwrap() };
        let targets = [
            Target::Endpoints(vec![endpoint]),
            Target::Site { folder: "/{sites}/a".into() },
            Target::Stopped,
        ];
        let routes = targets.into_iter().enumerate().map(|(number, target)| {
            let hosts = vec![format!("{number}.example"), format!("www.{number}.example")];
            let route = Route { application: number.to_string(), hosts, target, https_only: number == 1 };
            (KeptRoute::new(route), number != 2)
        });
        Kept { is_complete: true, lease, routes: routes.collect() }
    }

    #[test]
    fn what_is_saved_is_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { folder: folder.path().to_owned(), boot_id: "b\"oot".to_owned() };
        for kept in [kept(None), kept(Some(30)), Kept::default()] {
            // The second time with the texts of the first.
            for _ in 0..2 {
                store.save(&kept).unwrap();
                assert_eq!(store.load(), kept);
            }
        }
    }

    #[test]
    fn the_text_is_that_of_the_document() {
        let store = Store { folder: PathBuf::new(), boot_id: "boot".to_owned() };
        let kept = kept(Some(30));
        let records = kept.routes.iter().map(|(kept, is_trusted)| Record {
            boot_id: if *is_trusted { "boot" } else { "" }.to_owned(),
            route: kept.route.clone(),
        });
        let document =
            Document { format: FORMAT, is_complete: true, lease: Some(30), routes: records.collect() };
        assert_eq!(store.text(&kept).unwrap(), serde_json::to_string(&document).unwrap());
    }
}
