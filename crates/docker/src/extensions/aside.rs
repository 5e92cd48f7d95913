//! Sets containers aside, and restores them.

use launchway_domain::{
    deployments::StepError,
    extensions::{ObjectName, Run},
};

use super::{ExtensionObjects, Made, done_or_gone, names};
use crate::{NetworkDriver, errors::EngineError};

impl ExtensionObjects {
    /// Of the containers that are `replaced`, removes those of an earlier attempt at the same step, and
    /// sets all others aside.
    pub(super) async fn set_aside(
        &self,
        run: &Run,
        order: i32,
        replaced: impl Fn(&Made) -> bool,
    ) -> Result<(), StepError> {
        let all = self.all(&self.whose_run(run).marks()).await?;
        let (own, earlier): (Vec<&Made>, Vec<&Made>) = all
            .iter()
            .filter(|made| names::aside(&made.name).is_none() && replaced(made))
            .partition(|made| made.is_by(run, order));
        self.remove(own.into_iter()).await?;
        if self.engine.options.network_driver == NetworkDriver::Overlay {
            return self.set_stopped_aside(run, order, &earlier).await;
        }
        // The name records whether it ran, so it is renamed first.
        for made in &earlier {
            let name = names::set_aside(&made.name, run, order, made.is_running);
            done_or_gone(self.engine.docker.rename(&made.id, &name).await)?;
        }
        let is_aside = |made: &&Made| names::aside(&made.name).is_some_and(|aside| aside.is_by(run, order));
        let aside = all.iter().filter(is_aside).chain(earlier);
        for made in aside.collect::<Vec<_>>().into_iter().rev().filter(|made| made.is_running) {
            done_or_gone(self.engine.docker.stop(&made.id).await)?;
        }
        Ok(())
    }

    /// Stops containers, and sets them aside afterwards: docker does not rename one that runs in an overlay. One that was
    /// stopped, but not renamed, when Launchway was killed is known by the time at which it ended.
    async fn set_stopped_aside(&self, run: &Run, order: i32, earlier: &[&Made]) -> Result<(), StepError> {
        for made in earlier.iter().rev() {
            if made.is_running {
                done_or_gone(self.engine.docker.stop(&made.id).await)?;
            }
            let ran = made.is_running || made.was_stopped_during(run);
            let name = names::set_aside(&made.name, run, order, ran);
            done_or_gone(self.engine.docker.rename(&made.id, &name).await)?;
        }
        Ok(())
    }

    /// Reverts a step that created or removed containers: removes those that it created, and restores those
    /// that it set aside.
    pub async fn bring_back(&self, run: &Run, order: i32) -> Result<(), StepError> {
        let all = self.all(&self.whose_run(run).marks()).await?;
        self.remove(all.iter().filter(|made| names::aside(&made.name).is_none() && made.is_by(run, order)))
            .await?;
        if self.engine.options.network_driver == NetworkDriver::Overlay {
            return self.bring_stopped_back(run, order, &all).await;
        }
        for made in &all {
            let Some(aside) = names::aside(&made.name).filter(|aside| aside.is_by(run, order)) else {
                continue;
            };
            // It gets its name back only after its state is restored.
            if aside.ran {
                self.engine.docker.start(&made.id).await.map_err(EngineError::or_fault)?;
            }
            self.engine.docker.rename(&made.id, aside.name).await.map_err(EngineError::or_fault)?;
        }
        Ok(())
    }

    /// Renames containers that were set aside, and starts them afterwards, with those that were stopped and not renamed.
    async fn bring_stopped_back(&self, run: &Run, order: i32, all: &[Made]) -> Result<(), StepError> {
        for made in all {
            let aside = names::aside(&made.name);
            let is_started = match &aside {
                Some(aside) if aside.is_by(run, order) => {
                    let renamed = self.engine.docker.rename(&made.id, aside.name).await;
                    renamed.map_err(EngineError::or_fault)?;
                    aside.ran
                }
                Some(_) => false,
                None => made.was_stopped_during(run),
            };
            if is_started {
                self.engine.docker.start(&made.id).await.map_err(EngineError::or_fault)?;
            }
        }
        Ok(())
    }

    /// Removes the containers that the steps of a run set aside.
    pub async fn forget_aside(&self, run: &Run) -> Result<(), StepError> {
        let all = self.all(&self.whose_run(run).marks()).await?;
        self.remove(all.iter().filter(|made| names::aside(&made.name).is_some_and(|aside| aside.is_of(run))))
            .await
    }

    /// Returns the container with this name that belongs to no composition.
    pub(super) async fn named(&self, run: &Run, name: &ObjectName) -> Result<Option<Made>, StepError> {
        let whose = self.whose_run(run);
        let wanted = whose.named(name);
        Ok(self.all(&whose.marks()).await?.into_iter().find(|made| made.name == wanted))
    }
}
