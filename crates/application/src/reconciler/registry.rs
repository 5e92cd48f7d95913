//! Images in the registry of the installation that are no longer needed.
//!
//! **Invariant:** an image is deleted from the registry only if the records show that its deployment can no longer be rolled
//! back to, after the grace period of orphans, and only if no image that is kept has its digest.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::TimeDelta;
use launchway_domain::{
    clock::Timestamp,
    deployments::{ApplicationChanges, ImageDeletion, ImageName, ImageRegistry, StepError},
    ids::ApplicationId,
};
use tokio::time::{Instant, sleep};

use super::{Reconciler, unreadable};

/// The time after which an application is looked at again whose images the registry refused to list or to delete.
const REFUSED: Duration = Duration::from_secs(60 * 60);
/// The most that the clocks of two servers, and the start and the commit of a change, are apart.
const OVERLAP: TimeDelta = TimeDelta::minutes(1);

/// The ports of the deletion of images in a registry.
#[derive(Clone)]
pub struct RegistryPorts {
    /// Lists and deletes images.
    pub images: Arc<dyn ImageRegistry>,
    /// Lists applications that changed.
    pub changes: Arc<dyn ApplicationChanges>,
}

/// The applications whose images have to be looked at.
#[derive(Default)]
struct Search {
    /// The time of the last list of changes.
    listed_at: Option<Timestamp>,
    pending: BTreeMap<ApplicationId, PendingApplication>,
    /// The outage that was logged; `None` if the registry and the records answered the last time.
    outage: Option<String>,
    /// The refusal that was logged. It usually lasts, so it is logged once.
    refusal: Option<String>,
}

/// An application whose images have to be looked at.
struct PendingApplication {
    due: Instant,
    /// The images that are not needed, with the times since which that is known.
    unwanted: HashMap<ImageName, Instant>,
}

impl Search {
    fn log_outage(&mut self, error: &StepError) {
        let text = error.to_string();
        if self.outage.as_ref() != Some(&text) {
            tracing::warn!(%error, "images could not be deleted from the registry");
        }
        self.outage = Some(text);
    }

    fn log_refusal(&mut self, reason: String) {
        if self.refusal.as_ref() != Some(&reason) {
            tracing::warn!(reason, "registry refuses to delete images");
        }
        self.refusal = Some(reason);
    }
}

impl Reconciler {
    /// Deletes images from the registry for as long as this server leads. Returns at once if there is none.
    pub(super) async fn run_image_deletion(&self) {
        let Some(registry) = &self.ports.registry else { return };
        let mut search = Search::default();
        loop {
            if self.context.replica.is_leader() {
                match self.delete_published_images(registry, &mut search).await {
                    Ok(()) => search.outage = None,
                    Err(error) => search.log_outage(&error),
                }
            } else {
                search = Search::default();
            }
            sleep(self.timings.orphans).await;
        }
    }

    /// Looks at the applications that are due. An application without unneeded images is not looked at again until it
    /// changes.
    async fn delete_published_images(
        &self,
        registry: &RegistryPorts,
        search: &mut Search,
    ) -> Result<(), StepError> {
        let (listed_at, now) = (self.context.clock.now(), Instant::now());
        let since = search.listed_at.map(|last| last - OVERLAP);
        for application in registry.changes.changed_applications(since).await.map_err(unreadable)? {
            let new = || PendingApplication { due: now, unwanted: HashMap::new() };
            search.pending.entry(application).or_insert_with(new).due = now;
        }
        search.listed_at = Some(listed_at);
        let due = search.pending.iter().filter(|(_, pending)| pending.due <= now);
        let due: Vec<ApplicationId> = due.map(|(application, _)| *application).collect();
        for application in due {
            let Some(pending) = search.pending.get_mut(&application) else { continue };
            match self.delete_images_of(&*registry.images, application, &mut pending.unwanted).await {
                // Another server goes on.
                Ok(()) if !self.context.replica.is_leader() => return Ok(()),
                Ok(()) => match pending.unwanted.values().min() {
                    Some(since) => pending.due = *since + self.timings.grace,
                    None => {
                        search.pending.remove(&application);
                    }
                },
                Err(StepError::Rejected(reason)) => {
                    pending.due = now + REFUSED;
                    search.log_refusal(reason);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Deletes the images of an application that have not been needed for the grace period, and leaves the others in
    /// `unwanted`.
    async fn delete_images_of(
        &self,
        registry: &dyn ImageRegistry,
        application: ApplicationId,
        unwanted: &mut HashMap<ImageName, Instant>,
    ) -> Result<(), StepError> {
        let found = registry.images(application).await?;
        let owners = found.iter().filter_map(ImageName::whose).map(|(_, deployment)| deployment);
        let known = self.retention_status(owners).await?;
        let is_unwanted = |image: &ImageName| {
            let known = image.whose().and_then(|(_, deployment)| known.get(&deployment));
            known.is_some_and(|known| !(known.is_live || known.is_open || known.is_worth_keeping))
        };
        let (unneeded, kept): (Vec<ImageName>, Vec<ImageName>) = found.into_iter().partition(is_unwanted);
        unwanted.retain(|image, _| unneeded.contains(image));
        let now = Instant::now();
        for image in unneeded {
            let since = *unwanted.entry(image.clone()).or_insert(now);
            if now - since < self.timings.grace {
                continue;
            }
            // Each time: deletions may take longer than a term.
            if !self.context.replica.is_leader() {
                return Ok(());
            }
            match registry.delete(&image, &kept).await? {
                ImageDeletion::Deleted => {
                    tracing::info!(image = image.as_str(), "image deleted from the registry");
                }
                ImageDeletion::Shared => {}
            }
            unwanted.remove(&image);
        }
        Ok(())
    }
}
