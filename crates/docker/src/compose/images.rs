//! Builds or pulls the image of each service.

use std::{collections::BTreeMap, sync::Arc};

use launchway_domain::{
    applications::Variables,
    deployments::{BuildPlan, ComposeSource, CompositionPlan, ImageName, Output, ServiceName, StepError},
};

use super::{
    Compositions,
    builds::{Build, ImageSource},
    file::ComposeFile,
    image_of,
};

impl Compositions {
    /// Returns the image of each service. Another service may refer to a built one by its name.
    pub(super) async fn make_images(
        &self,
        plan: &CompositionPlan,
        source: &ComposeSource,
        folder: &str,
        file: &ComposeFile,
        output: Arc<dyn Output>,
    ) -> Result<BTreeMap<ServiceName, ImageName>, StepError> {
        let (mut images, mut named) = (BTreeMap::new(), BTreeMap::new());
        for (service, described) in &file.services {
            let ImageSource::Build(build, called) = &described.image else { continue };
            output.write(format!("Building the image of `{service}`\n").as_bytes()).await;
            let build_plan = BuildPlan {
                owner: plan.owner,
                checkout: source.checkout.clone(),
                base_path: build.folder(folder).map_err(|error| in_service(service, error))?,
                dockerfile: build.dockerfile.clone(),
                variables: arguments(build, &source.variables).map_err(|error| in_service(service, error))?,
                cache: source.cache,
            };
            let name = image_of(&plan.owner, service);
            let built = self.engine.build_as(&name, &build_plan, build.target.as_deref(), output.clone());
            built.await.map_err(|error| in_service(service, error))?;
            named.extend(called.clone().map(|called| (called, name.clone())));
            images.insert(service.clone(), name);
        }
        for (service, described) in &file.services {
            let ImageSource::Image(image) = &described.image else { continue };
            let name = image_of(&plan.owner, service);
            match named.get(image.as_str()) {
                Some(built) => self.engine.reuse_as(&name, built).await?,
                None => {
                    output.write(format!("Pulling the image of `{service}`\n").as_bytes()).await;
                    let obtained = self.engine.obtain_as(&name, &plan.owner, image, output.clone()).await;
                    obtained.map_err(|error| in_service(service, error))?;
                }
            }
            images.insert(service.clone(), name);
        }
        Ok(images)
    }
}

/// Returns the application's build variables, overridden by those of the file.
fn arguments(build: &Build, variables: &Variables) -> Result<Variables, StepError> {
    let given = variables.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut all: BTreeMap<String, String> = given.collect();
    for (name, value) in &build.arguments {
        if let Some(value) = value {
            all.insert(name.clone(), value.clone());
        }
    }
    all.try_into().map_err(|error| StepError::Rejected(format!("its build arguments: {error}")))
}

fn in_service(service: &ServiceName, error: StepError) -> StepError {
    match error {
        StepError::Rejected(why) => StepError::Rejected(format!("the service `{service}`: {why}")),
        fault => fault,
    }
}
