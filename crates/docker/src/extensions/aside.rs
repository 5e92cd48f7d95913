//! Sets containers aside, and restores them.

use launchway_domain::{
    deployments::StepError,
    extensions::{ObjectName, Run},
};

use super::{ExtensionObjects, Made, done_or_gone, names};
use crate::errors::EngineError;

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

    /// Reverts a step that created or removed containers: removes those that it created, and restores those
    /// that it set aside.
    pub async fn bring_back(&self, run: &Run, order: i32) -> Result<(), StepError> {
        let all = self.all(&self.whose_run(run).marks()).await?;
        self.remove(all.iter().filter(|made| names::aside(&made.name).is_none() && made.is_by(run, order)))
            .await?;
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
