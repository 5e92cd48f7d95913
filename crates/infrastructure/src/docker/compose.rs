//! Runs the services of a compose file.
//!
//! **Invariant:** the file of a repository is taken apart by `file`, which knows by name everything
//! that it may say. What compose sees is written anew by `rendering`, from what was taken.

mod builds;
mod env_files;
mod extension;
mod fields;
mod file;
mod images;
mod interpolation;
mod mounts;
mod quantities;
mod rendering;
mod running;
mod service;
mod source;
mod store;

use std::{collections::BTreeSet, io, path::Path, sync::Arc};

use async_trait::async_trait;
use launchway_domain::{
    applications::RunCommand,
    deployments::{
        ComposeSource, Composer, Composition, CompositionPlan, Container, ImageName, Output, Owner,
        ServiceName, StepError,
    },
    ids::{ApplicationId, DeploymentId},
};
use tokio::{sync::OnceCell, task::spawn_blocking};

pub(super) use self::{
    extension::{ExtensionFile, ExtensionRendering},
    running::is_about_the_address,
};
use self::{
    file::ComposeFile,
    store::{Kept, Store},
};
use super::{DockerEngine, command::Compose, complaints::Failure, labels::Label};

/// Runs the services of compose files on an engine, and keeps what they were made of.
#[derive(Debug)]
pub struct Compositions {
    engine: Arc<DockerEngine>,
    store: Store,
    /// The compose that was found, once one was.
    compose: OnceCell<Compose>,
}

impl Compositions {
    /// Runs them on `engine`, and keeps what they were made of in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(engine: Arc<DockerEngine>, folder: &Path) -> io::Result<Self> {
        Ok(Self { engine, store: Store::open(folder)?, compose: OnceCell::new() })
    }

    pub(super) fn engine(&self) -> Arc<DockerEngine> {
        Arc::clone(&self.engine)
    }
}

/// A composition that was read and is allowed.
struct Allowed {
    kept: Kept,
    file: ComposeFile,
    web: ServiceName,
}

#[async_trait]
impl Composer for Compositions {
    async fn compose(
        &self,
        plan: &CompositionPlan,
        source: &ComposeSource,
        output: Arc<dyn Output>,
    ) -> Result<Composition, StepError> {
        self.installed().await?;
        let found = source::find(source).await?;
        let mut allowed = Allowed::read(Kept { file: found.text.clone(), ..Kept::default() }, plan)
            .map_err(|why| StepError::Refused(format!("the compose file `{}`: {why}", found.path)))?;
        allowed.kept.env_files = source::env_files(source, &found, &allowed.file).await?;
        allowed.kept.volumes = allowed.file.volumes.clone();
        allowed.kept.images = self.make_images(plan, source, &found.folder, &allowed.file, output).await?;
        self.keep(plan, allowed).await
    }

    async fn recall(
        &self,
        plan: &CompositionPlan,
        earlier: DeploymentId,
    ) -> Result<Option<Composition>, StepError> {
        let Some(kept) = self.find(plan.owner.application, earlier).await? else { return Ok(None) };
        self.installed().await?;
        let mut allowed = Allowed::read(kept, plan).map_err(in_the_file)?;
        let earlier = std::mem::take(&mut allowed.kept.images);
        for (service, image) in earlier {
            let name = image_of(&plan.owner, &service);
            self.engine.reuse_as(&name, &image).await?;
            allowed.kept.images.insert(service, name);
        }
        self.keep(plan, allowed).await.map(Some)
    }

    async fn start_companions(
        &self,
        plan: &CompositionPlan,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let allowed = self.allowed(plan).await?;
        match allowed.file.companions(&allowed.web).as_slice() {
            [] => Ok(()),
            companions => {
                self.bring_up(plan, &allowed, companions, output).await?;
                self.wait_for_what_is_needed(plan, &allowed).await
            }
        }
    }

    async fn start(&self, plan: &CompositionPlan, output: Arc<dyn Output>) -> Result<Container, StepError> {
        let allowed = self.allowed(plan).await?;
        self.bring_up(plan, &allowed, &[], output).await?;
        self.web_container(plan).await
    }

    async fn run_once(
        &self,
        plan: &CompositionPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let allowed = self.allowed(plan).await?;
        self.run_command(plan, &allowed, command, output).await
    }

    async fn forget(&self, application: ApplicationId) -> Result<(), StepError> {
        let ours = [Label::of_instance(self.engine.options.instance), Label::of_application(application)];
        for volume in self.engine.docker.volumes(&ours).await.map_err(Failure::or_fault)? {
            match self.engine.docker.remove_volume(&volume).await {
                Err(failure) if !failure.is_gone() => return Err(failure.or_fault()),
                _ => {}
            }
        }
        self.with_store(move |store| store.forget(application)).await
    }
}

impl Allowed {
    fn read(kept: Kept, plan: &CompositionPlan) -> Result<Self, String> {
        let file = ComposeFile::read(kept.file.as_bytes(), &plan.environment)?;
        let web = file.web(plan.port.get())?.clone();
        Ok(Self { kept, file, web })
    }
}

impl Compositions {
    /// Keeps what is needed to start a composition, and tells of it.
    async fn keep(&self, plan: &CompositionPlan, allowed: Allowed) -> Result<Composition, StepError> {
        let whose = (plan.owner.application, plan.owner.deployment);
        let Allowed { kept, file, web } = allowed;
        let live = match plan.live {
            Some(live) => self.find(plan.owner.application, live).await?.unwrap_or_default().volumes,
            None => BTreeSet::new(),
        };
        let composition = Composition {
            image: image_of(&plan.owner, &web),
            web,
            shared_volumes: kept.volumes.intersection(&live).cloned().collect(),
            remarks: file.remarks,
        };
        self.with_store(move |store| store.keep(whose, &kept)).await?;
        Ok(composition)
    }

    /// What was kept for the deployment of `plan`, as it is to be started now.
    async fn allowed(&self, plan: &CompositionPlan) -> Result<Allowed, StepError> {
        let kept = self.find(plan.owner.application, plan.owner.deployment).await?;
        let gone =
            || StepError::Refused("what that deployment was composed of is not there any more".to_owned());
        Allowed::read(kept.ok_or_else(gone)?, plan).map_err(in_the_file)
    }

    async fn find(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<Kept>, StepError> {
        self.with_store(move |store| store.find(application, deployment)).await
    }

    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StepError> {
        let store = self.store.clone();
        let broken =
            |why: String| StepError::Fault(format!("what is kept of compositions cannot be used: {why}"));
        match spawn_blocking(move || work(&store)).await {
            Ok(done) => done.map_err(|error| broken(error.to_string())),
            Err(error) => Err(broken(error.to_string())),
        }
    }

    /// The compose of this machine.
    async fn installed(&self) -> Result<&Compose, StepError> {
        let find = async || {
            let found = self.engine.docker.find_compose(&self.engine.options.compose_program).await;
            found.map_err(Failure::or_fault)?.ok_or_else(|| {
                StepError::Refused(
                    "neither `docker compose` nor `docker-compose` is installed on the server: install the \
                     package `docker-compose-plugin` of docker.com, or `docker-compose` of Debian"
                        .to_owned(),
                )
            })
        };
        self.compose.get_or_try_init(find).await
    }
}

fn image_of(owner: &Owner, service: &ServiceName) -> ImageName {
    ImageName::of_service(owner.application, owner.deployment, service)
}

pub(super) fn in_the_file(why: String) -> StepError {
    StepError::Refused(format!("the compose file: {why}"))
}
