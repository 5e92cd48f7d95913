//! Stores the files of each composition, so that it can be started again later.
//!
//! **Invariant:** only files of the repository and the names of images are stored. The values of an
//! application's variables are inserted whenever services are started, and are in no file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use launchway_domain::{
    deployments::{ImageName, ServiceName},
    ids::{ApplicationId, DeploymentId},
};
use serde_json::{Value, json};

/// The most compositions of an application that are kept.
const MOST_KEPT: usize = 100;

/// The stored composition of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The unchanged compose file of the repository.
    pub(super) file: String,
    /// The env files that it refers to, by their paths in it.
    pub(super) env_files: BTreeMap<String, String>,
    /// The image of each service.
    pub(super) images: BTreeMap<ServiceName, ImageName>,
    /// The named volumes that services use.
    pub(super) volumes: BTreeSet<String>,
}

/// The folder of stored compositions.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens `folder`, and creates it if necessary.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores a composition atomically. Blocks.
    pub(super) fn keep(
        &self,
        (application, deployment): (ApplicationId, DeploymentId),
        kept: &Kept,
    ) -> io::Result<()> {
        let folder = self.folder_of(application);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let (draft, place) =
            (folder.join(format!("{deployment}.draft")), self.place(application, deployment));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(kept.to_json().to_string().as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, &place)?;
        fs::File::open(&folder)?.sync_all()?;
        forget_the_oldest(&folder, MOST_KEPT)
    }

    /// Returns the stored composition of a deployment; `None` when it was no composition. Blocks.
    pub(super) fn find(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> io::Result<Option<Kept>> {
        let text = match fs::read_to_string(self.place(application, deployment)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let kept = serde_json::from_str(&text).ok().as_ref().and_then(Kept::of_json);
        kept.map(Some).ok_or_else(|| io::Error::other("what was kept of a composition is damaged"))
    }

    /// Removes all compositions of an application. Blocks.
    pub(super) fn forget(&self, application: ApplicationId) -> io::Result<()> {
        match fs::remove_dir_all(self.folder_of(application)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn folder_of(&self, application: ApplicationId) -> PathBuf {
        self.folder.join(application.to_string())
    }

    fn place(&self, application: ApplicationId, deployment: DeploymentId) -> PathBuf {
        self.folder_of(application).join(format!("{deployment}.json"))
    }
}

/// Removes the oldest compositions. Ids rise with time, and so do the names of files.
fn forget_the_oldest(folder: &Path, most: usize) -> io::Result<()> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let mut kept: Vec<_> =
        files.into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    kept.sort();
    let too_many = kept.len().saturating_sub(most);
    kept.iter().take(too_many).try_for_each(fs::remove_file)
}

impl Kept {
    fn to_json(&self) -> Value {
        let images = self.images.iter().map(|(name, image)| (name.to_string(), image.to_string()));
        json!({
            "file": self.file,
            "env_files": self.env_files,
            "images": images.collect::<BTreeMap<_, _>>(),
            "volumes": self.volumes,
        })
    }

    fn of_json(value: &Value) -> Option<Self> {
        let texts = |key: &str| -> Option<BTreeMap<String, String>> {
            let entries = value.get(key)?.as_object()?.iter();
            entries.map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
        };
        let images = texts("images")?.into_iter();
        let volumes = value.get("volumes")?.as_array()?.iter();
        Some(Self {
            file: value.get("file")?.as_str()?.to_owned(),
            env_files: texts("env_files")?,
            images: images
                .map(|(name, image)| Some((name.parse().ok()?, image.parse().ok()?)))
                .collect::<Option<_>>()?,
            volumes: volumes.map(|name| Some(name.as_str()?.to_owned())).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use launchway_testkit::CountingIds;

    use super::*;

    fn kept() -> Kept {
        let web: ServiceName = "web".parse().unwrap();
        let image = ImageName::of_service(CountingIds::nth(1).into(), CountingIds::nth(2).into(), &web);
        Kept {
            file: "services: {}".to_owned(),
            env_files: BTreeMap::from([("a.env".to_owned(), "A=1".to_owned())]),
            images: BTreeMap::from([(web, image)]),
            volumes: BTreeSet::from(["data".to_owned()]),
        }
    }

    #[test]
    fn what_is_kept_is_found_until_its_application_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("compositions")).unwrap();
        let (application, deployment) = (CountingIds::nth(1).into(), CountingIds::nth(2).into());
        assert_eq!(store.find(application, deployment).unwrap(), None);
        for _ in 0..2 {
            store.keep((application, deployment), &kept()).unwrap();
        }
        assert_eq!(store.find(application, deployment).unwrap(), Some(kept()));
        let mode = fs::metadata(store.place(application, deployment)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for _ in 0..2 {
            store.forget(application).unwrap();
        }
        assert_eq!(store.find(application, deployment).unwrap(), None);
    }

    #[test]
    fn only_the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1.json", "2.json", "3.json", "0.draft"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        forget_the_oldest(folder.path(), 2).unwrap();
        let left = |name: &str| folder.path().join(name).exists();
        assert_eq!(
            [left("1.json"), left("2.json"), left("3.json"), left("0.draft")],
            [false, true, true, true]
        );
    }

    #[test]
    fn what_is_damaged_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let (application, deployment) = (CountingIds::nth(1).into(), CountingIds::nth(2).into());
        store.keep((application, deployment), &kept()).unwrap();
        fs::write(store.place(application, deployment), "{}").unwrap();
        assert!(store.find(application, deployment).is_err());
    }
}
