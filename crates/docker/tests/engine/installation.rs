//! An installation of its own for each test, on the engine of this machine.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::{
    applications::{BasePath, DockerfilePath, Port, RegistryPolicy, Variables},
    deployments::{
        BuildCache, BuildPlan, Checkout, Condition, Container, ContainerId, ContainerPlan, Deployer as _,
        ImageBuilder as _, ImageName, Owner,
    },
    ids::{Ids as _, InstanceId, OrganizationId},
};
use launchway_system::clock::TimeOrderedIds;
use launchway_testkit::docker::{Traces, base_image};
use tempfile::TempDir;

use crate::recorder::Recorder;

pub(crate) struct Installation {
    pub(crate) engine: Arc<DockerEngine>,
    pub(crate) instance: InstanceId,
    pub(crate) traces: Traces,
    repository: TempDir,
}

impl Installation {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut DockerOptions)) -> Self {
        let instance = TimeOrderedIds.next().into();
        let mut options = DockerOptions::new(instance);
        // A registry at which no server listens, for tests of that case.
        let registries = ["public", "127.0.0.1:9"].map(|entry| entry.parse().unwrap());
        options.registries = RegistryPolicy::allowing(registries.into());
        change(&mut options);
        let traces = Traces::of(instance);
        Self {
            engine: Arc::new(DockerEngine::new(options)),
            instance,
            traces,
            repository: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes a file of the repository.
    pub(crate) fn write(&self, path: &str, text: &str) {
        assert!(!path.starts_with('/'), "{path} would be outside");
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn root(&self) -> PathBuf {
        let root = self.repository.path().join("checkout");
        fs::create_dir_all(&root).unwrap();
        root
    }

    /// A plan to build the repository in its current state.
    pub(crate) fn plan(&self, owner: Owner) -> BuildPlan {
        BuildPlan {
            owner,
            checkout: Checkout { root: self.root() },
            base_path: BasePath::default(),
            dockerfile: DockerfilePath::default(),
            variables: Variables::default(),
            cache: BuildCache::Use,
        }
    }

    /// An image whose program is the shell with this script.
    pub(crate) async fn image(&self, owner: Owner, script: &str) -> ImageName {
        let program = serde_json::to_string(&["/bin/sh", "-c", script]).unwrap();
        self.write("Dockerfile", &format!("FROM {}\nCMD {program}\n", base_image()));
        let recorder = Arc::new(Recorder::default());
        let built = self.engine.build(&self.plan(owner), recorder.clone()).await;
        built.unwrap_or_else(|error| panic!("{error}: {}", recorder.text()))
    }

    /// A container whose program is the shell with this script.
    pub(crate) async fn container(&self, owner: Owner, script: &str) -> Container {
        let image = self.image(owner, script).await;
        self.engine.start(&plan(owner, image)).await.unwrap()
    }

    /// Waits until the container has the given condition.
    pub(crate) async fn wait_until(
        &self,
        container: &ContainerId,
        is_wanted: impl Fn(Condition) -> bool,
    ) -> Condition {
        let mut last = Condition::Gone;
        for _ in 0..300 {
            last = self.engine.condition(container).await.unwrap();
            if is_wanted(last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the container is still {last:?}");
    }
}

/// A deployment of an application in an organization, all of them new.
pub(crate) fn owner() -> Owner {
    owner_in(TimeOrderedIds.next().into())
}

pub(crate) fn owner_in(organization: OrganizationId) -> Owner {
    Owner {
        organization,
        application: TimeOrderedIds.next().into(),
        deployment: TimeOrderedIds.next().into(),
        attempt: 1,
    }
}

pub(crate) fn plan(owner: Owner, image: ImageName) -> ContainerPlan {
    ContainerPlan {
        owner,
        image,
        environment: Variables::default(),
        port: Port::try_from(8080).unwrap(),
        reserved: Vec::new(),
        copy: 1,
    }
}

pub(crate) fn variables(pairs: &[(&str, &str)]) -> Variables {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect::<BTreeMap<_, _>>().try_into().unwrap()
}
