//! Pools of workers: jobs are divided by what they need, so that one dependency that hangs holds up
//! no job that does without it.

use crate::value::named;

named!(
    /// The workers that a job waits for.
    Pool,
    "a pool of workers",
    {
        // Deployments that build or run containers: they need the engine, and may take long.
        Builds => "builds",
        // Deployments and operations of sites: they need no engine.
        Sites => "sites",
        // Operations on containers: they need the engine, and are short.
        Operations => "operations",
        // Runs of extensions: they may need anything, and may take long.
        Extensions => "extensions",
    }
);

impl Pool {
    /// True if its jobs can do nothing while the engine does not answer.
    #[must_use]
    pub fn needs_engine(self) -> bool {
        matches!(self, Self::Builds | Self::Operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_and_extensions_go_on_without_an_engine() {
        let waiting: Vec<Pool> = Pool::ALL.iter().copied().filter(|pool| pool.needs_engine()).collect();
        assert_eq!(waiting, [Pool::Builds, Pool::Operations]);
    }
}
