//! Pools of workers. Jobs are divided by their dependencies, so that one dependency that hangs blocks only
//! the jobs that need it.

use crate::value::named;

named!(
    /// The pool of workers that runs a job.
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
    /// Returns whether its jobs can do nothing while the engine does not answer.
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
