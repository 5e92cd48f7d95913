//! The scenarios of every engine.

use launchway_testkit::repository::Repository;
use serde_json::Value;

use super::harness::SwarmHarness;
use crate::docker::deployments::{
    harness::Harness,
    scenarios::{EngineHarness, run},
};

impl EngineHarness for SwarmHarness {
    fn harness(&self) -> &Harness {
        &self.harness
    }

    fn repository(&self, name: &str) -> Repository {
        self.repository(name)
    }

    fn spec(&self, name: &str) -> Value {
        self.spec(name, 1)
    }

    fn instances(&self) -> usize {
        self.services().len()
    }
}

#[test]
fn applications_live_on_swarm_as_documented() {
    run(&SwarmHarness::start(1));
}
