//! Stores the files of each composition, so that every server can start it again later.
//!
//! **Invariant:** only files of the repository and the names of images are stored. The values of an
//! application's variables are inserted whenever services are started, and are stored nowhere.

mod earlier;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use launchway_domain::{
    applications::Port,
    deployments::{CompositionRepository, ImageName, ServiceName, StepError},
    ids::{ApplicationId, DeploymentId},
    secret::SecretBox,
    store::StoreError,
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
    /// The port that identifies the service that gets the traffic; `None` if an earlier release stored it.
    pub(super) port: Option<Port>,
}

/// The stored compositions, sealed with the key of the installation.
#[derive(Clone)]
pub(super) struct Store {
    repository: Arc<dyn CompositionRepository>,
    secrets: Arc<dyn SecretBox>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    pub(super) fn new(repository: Arc<dyn CompositionRepository>, secrets: Arc<dyn SecretBox>) -> Self {
        Self { repository, secrets }
    }

    /// Stores a composition.
    pub(super) async fn keep(
        &self,
        (application, deployment): (ApplicationId, DeploymentId),
        kept: &Kept,
    ) -> Result<(), StepError> {
        let text = kept.to_json().to_string();
        self.keep_text(application, deployment, &text).await?.map_err(unusable)
    }

    /// Stores the text of a composition. The inner error is that of the repository.
    async fn keep_text(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
        text: &str,
    ) -> Result<Result<(), StoreError>, StepError> {
        let place = associated_data(application, deployment);
        let sealed = self.secrets.seal(&place, text.as_bytes()).map_err(unusable)?;
        Ok(self.repository.keep(application, deployment, sealed, MOST_KEPT).await)
    }

    /// Returns the stored composition of a deployment; `None` when it was no composition.
    pub(super) async fn find(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<Kept>, StepError> {
        let found = self.repository.find(application, deployment).await.map_err(unusable)?;
        let Some(sealed) = found else { return Ok(None) };
        let place = associated_data(application, deployment);
        let text = self.secrets.open(&place, &sealed).map_err(unusable)?;
        let kept = Kept::of_text(text.expose());
        kept.map(Some).ok_or_else(|| StepError::Retryable("a stored composition is damaged".to_owned()))
    }

    /// Removes all compositions of an application.
    pub(super) async fn forget(&self, application: ApplicationId) -> Result<(), StepError> {
        self.repository.forget(application).await.map_err(unusable)
    }
}

fn associated_data(application: ApplicationId, deployment: DeploymentId) -> String {
    format!("compositions.sealed:{application}:{deployment}")
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> StepError {
    StepError::failed("the stored compositions cannot be used", error)
}

impl Kept {
    fn to_json(&self) -> Value {
        let images = self.images.iter().map(|(name, image)| (name.to_string(), image.to_string()));
        json!({
            "file": self.file,
            "env_files": self.env_files,
            "images": images.collect::<BTreeMap<_, _>>(),
            "volumes": self.volumes,
            "port": self.port.map(Port::get),
        })
    }

    fn of_text(text: &[u8]) -> Option<Self> {
        Self::of_json(&serde_json::from_slice(text).ok()?)
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
            port: value.get("port").and_then(|port| u16::try_from(port.as_u64()?).ok()?.try_into().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use launchway_testkit::{CountingIds, compositions::MemoryCompositions, secrets::OpenBox};

    use super::{super::source, *};

    pub(super) fn kept() -> Kept {
        let web: ServiceName = "web".parse().unwrap();
        let image = ImageName::of_service(CountingIds::nth(1).into(), CountingIds::nth(2).into(), &web);
        Kept {
            file: "services: {}".to_owned(),
            env_files: BTreeMap::from([("a.env".to_owned(), "A=1".to_owned())]),
            images: BTreeMap::from([(web, image)]),
            volumes: BTreeSet::from(["data".to_owned()]),
            port: Port::try_from(8080).ok(),
        }
    }

    #[tokio::test]
    async fn what_is_kept_is_found_until_its_application_is_forgotten() {
        let store = Store::new(Arc::new(MemoryCompositions::default()), Arc::new(OpenBox));
        let (application, deployment) = (CountingIds::nth(1).into(), CountingIds::nth(2).into());
        assert_eq!(store.find(application, deployment).await, Ok(None));
        for _ in 0..2 {
            store.keep((application, deployment), &kept()).await.unwrap();
        }
        assert_eq!(store.find(application, deployment).await, Ok(Some(kept())));
        for _ in 0..2 {
            store.forget(application).await.unwrap();
        }
        assert_eq!(store.find(application, deployment).await, Ok(None));
    }

    /// The contract of the databases stores 16 MiB in a row.
    #[test]
    fn the_largest_composition_fits_in_a_row() {
        // A control character takes six bytes in JSON.
        let text = |bytes: usize| "\u{1}".repeat(bytes);
        let largest = Kept {
            file: text(usize::try_from(source::LARGEST).unwrap()),
            env_files: BTreeMap::from([("a.env".to_owned(), text(source::LARGEST_TOGETHER))]),
            ..kept()
        };
        let sealed = largest.to_json().to_string().len() / 3 * 4;
        // The rest is for names: those of volumes and images are in the file too, and those of env files.
        assert!(sealed < 11 * 1024 * 1024, "{sealed}");
    }

    #[tokio::test]
    async fn a_damaged_or_moved_composition_is_an_error() {
        let memory = Arc::new(MemoryCompositions::default());
        let store = Store::new(memory.clone(), Arc::new(OpenBox));
        let [application, one, two] = [1, 2, 3].map(CountingIds::nth);
        let (application, one, two) = (application.into(), one.into(), two.into());
        store.keep((application, one), &kept()).await.unwrap();
        memory.insert(application, two, memory.all()[&(application, one)].clone());
        assert!(store.find(application, two).await.is_err(), "of another deployment");
        let damaged = OpenBox.seal(&associated_data(application, two), b"{}").unwrap();
        memory.insert(application, two, damaged);
        assert!(store.find(application, two).await.is_err());
    }
}
