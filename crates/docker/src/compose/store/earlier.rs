//! Moves the compositions that an earlier version stored in files, as `<application>/<deployment>.json`.

use std::{fs, io, path::Path, str::FromStr};

use launchway_domain::{
    deployments::StepError,
    ids::{ApplicationId, DeploymentId},
    store::StoreError,
};
use launchway_system::files::{entries, off_thread, remove};

use super::{Kept, Store, unusable};

impl Store {
    /// Moves the compositions of a folder to the repository, each removed after it is stored. One that is stored already
    /// is only removed: an earlier call ended in between. Files that cannot be moved stay, with a warning.
    pub(in crate::compose) async fn take_over(&self, folder: &Path) -> Result<(), StepError> {
        let root = folder.to_owned();
        let folders = off_thread("look for stored compositions", move || unless_gone(entries(&root))).await?;
        for folder in folders.unwrap_or_default() {
            let Some(application) = id_in(&folder) else { continue };
            let (inner, mut is_empty) = (folder.clone(), true);
            let files = off_thread("look for stored compositions", move || entries(&inner)).await?;
            for file in files {
                let deployment = file.extension().is_some_and(|kind| kind == "json").then(|| id_in(&file));
                let Some(deployment) = deployment.flatten() else { continue };
                let path = file.clone();
                let text = off_thread("read a stored composition", move || fs::read(path)).await?;
                let is_moved = match std::str::from_utf8(&text) {
                    Ok(text) if Kept::of_text(text.as_bytes()).is_some() => {
                        self.take_over_one((application, deployment), text).await?
                    }
                    _ => false,
                };
                if is_moved {
                    off_thread("remove a stored composition", move || remove(&file)).await?;
                } else {
                    let path = file.display();
                    tracing::warn!(%path, "stored composition is damaged or of no known deployment");
                    is_empty = false;
                }
            }
            if is_empty {
                off_thread("remove stored compositions", move || remove(&folder)).await?;
            }
        }
        let folder = folder.to_owned();
        off_thread("remove stored compositions", move || match fs::remove_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => unless_gone(removed).map(drop),
        })
        .await
    }

    /// Returns whether the composition is stored now.
    async fn take_over_one(
        &self,
        (application, deployment): (ApplicationId, DeploymentId),
        text: &str,
    ) -> Result<bool, StepError> {
        if self.repository.find(application, deployment).await.map_err(unusable)?.is_some() {
            return Ok(true);
        }
        match self.keep_text(application, deployment, text).await? {
            Err(StoreError::Stale) => Ok(false),
            kept => kept.map(|()| true).map_err(unusable),
        }
    }
}

/// Returns the id that a file or folder is named by.
fn id_in<T: FromStr>(path: &Path) -> Option<T> {
    path.file_stem()?.to_str()?.parse().ok()
}

fn unless_gone<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use launchway_domain::ids::Ids as _;
    use launchway_testkit::{CountingIds, compositions::MemoryCompositions, secrets::OpenBox};

    use super::{super::tests::kept, *};

    #[tokio::test]
    async fn files_of_an_earlier_version_are_moved() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("compositions");
        let memory = Arc::new(MemoryCompositions::default());
        let store = Store::new(memory.clone(), Arc::new(OpenBox));
        store.take_over(&root).await.unwrap();
        let ids = CountingIds::default();
        let [one, other]: [ApplicationId; 2] = [(); 2].map(|()| ids.next().into());
        let [first, second, third]: [DeploymentId; 3] = [(); 3].map(|()| ids.next().into());
        for (application, deployment) in [(one, first), (one, second), (other, third)] {
            let folder = root.join(application.to_string());
            fs::create_dir_all(&folder).unwrap();
            let text = kept().to_json().to_string();
            fs::write(folder.join(format!("{deployment}.json")), text).unwrap();
            fs::write(folder.join(format!("{deployment}.draft")), "{").unwrap();
        }
        let damaged = root.join(other.to_string()).join(format!("{second}.json"));
        fs::write(&damaged, "{}").unwrap();

        for _ in 0..2 {
            store.take_over(&root).await.unwrap();
            assert_eq!(
                memory.all().into_keys().collect::<Vec<_>>(),
                [(one, first), (one, second), (other, third)]
            );
            assert!(!root.join(one.to_string()).exists() && damaged.exists());
        }
        assert_eq!(store.find(one, second).await, Ok(Some(kept())));
        fs::remove_file(&damaged).unwrap();
        store.take_over(&root).await.unwrap();
        assert!(!root.exists());
    }

    #[tokio::test]
    async fn a_composition_that_is_stored_already_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Arc::new(MemoryCompositions::default()), Arc::new(OpenBox));
        let (application, deployment) = (CountingIds::nth(1).into(), CountingIds::nth(2).into());
        store.keep((application, deployment), &kept()).await.unwrap();
        let inner = folder.path().join(format!("{application}"));
        fs::create_dir(&inner).unwrap();
        let older = Kept::default().to_json().to_string();
        fs::write(inner.join(format!("{deployment}.json")), older).unwrap();
        store.take_over(folder.path()).await.unwrap();
        assert_eq!(store.find(application, deployment).await, Ok(Some(kept())));
        assert!(!inner.exists());
    }
}
